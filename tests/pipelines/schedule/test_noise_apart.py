"""Parties apart whose campaign has noise: two operators mix, each reads what the one before wrote, and no more."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.envelopes import ENVELOPES
from hushcount.wire.blocks import read_block, read_header
from pipelines.audit.doctor import examine
from pipelines.audit.parties import Line
from pipelines.deployment.settings import Party
from pipelines.files.block_files import write_file
from tests.support.apart import Apart
from tests.support.collecting import collect
from tests.support.jobs import done, refused
from tests.support.noise import NoiseSite
from tests.support.site import Site, account_at, at, values

KEEP = '[retention]\nsegments = "10d"\nshuffled = "20d"\nmixed = "20d"\n'
REPORTS = 60
ORDER: tuple[Party, ...] = ("shuffler", "aux-server", "analyzer")


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """One batch, shuffled; nobody writes here."""
    root = tmp_path_factory.mktemp("apart")
    site = NoiseSite(root, settings='analyzer_keys = "signing/public.json"\n', tail=KEEP)
    collect(site.store, site.campaign, values(REPORTS), day=0)
    assert Apart(site).run("shuffler", day=1.1).problems == []
    return site


@pytest.fixture
def apart(shuffled: Site, tmp_path: Path) -> Apart:
    return Apart(shuffled.copied(tmp_path / "site"))


def charges(site: Site) -> Any:
    """Return the charges of the ledger, which all parties of the site share."""
    ledger = site.root / "ledger.db"
    return done("ledger", "show", "--ledger", ledger, "--json").json["charges"] if ledger.exists() else []


def line(apart: Apart, party: Party, of: Party) -> Line:
    """Return the line of a party in the account that another one, or itself, has of the reports."""
    (found,) = (one for one in apart.account(party).parties if one.parties == (of,))
    return found


def names(apart: Apart, folder: str, party: Party) -> list[str]:
    """Return the hops of which a party left statements or receipts, all of them signed."""
    files = apart.files(folder, party)
    assert all(path.with_name(f"{path.name}.sig").exists() for path in files)
    return [path.name.split(".")[1] for path in files]


def test_each_party_reads_what_the_one_before_wrote_and_all_accounts_add_up(apart: Apart) -> None:
    assert apart.run("analyzer").is_quiet, "the shuffle is the auxiliary server's to read"
    assert apart.run("aux-server").hops == [f"words/{apart.batch} mix"]
    # Everything of the shuffler but its statements is out of the analyzer's reach.
    (apart.site.store / "shuffled").rename(apart.site.root / "aside")
    ran = apart.run("analyzer")
    assert (ran.problems, ran.hops) == ([], [f"words/{apart.batch} analyze"])
    (apart.site.root / "aside").rename(apart.site.store / "shuffled")
    assert apart.site.result(0)["accepted"] == REPORTS

    assert [names(apart, "stated", party) for party in ORDER] == [["shuffle"], ["mix"], []]
    assert [names(apart, "receipts", party) for party in ORDER] == [[], ["shuffle"], ["mix"]]
    dummies = [json.loads(apart.files("stated", party)[0].read_text())["dummies"] for party in ORDER[:2]]
    assert 0 < dummies[0] < dummies[1]
    assert [apart.run(party).problems for party in ORDER] == [[]] * 3
    assert apart.late == set()
    for party in ORDER:
        assert apart.account(party).differences == []
        own = line(apart, party, party)
        assert (own.source, own.received, own.went_on) == ("log", REPORTS, REPORTS)
    # What the analyzer counted, the others know only by its receipt.
    assert line(apart, "shuffler", "aux-server").went_on == REPORTS
    assert line(apart, "aux-server", "analyzer").received == REPORTS
    # The auxiliary server charged the draw, and the analyzer found the same charge.
    assert len(charges(apart.site)) == 1


def test_retention_deletes_what_was_mixed_only_after_the_analyzers_receipt(apart: Apart) -> None:
    assert apart.run("aux-server").problems == []
    assert f"words/{apart.batch} shuffled" in apart.run("shuffler", day=30).deleted
    assert apart.late == set(), "the auxiliary server alone reads it"
    assert apart.run("aux-server", day=30).deleted == []
    assert apart.late == {"analyzer"}
    # The shuffler's output is gone by now, and the analyzer needs none of it.
    assert apart.run("analyzer", day=30).hops == [f"words/{apart.batch} analyze"]
    assert apart.run("aux-server", day=30).deleted == [f"words/{apart.batch} mixed"]
    assert apart.fold("aux-server").received == (f"analyzer mix {apart.batch}",)
    for party in ORDER:
        assert apart.account(party, day=30.1).differences == []


def test_an_analyzer_refuses_shuffled_reports_in_place_of_mixed_ones(apart: Apart) -> None:
    assert apart.run("aux-server").problems == []
    mixed = apart.site.store / "mixed" / "words" / apart.batch
    shutil.rmtree(mixed)
    shutil.copytree(apart.site.store / "shuffled" / "words" / apart.batch, mixed)
    (problem,) = apart.run("analyzer").problems
    assert f"{mixed}/summary.json is not what the aux-server states that mix wrote of this batch" in problem
    # By hand too, and although one key signs for both parties here.
    results = apart.site.root / "results"
    refused(
        "job", "analyze", "--campaign", apart.site.campaign, "--input", mixed, "--keys", apart.site.keys,
        "--out", results, says=["was written by hushcount job shuffle, must be the output of mix"],
    )  # fmt: skip
    assert len(charges(apart.site)) == 1, "the mix alone is charged"
    assert not results.exists()


@pytest.mark.parametrize("role", ["aux_server", "analyzer"])
def test_under_a_destroyed_key_reports_are_counted_and_nothing_else_is_made(apart: Apart, role: str) -> None:
    mixes = role == "analyzer"
    if mixes:
        assert apart.run("aux-server").problems == []
    before = charges(apart.site)
    apart.site.destroy(role)
    counts, passes = ("analyzer", "aux-server") if mixes else ("aux-server", "analyzer")
    (problem,) = apart.run(counts).problems
    assert f"{REPORTS} reports are counted as retired_key" in problem
    assert apart.run(passes).problems == []
    assert charges(apart.site) == before
    done = apart.fold(counts).hops_of(apart.batch)["analyze" if mixes else "mix"]
    assert done.counts.rejected == {"retired_key": REPORTS}
    assert not (apart.site.store / "results" / "words" / apart.batch / "estimates.parquet").exists()
    assert names(apart, "receipts", counts) == (["mix"] if mixes else ["shuffle"])
    for party in ORDER:
        assert (apart.run(party).problems, apart.late) == ([], set())
        assert apart.account(party).differences == []
    assert "analyze" in apart.fold("analyzer").hops_of(apart.batch), "nothing waits for ever"


def test_a_batch_of_which_the_auxiliary_server_can_open_nothing_passes_without_a_result(tmp_path: Path) -> None:
    site = NoiseSite(tmp_path, settings='analyzer_keys = "signing/public.json"\n', tail=KEEP)
    (segment,) = collect(site.store, site.campaign, values(3), day=0)
    spoil(segment, Campaign.read(site.campaign))
    apart = Apart(site)
    assert apart.run("shuffler").hops == [f"words/{apart.batch} shuffle"]
    (problem,) = apart.run("aux-server").problems
    assert "0 of 3 reports could be opened and accepted (not_opened 3)" in problem
    assert not (site.files("mixed", 0) / "reports").exists()
    assert charges(site) == []
    for party in ORDER[::-1]:
        assert (apart.run(party).problems, apart.late) == ([], set())
    for party in ORDER:
        assert apart.account(party).differences == []
    assert "analyze" in apart.fold("analyzer").hops_of(apart.batch)


def spoil(segment: Path, campaign: Campaign) -> None:
    """Change the last byte of each report in a segment, and let the manifest list what is there then."""
    with segment.open("rb") as stream:
        header = read_header(stream, segment.name)
        blocks = [read_block(stream, header, index) or b"" for index in range(header.blocks)]
    rows = np.frombuffer(b"".join(blocks), np.uint8).reshape(-1, header.record_bytes).copy()
    rows[:, -1] ^= 1
    write_file(
        str(segment), ENVELOPES["reports"], header.record_bytes, rows.tobytes(), campaign.fingerprint, campaign.id
    )
    manifest = segment.parents[1] / "one.manifest.json"
    said = json.loads(manifest.read_text())
    said["segments"]["reports"][0]["digest"] = hashlib.blake2b(segment.read_bytes(), digest_size=32).hexdigest()
    moment = manifest.stat().st_mtime
    manifest.write_text(json.dumps(said))
    os.utime(manifest, (moment, moment))


def test_one_operator_with_all_keys_charges_nothing_under_a_destroyed_analyzer_key(tmp_path: Path) -> None:
    site = NoiseSite(tmp_path)
    collect(site.store, site.campaign, values(REPORTS), day=0)
    site.destroy("analyzer")
    (problem,) = site.run(1.1).problems
    assert f"{REPORTS} reports are counted as retired_key" in problem
    assert charges(site) == []
    assert not (site.store / "mixed" / "words" / site.batch(0) / "reports").exists()
    assert site.run(1.2).is_quiet


def test_doctor_opens_the_key_that_signs_what_was_mixed_and_writes_there(apart: Apart) -> None:
    found = {one.name: one for one in examine(apart.site.of("aux-server"), at(1.3))}
    assert found["sign_with"].says.endswith(" of the aux_signer signs")
    assert found["write to mixed"].verdict == "good"


def test_a_segment_that_comes_back_after_its_windows_batch_is_counted_as_lost(tmp_path: Path) -> None:
    site = NoiseSite(tmp_path / "site")
    collect(site.store, site.campaign, values(REPORTS), day=0)
    (segment,) = collect(site.store, site.campaign, values(9), day=0, collector="two")
    aside = segment.rename(tmp_path / "aside")
    (problem,) = site.run(1.1).problems
    assert f"{segment.name} is missing" in problem
    assert site.result(0)["accepted"] == REPORTS
    aside.rename(segment)
    collect(site.store, site.campaign, values(REPORTS), day=1)
    assert site.run(2.1).problems == []
    shown = site.result(1)
    (shuffle,) = (hop for hop in shown["upstream"] if hop["hop"] == "shuffle")  # type: ignore[attr-defined]
    assert (shown["accepted"], shuffle["rejected"]) == (REPORTS, {"other_window": 9})
    assert account_at(site, 2.2, past=True, digests=True).differences == []
