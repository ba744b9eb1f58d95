"""The minimum batch where reports are opened: junk that the shuffler cannot tell apart makes no batch large enough."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.collection.envelopes import sealed_offset
from hushcount.errors import TooFewOpened
from hushcount.many_clients import ManyClients
from hushcount.oracles import tally as tally_files
from hushcount.oracles.tally import Tally
from hushcount.wire.sealing import Octets
from pipelines.jobs.results import read_tally
from tests.pipelines.conftest import World
from tests.support.collecting import collect
from tests.support.jobs import Chain, done, files_under, new_campaign, refused, summary
from tests.support.records import read_file, write_rows, write_shuffled
from tests.support.site import FLOOR, Site, account_at, values
from tests.support.stub_store import StubStore


@pytest.fixture(scope="session")
def chain(world: World) -> Chain:
    path = new_campaign(world.root / "few.json", world.keys, dictionary=world.dictionary, discovery=2.0)
    return Chain(path, world.keys)


def random_rows(number: int, length: int) -> Octets:
    return np.frombuffer(os.urandom(number * length), dtype=np.uint8).reshape(number, length)


def mostly_junk(chain: Chain, directory: Path, honest: int, junk: int) -> Path:
    """Write what the shuffler hands on of a few clients and of somebody who posts random bytes of the right length."""
    campaign, client = chain.campaign, ManyClients(chain.campaign)
    made: dict[Stream, Octets] = {
        "reports": client.reports(["alpha"] * honest),
        "discovery": client.discovery_reports(["unlisted"] * honest),
    }
    streams = {name: [rows, random_rows(junk, rows.shape[1])] for name, rows in made.items()}
    return write_shuffled(directory, campaign, streams)  # type: ignore[arg-type]


COMMANDS = {"analyze": ("analyze",), "discover": ("discover",), "release": ("discover", "--party", "aux-server")}


def test_below_the_minimum_batch_of_opened_reports_nothing_is_written_or_charged(
    subtests: pytest.Subtests, chain: Chain, tmp_path: Path
) -> None:
    """One honest report and 49 random strings were a result of one report, at a minimum batch of 50."""
    for hop, (command, *rest) in COMMANDS.items():
        for honest in (1, 49):
            with subtests.test(hop=hop, honest=honest):
                here = tmp_path / f"{hop}-{honest}"
                here.mkdir()
                source = mostly_junk(chain, here / "shuffled", honest, 60)
                before = files_under(here)
                common = ("--campaign", chain.campaign_path, "--input", source, "--keys", chain.keys)
                written = ("--out", here / "out", "--ledger", here / "ledger.db")
                says = [f"{honest} of {honest + 60}", "50", "not_opened 60"]
                refused("job", command, *common, *written, *rest, status=3, says=says)
                assert {name for name in files_under(here) if not name.startswith("ledger.db")} == before.keys()
                assert done("ledger", "show", "--ledger", here / "ledger.db", "--json").json["charges"] == []


def test_the_minimum_batch_itself_is_enough(chain: Chain, tmp_path: Path) -> None:
    source = mostly_junk(chain, tmp_path / "shuffled", 50, 10)
    common = ("--campaign", chain.campaign_path, "--input", source, "--keys", chain.keys)
    done("job", "analyze", *common, "--out", tmp_path / "results")
    done("job", "discover", *common, "--out", tmp_path / "found")
    assert summary(tmp_path / "results")["accepted"] == 50
    assert summary(tmp_path / "found")["accepted"] == 50


@pytest.mark.parametrize("hop", COMMANDS)
@pytest.mark.usefixtures("either_engine")
def test_in_a_store_no_part_of_it_is_ever_written(
    chain: Chain, store: type[StubStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hop: str
) -> None:
    """There every object is to be seen as soon as it is written: no tally, no kept bin, no dead letter."""
    source = mostly_junk(chain, tmp_path / "shuffled", 20, 60)
    written: list[str] = []
    create = StubStore.create

    def noted(self: StubStore, path: str, *arguments: object, **options: object) -> object:
        written.append(path)
        return create(self, path, *arguments, **options)

    monkeypatch.setattr(StubStore, "create", noted)
    command, *rest = COMMANDS[hop]
    common = ("--campaign", chain.campaign_path, "--input", source, "--keys", chain.keys, "--out", "stub://b/out")
    refused("job", command, *common, *rest, status=3, says=["minimum batch"])
    assert {path.rpartition("/")[2].split(".")[2] for path in written} == {"counts"}
    assert store.objects == {}


def test_a_tally_of_too_few_reports_is_not_asked(chain: Chain, tmp_path: Path) -> None:
    """The tally is a result: one of a single report says what it was."""
    campaign, mechanism = chain.campaign, chain.campaign.require_frequency()
    items = np.arange(mechanism.encoder.domain, dtype=np.uint64)
    path = tmp_path / "tally.npz"
    for reports in (1, 49):
        with path.open("wb") as stream:
            tally_files.save(Tally(mechanism.new_tally(items), reports, items), campaign.fingerprint, stream)
        (tmp_path / "items.txt").write_text("alpha\n")
        common = ("--campaign", chain.campaign_path, "--items", tmp_path / "items.txt", "--out", tmp_path / "out")
        refused("job", "estimate", *common, "--tally", path, status=3, says=[f"{reports} reports", "50"])
        with pytest.raises(TooFewOpened):
            read_tally(str(path), campaign)
    assert not (tmp_path / "out").exists()


# hushcount run.


def spoil(segment: Path, campaign: Campaign, honest: int) -> None:
    """Let all reports of a segment but the first few be random bytes, and its manifest be true of it."""
    header, rows = read_file(segment)
    changed = rows.copy()
    length = campaign.sealed_bytes("reports" if segment.parent.name == "reports" else "discovery")
    start = sealed_offset(length)
    changed[honest:, start:] = random_rows(len(rows) - honest, length)
    write_rows(segment, header.kind, changed, campaign)
    manifest = segment.parents[1] / "one.manifest.json"
    data = json.loads(manifest.read_text())
    for part in data["segments"][segment.parent.name]:
        part["digest"] = hashlib.blake2b(segment.read_bytes(), digest_size=32).hexdigest()
    manifest.write_text(json.dumps(data))


@pytest.mark.parametrize("spoilt", ["reports", "discovery"])
def test_a_run_counts_such_a_batch_says_so_once_and_goes_on(tmp_path: Path, spoilt: str) -> None:
    site = Site(tmp_path, discovery=True)
    campaign = Campaign.read(site.campaign)
    for segment in collect(site.store, site.campaign, values(FLOOR + 10), day=0):
        if segment.parent.name == spoilt:
            spoil(segment, campaign, 1)
    first = site.run(1.1)
    assert [name.rpartition(" ")[2] for name in first.hops] == ["shuffle", "release", "discover", "analyze"]
    assert f"1 of {FLOOR + 10} {spoilt}" in " ".join(first.problems)
    found, results = (site.store / folder / "words" / site.batch(0) for folder in ("found", "results"))
    written, listed = site.files("results", 0), site.files("found", 0)
    assert ((written / "tally.npz").exists(), (written / "estimates.csv").exists()) == (spoilt != "reports",) * 2
    assert (listed / "found.csv").exists() == (spoilt != "discovery")
    for stream, folder in (("reports", results), ("discovery", found)):
        counts = summary(folder)["streams"][stream]
        junk, kept = (FLOOR + 9, 1) if stream == spoilt else (0, 0)
        rejected = {"not_opened": junk, "below_minimum": kept} if kept else {}
        assert counts == {"received": FLOOR + 10, "accepted": FLOOR + 10 - junk - kept, "rejected": rejected}
    account = account_at(site, 1.2)
    assert account.differences == []
    # Its reports are spent: nothing takes them up again, and the next window is not held up.
    assert site.run(1.3).problems == []
    collect(site.store, site.campaign, values(FLOOR), day=1)
    second = site.run(2.1)
    assert second.problems == []
    assert len(second.hops) == 4
    charged = done("ledger", "show", "--ledger", site.root / "ledger.db", "--json").json["charges"]
    assert len(charged) == 3


def test_status_shows_a_batch_without_a_result_though_the_run_died_before_it_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path)
    (segment,) = collect(site.store, site.campaign, values(FLOOR), day=0)
    spoil(segment, Campaign.read(site.campaign), 1)

    def killed(*arguments: object) -> None:
        if "analyze" in arguments:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pipelines.schedule.advancing._said", killed)
        with pytest.raises(KeyboardInterrupt):
            site.run(1.1)
    assert site.run(1.3).problems == []
    (account,) = done("status", "--config", site.config, "--json").json
    (row,) = (row for row in account["hops"] if row["hop"] == "analyze")
    assert (row["accepted"], row["rejected"]) == (0, {"not_opened": FLOOR - 1, "below_minimum": 1})
