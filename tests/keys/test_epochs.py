"""Two epochs with a rotation between them, through the jobs: what is opened, and what is only counted."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from keys.directories import create
from keys.rotation import retire, rotate
from pipelines.handover.retired import CountedRetired, RetiredBatch
from pipelines.jobs.analyze import plan_analyze
from pipelines.jobs.discover import plan_discover
from pipelines.jobs.job import run
from tests.pipelines.jobs.test_secrets import Recorder, unfolded
from tests.support.jobs import Chain, done, files_under, found, new_campaign, refused, summary, write_lines

LINES = ["alpha"] * 60 + ["beta"] * 40 + ["unlisted"] * 60


@dataclass(frozen=True)
class Epochs:
    """A collection under the first key, and one under the second; neither analysed yet."""

    first: Chain
    second: Chain
    keys: Path

    def key(self, chain: Chain, role: str) -> str:
        (part,) = getattr(chain.campaign.keys, role)
        return str(part.id)


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Epochs:
    """Keys of two days ago, a collection, a rotation of yesterday, another collection."""
    root, now = tmp_path_factory.mktemp("epochs"), datetime.now(timezone.utc)
    keys = root / "keys"
    create(keys, days=30, now=now - timedelta(days=2))
    words, values = write_lines(root / "words.txt", ["alpha", "beta"]), write_lines(root / "v.txt", LINES)

    def collect(name: str) -> Chain:
        chain = Chain(new_campaign(root / f"{name}.json", keys, dictionary=words, discovery=2.0), keys)
        chain.encode(values)
        chain.shuffle()
        return chain

    first = collect("first")
    rotate(keys, overlap=timedelta(days=7), now=now - timedelta(days=1))
    return Epochs(first, collect("second"), keys)


@pytest.fixture
def epochs(collected: Epochs, tmp_path: Path) -> Epochs:
    """A copy, to retire keys in."""
    shutil.copytree(collected.keys.parent, tmp_path / "copy")
    keys = tmp_path / "copy" / "keys"
    return Epochs(Chain(tmp_path / "copy/first.json", keys), Chain(tmp_path / "copy/second.json", keys), keys)


def retire_early(epochs: Epochs, role: str) -> str:
    """Retire the first epoch's key of a role."""
    id = epochs.key(epochs.first, role)
    retire(epochs.keys, id, early=True)
    return id


def test_reports_under_an_expiring_key_are_still_opened(epochs: Epochs) -> None:
    assert epochs.key(epochs.first, "analyzer") != epochs.key(epochs.second, "analyzer")
    states = {key["id"]: key["state"] for key in done("keys", "list", "--keys", epochs.keys, "--json").json["keys"]}
    for chain, state in ((epochs.first, "expiring"), (epochs.second, "active")):
        assert states[epochs.key(chain, "analyzer")] == states[epochs.key(chain, "aux_server")] == state
        assert summary(chain.analyze())["accepted"] == len(LINES)
        assert found(chain.discover()) == ["unlisted"]


@pytest.mark.parametrize("job", ["analyze", "discover"])
def test_under_a_retired_key_all_reports_are_counted_and_nothing_else_is_made(epochs: Epochs, job: str) -> None:
    role, stream = {"analyze": ("analyzer", "reports"), "discover": ("aux_server", "discovery")}[job]
    id, chain = retire_early(epochs, role), epochs.first
    arguments = chain.analyze_arguments() if job == "analyze" else chain.discover_arguments(out="results")
    ledger = epochs.keys.parent / "book.db"
    run = refused(
        *arguments, "--ledger", ledger, status=1,
        says=[
            f"{role} key {id} was retired on",
            f"{len(LINES)} reports",
            f"retired_key in {chain.path('results')}",
        ],
    )  # fmt: skip
    assert run.out == ""
    assert [path.name for path in chain.path("results").iterdir()] == ["summary.json"]
    assert not ledger.exists(), "nothing was released, so nothing is charged"
    counted = summary(chain.path("results"))
    expected = {"received": len(LINES), "accepted": 0, "rejected": {"retired_key": len(LINES)}}
    assert counted["streams"] == {stream: expected}
    assert counted["hop"] == job
    assert [hop["hop"] for hop in counted["upstream"]] == ["encode", "shuffle"]
    refused(*arguments, says=["--overwrite"])
    refused(*arguments, "--overwrite", status=1, says=["retired_key"])
    assert summary(epochs.second.analyze())["accepted"] == len(LINES)


def test_whoever_calls_the_job_gets_the_number_with_the_exception(epochs: Epochs, tmp_path: Path) -> None:
    id = retire_early(epochs, "analyzer")
    source = str(epochs.first.path("shuffled"))
    with pytest.raises(CountedRetired) as caught:
        run(plan_analyze(epochs.first.campaign_path, source, epochs.keys, str(tmp_path / "out")))
    assert (caught.value.id, caught.value.reports) == (id, len(LINES))
    assert caught.value.summary.data() == summary(tmp_path / "out")


