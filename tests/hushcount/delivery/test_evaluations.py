"""One evaluation and one discovery report for every value, and nothing of the value in either, on disk or in a log."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from hushcount.budget import Budget
from hushcount.delivery import Delivery, Site
from hushcount.delivery.making import Maker
from hushcount.errors import NotYet, UsageError
from hushcount.report_making import Measurement
from tests.hushcount.delivery.evaluating import NEW, evaluating, hash_of, is_on_disk, pass_time, read, values
from tests.hushcount.delivery.fake_collector import REPORTED, FakeCollector, oblivious, refused, sender, wait_for
from tests.hushcount.delivery.test_arrivals import NOON
from tests.support.clocks import Hands

KINDS = {
    "new": NEW,
    "listed": REPORTED,
    "too long": "longer than the 32 bytes that this campaign allows",
    "empty": "",
    "no item": "a\x00b",
    "no text": "\ud800",
}


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with evaluating() as one:
        yield one


def test_every_value_has_one_evaluation_and_one_report_of_the_same_sizes(
    subtests: pytest.Subtests, tmp_path: Path
) -> None:
    for number, kind in enumerate([*KINDS, "budget spent"]):
        home = tmp_path / str(number)
        home.mkdir()
        with evaluating() as collector, subtests.test(kind=kind):
            spent = Budget(home / "budget.json", lifetime=0.5) if kind == "budget spent" else None
            one = sender(collector, home / "own", budget=spent)
            one.report(KINDS.get(kind, NEW))
            assert one.deliver() == Delivery(sent=2)
            (asked,) = collector.asked
            assert len(asked.blinded) == 32
            assert [len(report) for report in collector.received("discovery")] == [
                oblivious().sealed_bytes("discovery")
            ]
            assert values(collector) == [NEW if kind == "new" else None]
            events = ["fetched", "queued", "answered", "sent", "sent"]
            assert [event.what for event in one.log] == events
            assert {asked.fingerprint} == {post.fingerprint for post in collector.posts}


def test_equal_values_have_one_name_and_each_report_asks_anew(collector: FakeCollector, tmp_path: Path) -> None:
    for number in range(2):
        one = sender(collector, tmp_path / str(number))
        for value in (NEW, NEW, REPORTED, "other"):
            one.report(value)
        assert one.deliver() == Delivery(sent=8)
    hashes = Counter(read(report)[0] for report in collector.received("discovery"))
    assert {name: number for name, number in hashes.items() if number > 1} == {hash_of(NEW): 4, hash_of("other"): 2}
    assert len(set(collector.evaluations)) == len(collector.evaluations) == 8
    assert [len(asked.elements) for asked in collector.asked] == [4, 4], "what is due together is asked together"


def test_a_evaluation_waits_a_random_time_that_is_drawn_alike_for_every_value(
    collector: FakeCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = sender(collector, delay=timedelta(hours=1))
    begun = time.time()
    for _ in range(4):
        for value in KINDS.values():
            one.report(value)
    assert one.deliver() == Delivery(waiting=48)
    assert collector.asked == []
    waits = [evaluation.due - begun for evaluation in one._evaluations._open]
    assert len(waits) == 24
    assert all(0.0 <= wait < 3700.0 for wait in waits)
    # 24 uniform draws fall into one half of the hour with probability 1.2e-7.
    assert min(waits) < 1800.0 < max(waits)
    drawn: list[float] = []

    def half(most: float) -> float:
        drawn.append(most)
        return most / 2

    monkeypatch.setattr("hushcount.delivery.making.random_seconds", half)
    client = one._present.client()
    assert client is not None
    for value in KINDS.values():
        drawn.clear()
        made = Maker(600.0, 60.0).made(client, "discovery", Measurement(value), keep_value=False)
        assert drawn == [600.0, 600.0]
        assert made.evaluation is not None
        assert (made.evaluation.until - made.evaluation.due, made.waiting.claimed_until) == (
            60.0,
            made.evaluation.until,
        )
        assert made.waiting.due == made.evaluation.until + 300.0


def test_a_finished_report_waits_a_time_of_its_own(collector: FakeCollector) -> None:
    one = sender(collector, delay=timedelta(hours=1))
    for _ in range(20):
        one.report(NEW)
    pass_time(one, 3600.0)
    done = one.deliver()
    assert (len(collector.evaluations), done.sent, done.waiting) == (20, 20, 20)
    dues = [
        row.due - time.time() for row in one._queue.claim(0.0, 100, 10**6, False, True, one._arrivals.turns()()).waiting
    ]  # type: ignore[union-attr]
    assert all(0.0 < due < 3600.0 for due in dues)
    assert min(dues) < 1800.0 < max(dues)


def test_no_value_is_on_disk_before_or_after_the_answer(collector: FakeCollector, tmp_path: Path) -> None:
    one = sender(collector, tmp_path / "own")
    one.report(NEW)
    assert not is_on_disk(tmp_path / "own")
    collector.down = True
    assert one.deliver().waiting == 2
    assert len(collector.evaluations) == 1
    assert not is_on_disk(tmp_path / "own")
    assert NEW not in repr(one._evaluations._open) + repr(one.log) + repr(one._queue)
    keeping = sender(collector, tmp_path / "keeping", keep_values=True)
    keeping.report(NEW)
    assert is_on_disk(tmp_path / "keeping")


def test_evaluations_of_one_campaign_file_that_are_due_together_go_in_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hushcount.delivery.evaluations.MOST_EVALUATIONS", 3)
    with evaluating() as collector:
        one = sender(collector, tmp_path)
        for number in range(4):
            one.report(f"new-{number}")
        collector.epochs.append(oblivious(collector.campaign))
        collector.accepted = {epoch.fingerprint.hex() for epoch in collector.epochs}
        one._present.refreshed(anyway=True)
        one.report(NEW)
        assert one.deliver() == Delivery(sent=10)
        assert [len(asked.elements) for asked in collector.asked] == [3, 1, 1]
        assert len({asked.fingerprint for asked in collector.asked}) == 2
        found = {
            read(report, epoch)[1]
            for post, epoch in zip(
                [p for p in collector.posts if p.stream == "discovery"], collector.epochs, strict=True
            )
            for report in post.reports
        }
        assert found == {*(f"new-{number}" for number in range(4)), NEW}


def test_a_value_that_is_made_anew_under_the_next_epoch_is_asked_for_again(collector: FakeCollector) -> None:
    one = sender(collector, keep_values=True)
    one.report(NEW)
    collector.epochs.append(oblivious(collector.campaign))
    done = one.deliver(early=True)
    assert (done.sent, done.remade, done.dropped, done.blank) == (2, 2, {}, {})
    assert [asked.fingerprint for asked in collector.asked] == [one.fingerprint.hex() for one in collector.epochs]
    (report,) = collector.received("discovery")
    assert read(report, collector.campaign) == (hash_of(NEW, collector.campaign), NEW)


def test_a_value_that_waited_for_a_campaign_is_asked_for(collector: FakeCollector, tmp_path: Path) -> None:
    collector.down = True
    one = sender(collector, tmp_path, keep_values=True)
    one.report(NEW)
    collector.down = False
    one._present._due = 0.0
    assert one.deliver() == Delivery(sent=2, remade=2, added=1)
    assert values(collector) == [NEW]
    assert not is_on_disk(tmp_path)


@pytest.mark.parametrize("by_site", [True, False])
def test_the_evaluator_may_have_another_address(collector: FakeCollector, tmp_path: Path, by_site: bool) -> None:
    with evaluating() as other:
        address = Site(other.address) if by_site else other.address
        here = Site(collector.address, app_token="of the collector")  # noqa: S106
        one = sender(collector, tmp_path, site=here, evaluator=address)
        one.report(NEW)
        assert one.deliver() == Delivery(sent=2)
        assert other.asked[0].authorization is None
        assert (len(collector.asked), len(other.asked), other.posts, other.gets) == (0, 1, [], [])
        one.report(NEW)
        one.deliver()
        # With the collector's token it could post in the client's name.
        tokens = [{asked.token for asked in other.asked}, {post.token for post in collector.posts}]
        assert [len(token) for token in tokens] == [1, 1]
        assert not tokens[0] & tokens[1]
    assert values(collector) == [NEW, NEW]


def test_a_thread_asks_when_a_evaluation_is_due(collector: FakeCollector, tmp_path: Path) -> None:
    with sender(collector, tmp_path, delay=timedelta(seconds=0.3)) as one:
        one.report(NEW)
        wait_for(lambda: not one._queue.waiting())
    assert values(collector) == [NEW]


@pytest.mark.parametrize("durable", [True, False])
def test_the_end_of_a_block_asks_what_is_open(collector: FakeCollector, tmp_path: Path, durable: bool) -> None:
    home = tmp_path / "own" if durable else None
    with sender(collector, home, delay=timedelta(hours=1)) as one:
        one.report(NEW)
    assert len(collector.evaluations) == 1
    if durable:
        assert collector.posts == []
        assert sender(collector, home).deliver(early=True) == Delivery(sent=2)
    assert values(collector) == [NEW]


def test_without_the_library_the_app_is_told_what_to_install(
    collector: FakeCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "voprf", None)
    one = sender(collector)
    with pytest.raises(NotYet, match="pip install voprf"):
        one.report(NEW)
    monkeypatch.undo()
    one._present._due = 0.0
    one.report(NEW)
    assert one.deliver() == Delivery(sent=2)


def test_spans_that_cannot_be_used_are_refused(collector: FakeCollector) -> None:
    with pytest.raises(UsageError, match=r"^answer_within is 2 days.* 0 .*1 day"):
        sender(collector, answer_within=timedelta(days=2))
    with pytest.raises(UsageError, match=r"http://evaluator\.example.*https://"):
        sender(collector, evaluator="http://evaluator.example")


def test_a_clock_that_is_set_back_delays_no_evaluation_for_good(collector: FakeCollector, tmp_path: Path) -> None:
    one = sender(collector, tmp_path)
    one.report(NEW)
    pass_time(one, -365 * 86_400.0)
    assert one.deliver().sent == 2
    assert len(collector.evaluations) == 1


def test_an_evaluation_keeps_the_token_of_its_first_window_and_others_have_another(collector: FakeCollector) -> None:
    hands = Hands(NOON - 1.0)
    collector.date, good, collector.evaluate = "", collector.evaluate, refused(503, "queue_full")
    one = sender(collector, clock=hands.clock, window=timedelta(hours=1), answer_within=timedelta(days=1))
    one.report(NEW)
    one.deliver()
    hands.now += 3_700.0
    collector.evaluate = good
    one.report(NEW)
    one.deliver()
    before, again, another = collector.asked
    assert (before.blinded, before.token) == (again.blinded, again.token)
    assert another.token != again.token
    assert len({asked.blinded for asked in collector.asked}) == 2
