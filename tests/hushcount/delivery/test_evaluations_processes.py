"""Who opts out, forks or shares a folder while evaluations are open: nothing is asked for or sent twice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from hushcount.budget import OptedOut
from hushcount.delivery import Delivery, Sender
from tests.hushcount.delivery.evaluating import NEW, evaluating, pass_time, told, values
from tests.hushcount.delivery.fake_collector import FakeCollector, sender

# Python 3.12 and later warn of what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with evaluating() as one:
        yield one


def test_another_process_sends_the_blank_when_the_time_of_an_answer_is_over(
    collector: FakeCollector, tmp_path: Path
) -> None:
    dead = sender(collector, tmp_path)
    dead.report(NEW)
    other = sender(collector, tmp_path)
    assert other.deliver(early=True) == Delivery(sent=1, waiting=1), "whoever has the evaluation may still be asking"
    pass_time(dead, 3601.0)
    assert other.deliver() == Delivery(sent=1)
    assert values(collector) == [None]
    assert collector.asked == []
    # It was alive, and comes too late.
    assert dead.deliver() == Delivery(blank={"too_late": 1})
    assert collector.asked == []
    assert len(collector.received("discovery")) == 1


def test_an_answer_that_comes_when_the_blank_is_gone_makes_no_second_report(
    collector: FakeCollector, tmp_path: Path
) -> None:
    one, other = sender(collector, tmp_path), sender(collector, tmp_path)
    evaluate = collector.evaluate

    def slowly(blinded: bytes) -> tuple[int, str, bytes]:
        pass_time(one, 10_000.0)
        assert other.deliver().sent == 2
        return evaluate(blinded)

    collector.evaluate = slowly
    one.report(NEW)
    assert one.deliver() == Delivery(blank={"too_late": 1})
    assert values(collector) == [None]
    assert told(one, "answered", "blank") == [("blank", "too_late", 1)]


def test_while_it_asks_nobody_else_sends_the_blank(collector: FakeCollector, tmp_path: Path) -> None:
    one, other = sender(collector, tmp_path, answer_within=timedelta()), sender(collector, tmp_path)
    evaluate = collector.evaluate

    def meanwhile(blinded: bytes) -> tuple[int, str, bytes]:
        assert other.deliver(early=True) == Delivery(sent=1, waiting=1)
        return evaluate(blinded)

    collector.evaluate = meanwhile
    one.report(NEW)
    assert one.deliver() == Delivery(sent=1), "an evaluation is asked once at least, however late"
    assert values(collector) == [NEW]


@pytest.mark.parametrize("durable", [True, False])
def test_opting_out_deletes_evaluations_and_blanks(collector: FakeCollector, tmp_path: Path, durable: bool) -> None:
    one = sender(collector, tmp_path / "own" if durable else None)
    one.report(NEW)
    one.forget()
    assert one._evaluations._open == []
    assert one._queue.waiting() == 0
    assert one.deliver(early=True) == Delivery()
    with pytest.raises(OptedOut):
        one.report(NEW)
    assert (collector.asked, collector.posts) == ([], [])


def test_who_opts_out_elsewhere_or_during_a_evaluation_leaves_nothing(collector: FakeCollector, tmp_path: Path) -> None:
    one, other = sender(collector, tmp_path), sender(collector, tmp_path)
    one.report(NEW)
    other.forget()
    assert one.deliver() == Delivery()
    assert one._evaluations._open == []
    assert collector.asked == []
    other._budget.opt_in()
    one.report(NEW)
    evaluate = collector.evaluate

    def meanwhile(blinded: bytes) -> tuple[int, str, bytes]:
        one.forget()
        return evaluate(blinded)

    collector.evaluate = meanwhile
    assert one.deliver() == Delivery()
    assert told(one, "blank") == []
    assert one._evaluations._open == []
    assert one._queue.waiting() == 0
    assert collector.posts == []


@pytest.mark.parametrize("durable", [True, False])
def test_a_fork_does_not_ask_its_parents_evaluations(collector: FakeCollector, tmp_path: Path, durable: bool) -> None:
    one = sender(collector, tmp_path if durable else None)
    one.report(NEW)

    def child(one: Sender) -> None:
        one.report("of the child")
        one.deliver(early=True)
        one.close()

    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            child(one)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(collector.evaluations) == 1
    one.deliver()
    assert len(set(collector.evaluations)) == len(collector.evaluations) == 2
    assert sorted(map(str, values(collector))) == [NEW, "of the child"]
