"""A killed process loses nothing that it acknowledged, and neither it nor a forked one has anything counted twice."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcount.delivery.queue import Queue, database
from hushcount.delivery.waiting import Waiting
from hushcount.report_making import Measurement
from tests.hushcount.delivery.fake_collector import FakeCollector, campaign, collecting, sender

# Python 3.12 and later warn of what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
FORKS = get_context("fork")
VALUES = ("one", "four", "two", "five")
KILLS = 10
ROOMS = (os.sep + "delivery" + os.sep, "client_files.py", "whole_files.py")


def live(collector: FakeCollector, folder: Path, said: Connection, steps: Iterator[int] | None) -> None:
    """Report and deliver in turn, and say what was acknowledged; each step may be the last."""
    if steps is not None:
        sys.setprofile(dying(steps))
    one = sender(collector, folder)
    for value in VALUES:
        one.report(value)
        said.send(value)
        one.deliver()
    sys.setprofile(None)
    said.send(next(steps) if steps is not None else 0)


def dying(steps: Iterator[int]) -> Callable[[FrameType, str, Any], None]:
    """Return a profiler that takes a number at each call of what keeps or sends, and kills the process at 0."""

    def at_call(frame: FrameType, event: str, _: Any) -> None:
        if event in ("call", "c_call") and any(room in frame.f_code.co_filename for room in ROOMS) and next(steps) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return at_call


def run(collector: FakeCollector, folder: Path, steps: Iterator[int]) -> list[Any]:
    """Live in a child until it ends; return what it said."""
    mine, theirs = FORKS.Pipe(duplex=False)
    child = FORKS.Process(target=live, args=(collector, folder, theirs, steps))
    child.start()
    theirs.close()
    said = []
    try:
        while True:
            said.append(mine.recv())
    except EOFError:
        child.join()
    return said


def end_claims(folder: Path | None) -> None:
    """Let the time of all claims and pauses be over."""
    with database(None if folder is None else folder / "queue.sqlite").change() as tables:
        tables.execute("UPDATE rows SET claimed_until = 0, due = 0")
        tables.execute("DELETE FROM facts WHERE name = 'hold'")


@pytest.mark.long
def test_a_process_that_is_killed_at_any_step_loses_nothing_and_has_nothing_counted_twice(tmp_path: Path) -> None:
    with collecting() as one:
        whole = run(one, tmp_path / "whole", iter(range(-(10**9), 0)))
        assert whole[:-1] == list(VALUES)
        number = whole[-1] + 10**9
        assert len(one.received()) == len(set(one.received())) == len(VALUES)
    assert number > 500
    ended_early = 0
    for kill in range(KILLS):
        # From the first step to the last, and another choice in each turn.
        step = 1 + (number - 2) * kill // (KILLS - 1)
        folder = tmp_path / str(kill)
        with collecting() as one:
            said = run(one, folder, iter(range(step, -(10**9), -1)))
            acknowledged = [value for value in said if value in VALUES]
            ended_early += len(acknowledged) < len(VALUES)
            after = sender(one, folder)
            if folder.exists():
                end_claims(folder)
            done = after.deliver(early=True)
            assert (done.waiting, done.dropped) == (0, {})
            for stream in ("reports", "discovery"):
                different = len(set(one.received(stream)))
                assert len(acknowledged) <= different <= len(acknowledged) + 1, (step, stream)
                charged = sum(line.reports for line in after.spent().streams if line.stream == stream)
                assert different <= charged <= len(acknowledged) + 1
            assert len({post.token for post in one.posts}) <= 1
    assert ended_early > KILLS // 2


@pytest.mark.parametrize("durable", [True, False])
def test_forks_while_a_thread_delivers_send_each_report_once(
    collector: FakeCollector, tmp_path: Path, durable: bool
) -> None:
    one = sender(collector, tmp_path if durable else None, delay=timedelta(seconds=0.2))
    one.start()
    children = []
    for number in range(6):
        one.report(VALUES[number % 4])
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                one.report("three")
                if durable:
                    # The child has a thread of its own now; what it does not send, its parent does.
                    time.sleep(0.1)
                else:
                    one.close()
                status = 0
            finally:
                os._exit(status)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 6
    if durable:
        one.close()
        end_claims(tmp_path)
        one.deliver(early=True)
    else:
        one.close()
    for stream in ("reports", "discovery"):
        received = collector.received(stream)
        assert len(set(received)) == 12
        # A child that ended while it sent left a claim, and the same bytes were sent again.
        assert len(received) == 12 or durable


def test_a_child_sends_nothing_of_its_parents_memory(collector: FakeCollector) -> None:
    one = sender(collector, None)
    one.report("one")
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            assert one.deliver(early=True).sent == 0
            one.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    assert collector.posts == []
    assert one.deliver().sent == 2


def test_processes_that_deliver_at_once_send_each_report_once(collector: FakeCollector, tmp_path: Path) -> None:
    one = sender(collector, tmp_path)
    for number in range(30):
        one.report(VALUES[number % 4])
    collector.most_reports, collector.seconds = 3, 0.05
    children = [FORKS.Process(target=sender(collector, tmp_path).deliver) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0
    for stream in ("reports", "discovery"):
        assert set(Counter(collector.received(stream)).values()) == {1}
        assert len(collector.received(stream)) == 30


ANSWERS = st.sampled_from(
    [
        (202, "", {}),
        (503, "queue_full", {"Retry-After": "5"}),
        (429, "too_many_reports", {"Retry-After": "100000000"}),
        (409, "epoch_closed", {}),
        (409, "unknown_fingerprint", {}),
        (409, "epoch_not_begun", {}),
        (413, "too_long", {}),
        (400, "wrong_length", {}),
        (403, "", {}),
        (302, "", {"Location": "https://example.com/"}),
    ]
)
ACTIONS = st.lists(
    st.one_of(
        st.just("report"),
        st.just("deliver"),
        st.just("early"),
        st.just("pause over"),
        st.just("next epoch"),
        st.just("down"),
        st.lists(ANSWERS, max_size=4),
    ),
    max_size=14,
)


@settings(max_examples=30)
@given(ACTIONS, st.booleans())
def test_every_report_is_sent_dropped_or_waiting_whatever_the_collector_does(actions: Any, keep_values: bool) -> None:
    with collecting(max_age=0) as collector:
        one = sender(collector, None, keep_values=keep_values, most_queued=50)
        one.report("one")
        before = 2
        for action in actions:
            if action == "report":
                waiting = one._queue.waiting()
                one._present._due = 0.0
                one.report("four")
                before += one._queue.waiting() - waiting
            elif action in ("deliver", "early"):
                one._present._due = 0.0
                done = one.deliver(early=action == "early")
                assert before + done.added == done.sent + sum(done.dropped.values()) + done.waiting
                assert done.waiting == one._queue.waiting()
                before = done.waiting
            elif action == "pause over":
                one._queue.note("hold", "0 0")
                with one._queue.database.change() as tables:
                    tables.execute("UPDATE rows SET due = 0, claimed_until = 0")
            elif action == "next epoch":
                collector.epochs.append(campaign(collector.campaign))
            elif action == "down":
                collector.down = not collector.down
            else:
                collector.answers = list(action)
        # In the end all is well, and nothing waits for good.
        collector.down, collector.answers = False, []
        for _ in range(2):
            one._queue.note("hold", "0 0")
            with one._queue.database.change() as tables:
                tables.execute("UPDATE rows SET due = 0, claimed_until = 0")
            one._present._due = 0.0
            done = one.deliver(early=True)
        assert done.waiting == 0
        assert len(collector.received()) == len(set(collector.received()))


def test_opting_out_empties_the_folder_of_all_campaigns_as_the_budget_is_of_all(
    collector: FakeCollector, tmp_path: Path
) -> None:
    other = Queue(database(tmp_path / "queue.sqlite"), "others")
    other.note("token", "theirs")
    other.put([Waiting("", None, b"", Measurement("very secret"))])
    one = sender(collector, tmp_path)
    one.report("one")
    one.forget()
    assert other.fact("token") is None
    assert other.waiting() == 0
    assert b"secret" not in (tmp_path / "queue.sqlite").read_bytes()
