"""Many batches through one graph: each gives what it gives alone, in its own directory, and none holds up others."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hushcount.campaigns.campaign import Stream
from hushcount.collection.epochs import epoch_folder
from hushcount.errors import HushcountError, NotYet
from hushcount.wire.sealing import Octets
from pipelines.engine.runner import Engine
from pipelines.files import storage
from pipelines.files.orders import MOST_TOGETHER, Listed
from pipelines.handover.batch_file import BatchFile, BatchSegment
from pipelines.handover.retired import RetiredBatch
from pipelines.jobs import together
from pipelines.jobs.analyze import AnalyzeJob, plan_analyze
from pipelines.jobs.discover import plan_discover
from pipelines.jobs.job import run
from pipelines.jobs.shuffle import plan_shuffle
from pipelines.jobs.together import BatchJob, Outcome, on_engine, run_together
from pipelines.ledger.balance import OverLimit
from pipelines.ledger.charges import Charge
from pipelines.ledger.overview import describe, set_limit
from pipelines.outputs import dead_letter_files
from pipelines.outputs.staging import Writer
from pipelines.outputs.summary import HopSummary
from pipelines.outputs.withheld import Withheld
from tests.support.jobs import Chain, files_under, new_campaign, new_keys, values_of, write_lines
from tests.support.records import as_set, dead_letters, read_file, read_rows, write_rows
from tests.support.stub_store import PREFIX, StubStore

BATCHES = ("one", "two", "three")
STREAMS: tuple[Stream, ...] = ("reports", "discovery")
FLOOR = 50
SENT = {
    "one": {"alpha": 90, "beta": 50, "unlisted": 120},
    "two": {"alpha": 60, "beta": 20, "unlisted": 90, "other": 70},
    "three": {"beta": 110, "other": 150},
}
PRIVATE = Writer(private=True)
Plan = Callable[[Path | str, str], BatchJob]
"""From a directory for outputs and the name of a batch to its job."""


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """Three batches, encoded, shuffled and released."""
    root = tmp_path_factory.mktemp("made")
    keys, dictionary = new_keys(root / "keys"), write_lines(root / "items.txt", ["alpha", "beta"])
    path = new_campaign(root / "c.json", keys, dictionary=dictionary, discovery=4.0, min_batch=FLOOR)
    chain = Chain(path, keys)
    for name in BATCHES:
        chain.encode(write_lines(root / f"{name}.txt", values_of(SENT[name])), out=f"encoded/{name}")
        chain.shuffle(source=f"encoded/{name}", out=f"shuffled/{name}")
        chain.discover("--party", "aux-server", source=f"shuffled/{name}", out=f"released/{name}")
    return chain


def planned(job: BatchJob | RetiredBatch) -> BatchJob:
    assert isinstance(job, BatchJob)
    return job


def shuffle(chain: Chain) -> Plan:
    path, source = chain.campaign_path, chain.path("encoded")
    return lambda out, name: plan_shuffle(path, str(source / name), f"{out}/{name}", writer=PRIVATE)


def discover(chain: Chain, party: Any, source: str, ledger: Path | None = None) -> Plan:
    path, keys, given = chain.campaign_path, chain.keys, chain.path(source)
    return lambda out, name: planned(
        plan_discover(path, str(given / name), keys, f"{out}/{name}", party=party, ledger=ledger, writer=PRIVATE)
    )


def analyze(chain: Chain, source: Path | None = None, ledger: Path | None = None) -> Plan:
    path, keys, given = chain.campaign_path, chain.keys, source or chain.path("shuffled")
    return lambda out, name: planned(
        plan_analyze(path, str(given / name), keys, f"{out}/{name}", ledger=ledger, writer=PRIVATE)
    )


def release(chain: Chain, ledger: Path | None = None) -> Plan:
    return discover(chain, "aux-server", "shuffled", ledger)


def reveal(chain: Chain) -> Plan:
    return discover(chain, "analyzer", "released")


def all_of(plan: Plan, out: Path | str) -> list[Outcome]:
    return list(run_together([plan(out, name) for name in BATCHES], on_engine(Engine())))


def require_done(outcomes: Sequence[Outcome]) -> None:
    for one in outcomes:
        if isinstance(one.summary, Exception):
            raise one.summary


def require_same(plan: Plan, root: Path) -> None:
    """Raise AssertionError unless each batch has the files that it has alone, byte for byte, and no others."""
    require_done(all_of(plan, root / "together"))
    for name in BATCHES:
        run(plan(root / "alone", name), Engine())
    made, expected = files_under(root / "together"), files_under(root / "alone")
    assert made.keys() == expected.keys()
    assert [path for path in made if made[path] != expected[path]] == []
    assert {path.partition("/")[0] for path in made} == set(BATCHES)


# Each gives what it gives alone.

DRAWN_BEFORE: dict[str, Callable[[Chain], Plan]] = {"release": release, "reveal": reveal, "analyze": analyze}
"""Hops that draw nothing, or whose draw follows from their input."""


@pytest.mark.parametrize("hop", DRAWN_BEFORE)
@pytest.mark.usefixtures("either_engine")
def test_each_gives_byte_for_byte_what_it_gives_alone(chain: Chain, tmp_path: Path, hop: str) -> None:
    require_same(DRAWN_BEFORE[hop](chain), tmp_path)


@pytest.mark.parametrize("hop", DRAWN_BEFORE)
def test_outputs_in_each_others_directories_are_refused(
    chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hop: str
) -> None:
    """So that the test above can fail: the second batch is told the order of the first."""
    monkeypatch.setattr(Listed, "__call__", lambda listed, number: listed.orders[number // 2])
    with pytest.raises((AssertionError, HushcountError)):
        require_same(DRAWN_BEFORE[hop](chain), tmp_path)


@pytest.mark.usefixtures("either_engine")
def test_each_shuffle_forwards_the_reports_of_its_batch(chain: Chain, tmp_path: Path) -> None:
    outcomes = all_of(shuffle(chain), tmp_path)
    require_done(outcomes)
    assert [one.lost for one in outcomes] == [frozenset()] * 3
    for name, one in zip(BATCHES, outcomes, strict=True):
        alone = chain.path("shuffled") / name
        for stream in STREAMS:
            rows = read_rows(tmp_path / name / stream)
            assert as_set(rows) == as_set(read_rows(alone / stream))
            assert len(rows) == len(as_set(rows)) == sum(SENT[name].values())
            assert rows.tobytes() != read_rows(alone / stream).tobytes()
        assert isinstance(one.summary, HopSummary)
        assert (one.summary.received, one.summary.accepted) == (2 * len(rows), 2 * len(rows))
        assert {path.partition("/")[0] for path in files_under(tmp_path / name)} == {*STREAMS, "summary.json"}


def test_outputs_in_a_store_are_those_of_a_disk(chain: Chain, tmp_path: Path, store: type[StubStore]) -> None:
    for hop, plan in DRAWN_BEFORE.items():
        require_done(all_of(plan(chain), tmp_path / hop))
        require_done(all_of(plan(chain), f"{PREFIX}b/{hop}"))
        there = f"{PREFIX}b/{hop}/"
        found = {path.removeprefix(there): data for path, data in store.objects.items() if path.startswith(there)}
        assert found == files_under(tmp_path / hop)
    require_done(all_of(shuffle(chain), f"{PREFIX}b/shuffle"))
    for name in BATCHES:
        for stream in STREAMS:
            folder = f"{PREFIX}b/shuffle/{name}/{stream}/"
            (path,) = [path for path in store.objects if path.startswith(folder)]
            copy = tmp_path / "copies" / name / stream / "part.blocks"
            copy.parent.mkdir(parents=True)
            storage.copy(path, str(copy))
            assert as_set(read_rows(copy.parent)) == as_set(read_rows(chain.path("shuffled") / name / stream))


def test_of_large_tallies_one_graph_takes_fewer(chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker holds the tallies of all batches of a graph: two of these fit, so that the third is in another graph."""
    graphs, add = list[list[str]](), together.add_graph
    monkeypatch.setattr(
        together, "add_graph", lambda jobs, where, *rest: (graphs.append(list(where)), add(jobs, where, *rest))
    )
    job = analyze(chain)(tmp_path, "one")
    assert isinstance(job, AnalyzeJob)
    assert job.most == MOST_TOGETHER
    rows, width = job.steps.mechanism.encoder.tally_shape(job.steps.columns)
    monkeypatch.setattr("pipelines.jobs.analyze._MOST_CELLS", 3 * rows * width - 1)
    require_same(analyze(chain), tmp_path)
    assert graphs[:2] == [[f"{tmp_path}/together/{name}" for name in names] for names in (("one", "two"), ("three",))]
    monkeypatch.setattr("pipelines.jobs.analyze._MOST_CELLS", 0)
    assert job.most == 1


