"""Whole jobs give one result by either engine that opens, refusals and dead letters too, and count what each opened."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.many_clients import ManyClients
from hushcount.wire.sealing import Octets, Sealer
from keys.opening_engines import ENOUGH
from keys.private import PrivateKey
from pipelines.outputs.received_summary import read_summary
from sealed_lanes import NoLanes
from tests.pipelines.conftest import World
from tests.sealed_lanes.machine import of_this_machine
from tests.support.jobs import BEAM, Chain, done, found, new_campaign, refused, summary
from tests.support.opening import FakeLanes, put_lanes
from tests.support.records import dead_letters, in_order, private_key, write_shuffled

GOOD, SAID = 120, "unlisted"


@dataclass(frozen=True)
class Received:
    """What the shuffler handed on: good reports, and of each kind of bad ones some."""

    chain: Chain
    source: Path
    received: int

    def job(self, name: str, out: Path) -> tuple[object, ...]:
        common = ("--campaign", self.chain.campaign_path, "--keys", self.chain.keys, "--input", self.source)
        return ("job", name, *common, "--out", out)


@pytest.fixture(scope="module")
def received(world: World, tmp_path_factory: pytest.TempPathFactory) -> Received:
    root = tmp_path_factory.mktemp("opening")
    options = {"mechanism": "ss", "epsilon": 1.0, "dictionary": world.dictionary, "discovery": 2.0, "min_batch": 10}
    campaign = Campaign.read(new_campaign(root / "ours.json", world.keys, **options))
    other = Campaign.read(new_campaign(root / "other.json", world.keys, **options))
    client, stranger = (ManyClients(one) for one in (campaign, other))
    sealed: dict[Stream, tuple[Octets, Octets]] = {
        "reports": (client.reports(["alpha"] * GOOD), stranger.reports(["alpha"] * 4)),
        "discovery": (client.discovery_reports([SAID] * GOOD), stranger.discovery_reports([SAID] * 4)),
    }
    # Of every bin of so many one is kept for certain.
    assert len(campaign.require_keep_rule().optimal_thresholds) - 1 < GOOD
    malformed = b"\xff" * campaign.require_frequency().report_bytes
    box = Sealer(private_key(world.keys, "analyzer").public_key).seal(campaign.binding("reports") + malformed)
    streams: dict[Stream, list[Octets]] = {}
    for stream, (good, foreign) in sealed.items():
        altered, unknown = good[:7].copy(), np.random.default_rng(1).integers(0, 256, good[:5].shape, np.uint8)
        altered[np.arange(7), np.arange(7) * 8] ^= 1
        streams[stream] = [np.concatenate([altered, good, foreign]), unknown]
    streams["reports"].append(np.frombuffer(box, np.uint8)[np.newaxis])
    source = write_shuffled(root / "shuffled", campaign, streams)
    chain = Chain(root / "ours.json", world.keys)
    return Received(chain, source, GOOD + 4 + 7 + 5)


def no_lanes() -> object:
    raise NoLanes("this is a test")


def result(out: Path) -> tuple[dict[str, Any], dict[str, Any], list[object]]:
    """Return which engine opened what, and everything else: the summary, and the contents of the files."""
    said = summary(out)
    opening = [said, *said["upstream"]]
    counted = next(hop.pop("opening") for hop in opening if "opening" in hop)
    # It is the digest of a summary that has the counts.
    said.pop("made_from")
    letters = {
        reason: in_order(rows) for stream in ("reports", "discovery") for reason, rows in letters_of(out, stream)
    }
    files = [(out / name).read_bytes() for name in ("estimates.csv", "found.csv") if (out / name).exists()]
    tally = [np.load(out / "tally.npz")[name].tolist() for name in ("counts",) if (out / "tally.npz").exists()]
    return counted, said, [letters, *files, *tally]


def letters_of(out: Path, stream: Stream) -> list[tuple[str, Octets]]:
    return list(dead_letters(out, stream).items()) if (out / "dead_letter" / stream).exists() else []


ENGINES: dict[str, Callable[[], object]] = {
    "this machine's lanes": of_this_machine,
    "lanes": FakeLanes,
    "faulty lanes": lambda: FakeLanes(faulty=True),
}


@pytest.mark.parametrize(
    ("engine", "name"),
    [
        ("this machine's lanes", "analyze"),
        ("this machine's lanes", "discover"),
        ("lanes", "analyze"),
        ("faulty lanes", "analyze"),
        ("faulty lanes", "discover"),
    ],
)
def test_either_engine_gives_one_result(
    received: Received, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, engine: str
) -> None:
    made = ENGINES[engine]()
    put_lanes(monkeypatch, no_lanes)
    done(*received.job(name, tmp_path / "libsodium" / "out"))
    put_lanes(monkeypatch, lambda: made)
    done(*received.job(name, tmp_path / "lanes" / "out"))
    (before, *wanted), (after, *got) = (result(tmp_path / one / "out") for one in ("libsodium", "lanes"))
    assert got == wanted
    boxes = received.received + (name == "analyze")
    assert before == {"lanes": 0, "libsodium": boxes, "rescued": 0}
    assert (after["lanes"], after["libsodium"]) == (boxes, 0)
    assert (GOOD // 4 < after["rescued"] < GOOD // 2) if engine == "faulty lanes" else after["rescued"] == 0
    # The comparison saw something.
    said, (letters, content, *_) = wanted[0], wanted[1]
    hop = said if name == "analyze" else next(one for one in said["upstream"] if one["hop"] == "release")
    malformed = {"malformed": 1} if name == "analyze" else {}
    assert hop["rejected"] == {"not_opened": 12, "wrong_campaign": 4, **malformed}
    assert {reason: len(rows) for reason, rows in letters.items()} == hop["rejected"]
    assert name == "analyze" or (found(tmp_path / "lanes" / "out") == [SAID] and SAID.encode() in content)


def test_the_auxiliary_server_alone_says_what_opened(
    received: Received, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_lanes(monkeypatch, FakeLanes)
    done(*received.job("discover", tmp_path / "released"), "--party", "aux-server")
    assert summary(tmp_path / "released")["opening"] == {"lanes": received.received, "libsodium": 0, "rescued": 0}
    read = read_summary(str(tmp_path / "released" / "summary.json"))
    assert read.opening is not None
    assert read.opening.lanes == received.received


def test_too_few_opened_reports_are_counted_by_engine_too(
    received: Received, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipelines.jobs.analyze import plan_analyze
    from pipelines.jobs.job import run
    from pipelines.outputs.withheld import Withheld

    put_lanes(monkeypatch, lambda: FakeLanes(faulty=True))
    campaign = received.chain.campaign
    few = ManyClients(campaign).reports(["alpha"] * 9)
    source = write_shuffled(tmp_path / "in", campaign, {"reports": [few, few[:1] ^ 1]})
    with pytest.raises(Withheld) as caught:
        run(plan_analyze(received.chain.campaign_path, str(source), received.chain.keys, str(tmp_path / "out")))
    opening = caught.value.summary.data()["opening"]
    assert (opening["lanes"], opening["libsodium"], opening["rescued"] > 2) == (10, 0, True)


def test_a_small_job_makes_nothing(received: Received, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_lanes(monkeypatch, lambda: pytest.fail("the lanes were made"), ENOUGH)
    done(*received.job("analyze", tmp_path / "results"))
    done(*received.job("discover", tmp_path / "found"))


@pytest.mark.long
def test_a_small_job_imports_no_module_of_the_lanes(received: Received, tmp_path: Path) -> None:
    arguments = [str(argument) for argument in received.job("analyze", tmp_path / "out")]
    script = (
        "import sys\nfrom pipelines.cli import app\napp(standalone_mode=False)\n"
        "print([name for name in sys.modules if name.startswith('keys.')])"
    )
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=120, check=True
    )
    loaded = ran.stdout.splitlines()[-1]
    assert "keys.opening_engines" in loaded
    assert "lanes" not in loaded


@pytest.mark.parametrize("name", ["analyze", "discover"])
def test_a_variable_that_names_no_engine_is_refused_before_any_work(
    received: Received, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("HUSHCOUNT_OPENING", "gpu")
    refused(*received.job(name, tmp_path / "out"), says=["HUSHCOUNT_OPENING is 'gpu'", "libsodium"])
    assert not (tmp_path / "out").exists()


@pytest.mark.long
@pytest.mark.beam
def test_several_worker_processes_open_in_lanes_of_their_own(received: Received, tmp_path: Path) -> None:
    """And the counts of all of them are added up."""
    of_this_machine()
    campaign = received.chain.campaign
    # analyze, unlike shuffle, opens a copy as any report.
    good = np.tile(ManyClients(campaign).reports(["alpha"] * 100), (ENOUGH // 100 + 1, 1))
    good[::1000] = Sealer(PrivateKey.generate().public_key).seal_many(np.zeros((1, good.shape[1] - 48), np.uint8))
    source = write_shuffled(tmp_path / "in", campaign, {"reports": np.array_split(good, 5)})
    job = Received(received.chain, source, len(good)).job("analyze", tmp_path / "out")
    done(*job, *BEAM, "--", "--direct_running_mode=multi_processing", "--direct_num_workers=2")
    said = summary(tmp_path / "out")
    assert said["opening"] == {"lanes": len(good), "libsodium": 0, "rescued": 0}
    assert said["rejected"] == {"not_opened": len(good[::1000])}
