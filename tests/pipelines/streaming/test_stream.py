"""A run and a stream side by side: the run decides, the stream carries out, and what comes out is the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from apache_beam.io.restriction_trackers import OffsetRange
from apache_beam.io.watermark_estimators import ManualWatermarkEstimator

from hushcount.errors import UsageError
from pipelines.engine.runner import Engine
from pipelines.files import storage
from pipelines.files.leases import Lease
from pipelines.files.moving import move_directory
from pipelines.jobs import together
from pipelines.jobs.together import BatchJob
from pipelines.outputs.counting import take_counts
from pipelines.streaming import order_book, ordering
from pipelines.streaming.order_book import MOST_NUMBER, OrderBook, OrderFile
from pipelines.streaming.stream import carried_by, stream
from pipelines.streaming.watch import _LISTED_EVERY, WatchOrders, _Tracker
from tests.support.collecting import add_copies, collect
from tests.support.jobs import files_under
from tests.support.site import Site, account_at, site_of, values
from tests.support.streams import QUICK, carry_out, streaming

DAYS = 3


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "PATIENCE", QUICK)


@pytest.fixture
def itself(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many batches were in each graph that the run ran itself."""
    real, ran = together._run_graph, list[int]()

    def run_graph(jobs: Sequence[BatchJob], engine: Engine, console: Any) -> None:
        ran.append(len(jobs))
        real(jobs, engine, console)

    monkeypatch.setattr(together, "_run_graph", run_graph)
    return ran


def collected(root: Path, *, discovery: bool = True) -> Site:
    """Return a site with windows that wait, of which the second has copies of the first, too."""
    site = site_of(root, discovery=discovery)
    segments = [collect(site.store, site.campaign, values(200 + day), day=day)[0] for day in range(DAYS)]
    add_copies(segments[0], segments[1])
    return site


def tallies(site: Site) -> list[dict[str, Any]]:
    found = []
    for day in range(DAYS):
        with np.load(site.files("results", day) / "tally.npz") as file:
            found.append({name: file[name].tolist() for name in file.files})
    return found


def counted(site: Site) -> list[tuple[object, ...]]:
    results = [site.result(day) for day in range(DAYS)]
    return [(one["received"], one["accepted"], one["rejected"], one["streams"]) for one in results]


def orders(site: Site) -> list[str]:
    return [name for name in files_under(site.store) if name.startswith("orders/") and name.endswith(".json")]


def attempts(site: Site) -> list[str]:
    return [name for name in files_under(site.store) if name.startswith("attempts/")]


def test_what_a_stream_carries_out_is_what_a_run_alone_makes(tmp_path: Path, itself: list[int]) -> None:
    alone = collected(tmp_path / "alone")
    site = alone.copied(tmp_path / "site")
    assert alone.run(5.1, sure=True).problems == []
    itself.clear()
    with streaming(site.deployment) as ran:
        finished = site.run(5.1, sure=True)
    assert finished.problems == []
    assert (itself, ran) == ([], [(hop, DAYS) for hop in ("shuffle", "release", "discover", "analyze")])
    assert counted(site) == counted(alone)
    assert [received for received, *_ in counted(site)] == [200, 201, 202]
    assert tallies(site) == tallies(alone)
    assert account_at(site, 5.2).differences == []
    assert (orders(site), attempts(site)) == ([], [])
    assert site.run(5.2, sure=True).is_quiet


def test_one_run_after_the_other_finds_the_same_stream(tmp_path: Path, itself: list[int]) -> None:
    site = Site(tmp_path)
    with streaming(site.deployment) as ran:
        for day in range(DAYS):
            collect(site.store, site.campaign, values(100 + day), day=day)
            assert site.run(day + 1.1).problems == []
    assert (itself, ran) == ([], [("shuffle", 1), ("analyze", 1)] * DAYS)
    assert [site.result(day)["received"] for day in range(DAYS)] == [100, 101, 102]
    assert account_at(site, DAYS + 0.2).differences == []


def test_a_batch_that_is_too_small_leaves_no_report_anywhere(tmp_path: Path, itself: list[int]) -> None:
    site = Site(tmp_path)
    collect(site.store, site.campaign, values(20), day=0)
    with streaming(site.deployment):
        assert site.run(1.1).problems == []
        assert (attempts(site), files_under(site.store / "shuffled")) == ([], {})
        collect(site.store, site.campaign, values(40), day=1)
        assert site.run(2.1).problems == []
    assert itself == []
    assert site.result(1)["received"] == 60