# Copies.


@pytest.fixture
def copied(chain: Chain, tmp_path: Path) -> Chain:
    """Batches that hold copies: the second of the first, the third of what was forwarded before all of them."""
    for path in (chain.campaign_path, chain.dictionary):
        shutil.copy(path, tmp_path)
    here = Chain(tmp_path / "c.json", chain.keys)
    shutil.copytree(chain.path("encoded"), here.path("encoded"))
    here.shuffle(source="encoded/one", out=f"shuffled/{before(chain)}")
    return here


def before(chain: Chain) -> str:
    """Return the name of the batch that was shuffled before."""
    return f"20260101T000000Z-{epoch_folder(chain.campaign)}"


def batch_of(here: Chain, names: Sequence[str], earlier: bool) -> BatchFile:
    """Return a batch of what some of the encoded ones hold."""
    campaign = here.campaign
    segments = {
        stream: tuple(
            BatchSegment(
                path=str(path.relative_to(here.path("encoded"))), records=header.records,
                bytes=header.file_bytes, digest="0" * 64,
            )
            for name in names
            for path in sorted((here.path("encoded") / name / stream).glob("*.blocks"))
            for header in (read_file(path)[0],)
        )
        for stream in STREAMS
    }  # fmt: skip
    return BatchFile(
        campaign=campaign.id, epoch=campaign.epoch, fingerprint=campaign.fingerprint.hex(), window="20260102T000000Z",
        segments_folder=str(here.path("encoded")), shuffled_folder=str(here.path("shuffled")),
        earlier=(before(here),) if earlier else (), segments=segments,
    )  # fmt: skip