def test_a_plan_for_a_destroyed_key_has_no_graph_and_writes_nothing(epochs: Epochs, tmp_path: Path) -> None:
    retire_early(epochs, "analyzer")
    source = str(epochs.first.path("shuffled"))
    job = plan_analyze(epochs.first.campaign_path, source, epochs.keys, str(tmp_path / "out"))
    assert isinstance(job, RetiredBatch)
    assert not list(tmp_path.glob("out*"))


def test_a_batch_goes_on_without_the_auxiliary_servers_key(epochs: Epochs) -> None:
    """Its discovery reports are counted, nothing is found, and the frequencies are what they are."""
    retire_early(epochs, "aux_server")
    chain = epochs.first
    released = (*chain.discover_arguments(out="released"), "--party", "aux-server")
    refused(*released, status=1, says=[f"{len(LINES)} reports", "retired_key"])
    chain.discover("--party", "analyzer", source="released")
    assert found(chain.path("found")) == []
    assert summary(chain.path("found"))["upstream"][-1]["rejected"] == {"retired_key": len(LINES)}
    assert summary(chain.analyze("--found", chain.path("found")))["accepted"] == len(LINES)


def test_what_the_analyzer_cannot_open_any_more_is_not_released(epochs: Epochs) -> None:
    """With both parties on one machine: the auxiliary server's draw would be made, and charged, for nothing."""
    retire_early(epochs, "analyzer")
    refused(*epochs.first.discover_arguments(), status=1, says=["analyzer key", f"{len(LINES)} reports"])
    assert summary(epochs.first.path("found"))["streams"]["discovery"]["rejected"] == {"retired_key": len(LINES)}


def test_released_records_are_counted_too(epochs: Epochs) -> None:
    chain = epochs.first
    chain.discover("--party", "aux-server", out="released")
    retire_early(epochs, "analyzer")
    arguments = (*chain.discover_arguments(source="released"), "--party", "analyzer")
    refused(*arguments, status=1, says=["1 released records", "retired_key"])
    counted = summary(chain.path("found"))
    assert counted["bins"] == {"kept": 1, "found": 0, "rejected": {"retired_key": 1}}
    assert counted["streams"]["discovery"]["accepted"] == len(LINES)
    (file,) = (chain.path("released") / "bins").glob("*.blocks")
    file.unlink()
    refused(*arguments, "--overwrite", says=["a file is missing"])


def test_an_incomplete_batch_is_refused_before_it_is_counted(epochs: Epochs) -> None:
    retire_early(epochs, "analyzer")
    next((epochs.first.path("shuffled") / "reports").glob("*.blocks")).unlink()
    refused(*epochs.first.analyze_arguments(), says=["reports files hold 0 records"])
    assert not epochs.first.path("results").exists()


@pytest.mark.beam
def test_the_jobs_open_with_a_key_from_the_environment(
    collected: Epochs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graphs name the variable; neither they nor the output hold what is in it."""
    chain, keys = collected.first, collected.keys
    files = {role: keys / f"{role}-{collected.key(chain, role)}.key" for role in ("analyzer", "aux_server")}
    monkeypatch.setenv("HUSHCOUNT_TEST_BOTH", "".join(path.read_text() for path in files.values()))
    monkeypatch.setenv("HUSHCOUNT_TEST_HEX", json.loads(files["analyzer"].read_text())["secret"])
    engine, source = Recorder(), str(chain.path("shuffled"))
    job = plan_analyze(chain.campaign_path, source, "env:HUSHCOUNT_TEST_HEX", str(tmp_path / "results"))
    analyzed = run(job, engine)
    run(plan_discover(chain.campaign_path, source, "env:HUSHCOUNT_TEST_BOTH", str(tmp_path / "found")), engine)
    assert analyzed.accepted == len(LINES)
    assert found(tmp_path / "found") == ["unlisted"]
    graphs = [unfolded(graph) for graph in engine.graphs]
    assert [b"env:HUSHCOUNT_TEST_HEX" in graph for graph in graphs] == [True, False, False]
    assert [b"env:HUSHCOUNT_TEST_BOTH" in graph for graph in graphs] == [False, True, True]
    secrets = [bytes.fromhex(json.loads(path.read_text())["secret"]) for path in files.values()]
    for content in (*graphs, *files_under(tmp_path).values()):
        assert not any(secret[:8] in content or secret.hex()[:16].encode() in content for secret in secrets)
    arguments = ("--input", source, "--keys", "env:HUSHCOUNT_TEST_HEX", "--out", tmp_path / "again")
    done("job", "analyze", "--campaign", chain.campaign_path, *arguments)
    refused(
        "job", "discover", "--campaign", chain.campaign_path, *arguments[:-1], tmp_path / "none",
        says=["HUSHCOUNT_TEST_HEX"],
    )  # fmt: skip