def test_a_stream_loses_to_one_batch_what_it_keeps_in_another_only_if_that_is_done(
    tmp_path: Path, itself: list[int]
) -> None:
    """The second batch loses its copies to the first, keeps too few, and goes back; the third has copies of these."""
    site = site_of(tmp_path)
    first, second, third = (
        collect(site.store, site.campaign, values(number), day=day)[0] for day, number in enumerate((100, 20, 60))
    )
    add_copies(second, third)
    add_copies(first, second)
    with streaming(site.deployment) as ran:
        assert site.run(4.1, sure=True).problems == []
    assert (itself, ran) == ([], [("shuffle", 3), ("shuffle", 1), ("analyze", 2)])
    assert site.result(2)["received"] == 80
    assert account_at(site, 4.2).differences == []


def test_what_was_published_later_is_carried_out_by_the_run(tmp_path: Path, itself: list[int]) -> None:
    site = Site(tmp_path)
    with streaming(site.deployment) as ran:
        collect(site.store, site.campaign, values(100), day=0)
        assert site.run(1.1).problems == []
        later = site.publish(2)
        collect(site.store, later, values(90), day=1)
        assert site.run(2.1).problems == []
    assert (ran, itself) == ([("shuffle", 1), ("analyze", 1)], [1, 1])
    assert (site.result(0)["received"], site.result(1, 2)["received"]) == (100, 90)


def test_an_analysis_of_what_was_found_is_left_to_the_run(tmp_path: Path) -> None:
    class Open(Site):
        mechanism, open_domain = "ais", True

    steps, left = carried_by(Open(tmp_path, discovery=True).deployment)
    assert {party: [name.split()[1] for name in found] for party, found in steps.items()} == {
        "shuffler": ["shuffle"],
        "aux-server": ["release"],
        "analyzer": ["discover"],
    }
    (line,) = left
    assert line.startswith("words/1-")
    assert "say which items to count" in line


def test_a_file_that_vanished_costs_its_own_batch_only(tmp_path: Path, itself: list[int]) -> None:
    site = collected(tmp_path, discovery=False)

    def lose(book: OrderBook, order: OrderFile) -> None:
        if len(order.batches) == DAYS and order.hop == "analyze":
            Path(order.batches[1].files["reports"][0][0]).unlink()

    with streaming(site.deployment, lose) as ran:
        (problem,) = site.run(5.1, sure=True).problems
    assert site.batch(1) in problem
    assert "the engine read" in problem
    assert (itself, ran) == ([], [("shuffle", DAYS), ("analyze", DAYS)])
    assert [site.result(day)["received"] for day in (0, 2)] == [200, 202]
    assert orders(site) == []


@pytest.mark.parametrize("carried_out", [0, 1])
def test_a_run_goes_on_alone_when_the_stream_stands_still(tmp_path: Path, itself: list[int], carried_out: int) -> None:
    """It was killed on another machine, before its order or in the middle of it."""
    site = collected(tmp_path)
    party, (lease, steps) = "shuffler", leave_lease(site)
    halfway = [False]

    real = ordering._await

    def meanwhile(*arguments: Any) -> bool:
        if carried_out and not halfway[0]:
            halfway[0] = True
            book = OrderBook.of(site.deployment, "shuffler")
            order = book.read(1)
            assert order is not None
            carry_out(book, steps, 1, order)
            # It had not come to the last one.
            (Path(book.attempts) / order.batches[-1].directory / ".counts.json").unlink()
        return real(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordering, "_await", meanwhile)
        finished = site.run(5.1, sure=True)
    assert finished.problems == []
    assert not lease.exists(), party
    assert itself == [DAYS] * 4
    assert [received for received, *_ in counted(site)] == [200, 201, 202]
    assert account_at(site, 5.2).differences == []
    assert (orders(site), attempts(site)) == ([], [])


def leave_lease(site: Site) -> tuple[Path, Any]:
    """Leave the lease of a stream of the shuffler on another machine that was killed."""
    steps = carried_by(site.deployment)[0]["shuffler"]
    lease = Path(OrderBook.of(site.deployment, "shuffler").lease)
    lease.parent.mkdir(parents=True)
    digests = tuple(one.digest for one in steps.values())
    lease.write_text(Lease(owner="f" * 16, counter=7, carries=digests).model_dump_json())
    return lease, steps