def shuffles(here: Chain, holds: Sequence[tuple[Sequence[str], bool]]) -> list[BatchJob]:
    """Return shuffles of batches of the encoded ones, and whether they are compared with what was forwarded."""
    return [
        plan_shuffle(here.campaign_path, batch_of(here, names, earlier), f"{here.path('out')}/{number}", writer=PRIVATE)
        for number, (names, earlier) in enumerate(holds)
    ]


def accepted(outcome: Outcome) -> int:
    require_done([outcome])
    assert isinstance(outcome.summary, HopSummary)
    return outcome.summary.accepted_of("reports")


@pytest.mark.usefixtures("either_engine")
def test_a_report_leaves_once_and_who_lost_copies_says_to_whom(copied: Chain) -> None:
    two, three = (sum(SENT[name].values()) for name in ("two", "three"))
    outcomes = list(run_together(shuffles(copied, [(["two"], False), (["two", "three"], False)]), on_engine(Engine())))
    assert [accepted(one) for one in outcomes] == [two, three]
    assert [one.lost for one in outcomes] == [frozenset(), frozenset((stream, 0) for stream in STREAMS)]
    for number, name in ((0, "two"), (1, "three")):
        for stream in STREAMS:
            sent = read_rows(copied.path("encoded") / name / stream)[:, -copied.campaign.sealed_bytes(stream) :]
            assert as_set(read_rows(copied.path("out") / f"{number}" / stream)) == as_set(sent)


@pytest.mark.usefixtures("either_engine")
def test_what_was_forwarded_before_is_read_once_and_compared_with_all(
    copied: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reports of "one" are copies of what left in an earlier graph; both batches hold some of them."""
    graphs: list[Sequence[BatchJob]] = []
    add = together.add_graph
    monkeypatch.setattr(together, "add_graph", lambda jobs, *rest: (graphs.append(jobs), add(jobs, *rest)))
    outcomes = list(
        run_together(shuffles(copied, [(["two", "one"], True), (["one", "three"], True)]), on_engine(Engine()))
    )
    assert [accepted(one) for one in outcomes] == [sum(SENT[name].values()) for name in ("two", "three")]
    assert [one.lost for one in outcomes] == [frozenset()] * 2
    for one in outcomes:
        assert isinstance(one.summary, HopSummary)
        assert one.summary.streams["reports"].rejected == {"duplicate": sum(SENT["one"].values())}
    ((first, second),) = graphs
    assert [bool(job.inputs["released reports"]) for job in (first, second)] == [True, False]


def test_of_a_graph_in_which_copies_leave_twice_it_is_seen(copied: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the tests above can fail: batches that do not meet."""
    monkeypatch.setattr(together, "together", lambda: None)
    jobs = shuffles(copied, [(["two"], False), (["two", "three"], False)])
    with pytest.raises((AssertionError, HushcountError)):
        assert [accepted(one) for one in run_together(jobs, on_engine(Engine()))] == [240, 260]


# None holds up others.


def test_a_batch_that_is_too_small_waits_and_the_others_stand(chain: Chain, copied: Chain) -> None:
    few = copied.path("encoded") / "few"
    for stream in STREAMS:
        (path,) = (copied.path("encoded") / "two" / stream).glob("*.blocks")
        header, rows = read_file(path)
        write_rows(few / stream / path.name, header.kind, rows[: FLOOR - 1], chain.campaign)
    holds = [(["one"], False), (["few"], False), (["two", "three"], False)]
    first, second, third = run_together(shuffles(copied, holds), on_engine(Engine()))
    assert isinstance(second.summary, NotYet)
    assert not (copied.path("out") / "1" / "summary.json").exists()
    # The third lost copies to the second: whoever asks knows that nobody forwards them.
    assert (accepted(first), accepted(third)) == (260, 500 - (FLOOR - 1))
    assert (first.lost, third.lost) == (frozenset(), frozenset((stream, 1) for stream in STREAMS))


def spoiled(chain: Chain, root: Path, junk: dict[str, int]) -> Path:
    """Return shuffled batches in which so many reports of each stream cannot be opened."""
    shutil.copytree(chain.path("shuffled"), root)
    for name, number in junk.items():
        for stream in STREAMS:
            (path,) = (root / name / stream).glob("*.blocks")
            header, rows = read_file(path)
            rows = rows.copy()
            rows[:number, -1] ^= 1
            write_rows(path, header.kind, rows, chain.campaign)
    return root


def of_spoiled(chain: Chain, root: Path) -> dict[str, Plan]:
    path, keys = chain.campaign_path, chain.keys
    return {
        "analyze": analyze(chain, root),
        "release": lambda out, name: planned(
            plan_discover(path, str(root / name), keys, f"{out}/{name}", party="aux-server", writer=PRIVATE)
        ),
    }


def test_where_too_few_can_be_opened_one_is_withheld_and_the_others_stand(chain: Chain, tmp_path: Path) -> None:
    root = spoiled(chain, tmp_path / "shuffled", {"two": 200})
    for hop, plan in of_spoiled(chain, root).items():
        first, second, third = all_of(plan, tmp_path / hop)
        assert isinstance(second.summary, Withheld)
        assert second.summary.summary.accepted == 0
        assert not (tmp_path / hop / "two" / "summary.json").exists()
        for name, one in (("one", first), ("three", third)):
            require_done([one])
            run(plan(tmp_path / f"{hop} alone", name), Engine())
            assert files_under(tmp_path / hop / name) == files_under(tmp_path / f"{hop} alone" / name)


def test_dead_letters_lie_with_their_batch_and_no_other_takes_their_room(
    chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    junk = {"one": 3, "two": 25, "three": 7}
    root = spoiled(chain, tmp_path / "shuffled", junk)
    for hop, plan in of_spoiled(chain, root).items():
        stream: Stream = "reports" if hop == "analyze" else "discovery"
        most = 20
        monkeypatch.setattr(dead_letter_files, "MOST_DEAD_BYTES", most * chain.campaign.sealed_bytes(stream))
        outcomes = all_of(plan, tmp_path / hop)
        for name, one in zip(BATCHES, outcomes, strict=True):
            sealed = read_rows(root / name / stream)
            letters: Octets = dead_letters(tmp_path / hop / name, stream)["not_opened"]
            assert len(letters) == min(junk[name], most)
            assert as_set(letters) <= as_set(sealed[: junk[name]])
            require_done([one])
            assert isinstance(one.summary, HopSummary)
            assert one.summary.streams[stream].rejected["not_opened"] == junk[name]
            kept = {"kept": len(letters), "not_kept": junk[name] - len(letters)}
            assert one.summary.dead_letters == {stream: {"not_opened": kept}}


def fewer(chain: Chain, root: Path) -> Path:
    """Return shuffled batches of which the second has few reports, so that its release costs the most."""
    for name in BATCHES:
        source = chain.path("encoded") / name
        if name == "two":
            (path,) = (source / "reports").glob("*.blocks")
            header, rows = read_file(path)
            source = root / "few"
            write_rows(source / "reports" / path.name, header.kind, rows[: FLOOR + 1], chain.campaign)
        run(plan_shuffle(chain.campaign_path, str(source), str(root / "shuffled" / name)), Engine())
    return root / "shuffled"


def charges_of(ledger: Path) -> list[Charge]:
    return describe(ledger).charges


def test_what_a_ledger_has_no_room_for_is_not_in_the_graph_and_the_others_are_charged(
    chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = fewer(chain, tmp_path)
    costs = {}
    for name in BATCHES:
        ledger = tmp_path / f"{name}.db"
        run(analyze(chain, root, ledger)(tmp_path / "alone", name), Engine())
        (charge,) = charges_of(ledger)
        costs[name] = charge.epsilon
    assert costs["two"] > costs["three"]
    ledger, graphs = tmp_path / "ledger.db", list[list[str]]()
    set_limit(ledger, "c", costs["one"] + (costs["two"] + costs["three"]) / 2, 1e-3, None)
    add = together.add_graph
    monkeypatch.setattr(
        together, "add_graph", lambda jobs, where, *rest: (graphs.append(list(where)), add(jobs, where, *rest))
    )
    first, second, third = all_of(analyze(chain, root, ledger), tmp_path / "together")
    require_done([first, third])
    assert isinstance(second.summary, OverLimit)
    assert graphs == [[f"{tmp_path}/together/{name}" for name in ("one", "three")]]
    assert not (tmp_path / "together" / "two").exists()
    assert [charge.epsilon for charge in charges_of(ledger)] == [costs["one"], costs["three"]]
    for name in ("one", "three"):
        # All but the ledger's account.
        made, alone = (files_under(tmp_path / where / name) for where in ("together", "alone"))
        assert made.pop("summary.json") != alone.pop("summary.json")
        assert made.keys() == alone.keys()
        assert {path for path in made if made[path] != alone[path]} <= {"report.html"}


def test_who_stops_in_between_leaves_the_rest_undone_and_uncharged(chain: Chain, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    plan = analyze(chain, ledger=ledger)
    outcomes = run_together([plan(tmp_path, name) for name in BATCHES], on_engine(Engine()))
    require_done([next(outcomes)])
    outcomes.close()
    assert [(tmp_path / name / "summary.json").exists() for name in BATCHES] == [True, False, False]
    assert [charge.state for charge in charges_of(ledger)] == ["committed"]
    # What was not charged can be made by the next graph, and what was is not charged again.
    shutil.rmtree(tmp_path / "one")
    for name in ("two", "three"):
        shutil.rmtree(tmp_path / name)
    require_done(all_of(plan, tmp_path))
    assert len(charges_of(ledger)) == 3