def test_a_run_goes_on_alone_when_the_job_of_a_stream_does_nothing(
    tmp_path: Path, itself: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its command is at work, and its engine has no place for the job."""
    monkeypatch.setattr(ordering, "PATIENCE", replace(QUICK, still=60.0, asked=0.5))
    site = Site(tmp_path)
    collect(site.store, site.campaign, values(100), day=0)
    lease, _ = leave_lease(site)
    assert site.run(1.1).problems == []
    assert (lease.exists(), itself, orders(site), attempts(site)) == (False, [1, 1], [], [])
    assert site.result(0)["received"] == 100


def test_a_stream_that_ended_in_order_is_not_waited_for(tmp_path: Path, itself: list[int]) -> None:
    site = Site(tmp_path)
    collect(site.store, site.campaign, values(100), day=0)
    with streaming(site.deployment):
        pass
    assert orders(site) == []
    assert site.run(1.1).problems == []
    assert itself == [1, 1]


@pytest.mark.parametrize("forgotten", [False, True])
def test_what_an_engine_repeats_after_its_counts_changes_no_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgotten: bool
) -> None:
    """It writes where nobody reads any more; a worker that no longer knows the order writes nothing."""
    site = collected(tmp_path)
    steps = carried_by(site.deployment)[0]
    taken, repeated = dict[str, tuple[OrderBook, OrderFile]](), list[str]()
    real = move_directory

    def note(book: OrderBook, order: OrderFile) -> None:
        taken[order.batches[0].directory] = book, order

    def take(directory: str, target: str, last: str) -> None:
        """Repeat all of the first batch's order between the take and the look at what was taken."""
        real(directory, target, last)
        for below, (book, order) in list(taken.items()):
            if directory.endswith(below):
                if forgotten:
                    order_book._kept.cache_clear()
                number = OrderBook._newest(book)
                carry_out(book, {**steps["shuffler"], **steps["aux-server"], **steps["analyzer"]}, number, order)
                assert Path(directory).exists() is not forgotten
                repeated.append(order.hop)

    monkeypatch.setattr("pipelines.streaming.ordering.move_directory", take)
    with streaming(site.deployment, note):
        assert site.run(5.1, sure=True).problems == []
    assert repeated == ["shuffle", "release", "discover", "analyze"]
    assert [received for received, *_ in counted(site)] == [200, 201, 202]
    assert account_at(site, 5.2, digests=True).differences == []
    assert site.run(5.2, sure=True).problems == []
    assert attempts(site) == []


def test_a_batch_without_a_file_has_counts_too(tmp_path: Path) -> None:
    site = Site(tmp_path)
    steps = carried_by(site.deployment)[0]["analyzer"]
    ((_, one),) = steps.items()
    book = OrderBook.of(site.deployment, "analyzer")
    data = {"format": 1, "stream": "f" * 16, "hop": "analyze", "campaign": "words", "fingerprint": "0" * 64}
    batches = [{"directory": name, "files": {"reports": [["gone.blocks", 3]] if name == "b" else []}} for name in "ab"]
    made = OrderFile.model_validate({**data, "steps": one.digest, "batches": batches})
    assert book.put(lambda: made) == (1, made)
    carry_out(book, steps, 1, made)
    assert [take_counts(storage.join(book.attempts, name)) for name in "ab"] == [{"written:order": 0}] * 2


def test_a_second_stream_is_refused(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.config.write_text(site.config.read_text() + '\n[engine]\nrunner = "PrismRunner"\n')
    with streaming(site.deployment), pytest.raises(UsageError, match=r"another stream is at work, by its lease"):
        stream(site.deployment, carried_by(site.deployment)[0], patience=QUICK)


@pytest.mark.parametrize("runner", ["FnApiRunner", "DirectRunner"])
def test_an_engine_that_ends_with_its_input_is_refused(tmp_path: Path, runner: str) -> None:
    site = Site(tmp_path)
    site.config.write_text(f'{site.config.read_text()}\n[engine]\nrunner = "{runner}"\n')
    with pytest.raises(UsageError, match=rf"engine\.runner is {runner}"):
        stream(site.deployment, carried_by(site.deployment)[0])
    assert orders(site) == []


class Tracked:
    """A restriction as an engine gives it to a step."""

    def __init__(self, numbers: OffsetRange) -> None:
        self._tracker, self.deferred = _Tracker(numbers), False
        self.current_restriction, self.try_claim = self._tracker.current_restriction, self._tracker.try_claim

    def defer_remainder(self, _: object) -> None:
        self.deferred = True


def test_a_job_ends_once_the_command_that_started_it_is_gone(tmp_path: Path) -> None:
    book = OrderBook(str(tmp_path / "orders"), str(tmp_path / "attempts"))
    watch, mine, lease = WatchOrders("0" * 16, 0.0), "0" * 16, Path(book.lease)
    lease.parent.mkdir()
    watch.setup()

    def looks(owner: str | None) -> list[bool]:
        """Look as often as it takes to list the orders four times; return whether it went on after each look."""
        lease.write_text(Lease(owner=owner, counter=1).model_dump_json()) if owner else lease.unlink(missing_ok=True)
        went_on = []
        for _ in range(4 * _LISTED_EVERY):
            tracker = Tracked(OffsetRange(1, MOST_NUMBER + 1))
            assert list(watch.process(book, tracker, ManualWatermarkEstimator(None))) == []
            went_on.append(tracker.deferred)
        return went_on

    assert all(looks(mine))
    # Nobody holds it; or another stream does.
    for owner in (None, "1" * 16):
        assert looks(owner).index(False) == 3 * _LISTED_EVERY - 1
        assert all(looks(mine))
