"""What is queued is there until it is removed, is claimed by one at a time, and is nobody else's to read."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from hushcount.delivery.arrivals import Arrivals
from hushcount.delivery.queue import Queue, QueueFull, database
from hushcount.delivery.waiting import EVALUATION, Claimed, Settled, Turn, Waiting
from hushcount.delivery.waits import LONGEST_WAIT
from hushcount.errors import FormatError, HushcountError, UsageError
from hushcount.report_making import Measurement
from hushcount.window_starts import Starts

# Python 3.12 and later warn of what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
NOW = 1_800_000_000.0
ONE, OTHER = "1" * 64, "2" * 64
A, B, C = (EVALUATION + letter for letter in "abc")


def waiting(number: int, fingerprint: str = ONE, due: float = NOW, **facts: str) -> Waiting:
    return Waiting(fingerprint, "reports", b"%06d" % number, facts.get("measurement"), due, collector="one", cap=1000)


@pytest.fixture(params=["file", "memory"])
def queue(request: pytest.FixtureRequest, tmp_path: Path) -> Queue:
    return Queue(database(tmp_path / "q.sqlite" if request.param == "file" else None), "words")


def turn(queue: Queue) -> Turn:
    return Arrivals(queue, lambda: Starts(86_400)).turns()()


def claim(queue: Queue, now: float = NOW, rows: int = 10, early: bool = False, plain: bool = True) -> Claimed | None:
    return queue.claim(now, rows, 10**6, plain, early, turn(queue))


def claimed(queue: Queue, **options: float) -> Claimed:
    found = claim(queue, **options)  # type: ignore[arg-type]
    assert found is not None
    return found


def test_what_is_due_is_claimed_once_and_stays_until_it_is_removed(queue: Queue) -> None:
    queue.put([waiting(number) for number in range(3)])
    first = claimed(queue, rows=2)
    assert first.body == b"000000000001"
    second = claimed(queue)
    assert second.body == b"000002"
    assert claim(queue) is None
    assert queue.waiting() == 3
    assert queue.remove(first) == 2
    assert queue.remove(first) == 0
    queue.give_back(second)
    assert claimed(queue).body == b"000002"


def test_a_claim_ends_with_its_time_and_then_belongs_to_another(queue: Queue) -> None:
    queue.put([waiting(1)])
    late = claimed(queue)
    assert claim(queue, now=NOW + queue.lease - 1) is None
    other = claimed(queue, now=NOW + queue.lease)
    assert queue.replace(late, 0, []) is False
    queue.give_back(late, NOW)
    assert claim(queue, now=NOW + queue.lease) is None
    assert queue.replace(other, 0, [waiting(2)]) is True
    assert claimed(queue).body == b"000002"


def test_a_process_that_looked_at_the_clock_earlier_does_not_take_a_claim_over(queue: Queue) -> None:
    queue.put([waiting(1)])
    claimed(queue, now=NOW + 5)
    assert claim(queue, now=NOW) is None


def test_what_is_not_due_waits_and_a_clock_that_was_set_back_delays_nothing_for_good(queue: Queue) -> None:
    queue.put([waiting(1, due=NOW + 600)])
    assert claim(queue) is None
    assert queue.next_due() == NOW + 600
    assert claimed(queue, early=True).waiting[0].due == NOW + 600
    # A year earlier, or a day and an hour, time and claim are too far in the future to be right.
    for earlier in (365 * 86_400, 90_000):
        assert claimed(queue, now=NOW - earlier).body == b"000001"


def test_a_claim_is_at_most_two_leases_ahead(queue: Queue) -> None:
    queue.put([waiting(1)])
    claimed(queue)
    assert claim(queue, now=NOW - queue.lease, early=True) is None
    assert claimed(queue, now=NOW - queue.lease - 1, early=True).body == b"000001"


def test_a_batch_is_of_one_campaign_file_and_stream_and_no_longer_than_it_may_be(queue: Queue) -> None:
    queue.put(
        [
            waiting(1),
            waiting(2, OTHER),
            waiting(3),
            Waiting(ONE, "discovery", b"d" * 6, None, NOW, collector="one", cap=1000),
        ]
    )
    assert [one.body for one in (claimed(queue), claimed(queue), claimed(queue))] == [
        b"000001000003", b"000002", b"d" * 6,
    ]  # fmt: skip
    queue.put([waiting(number, due=NOW + 1) for number in range(4, 9)])
    found = queue.claim(NOW + 1, 10, 15, plain=True, early=False, turn=turn(queue))
    assert found is not None
    assert len(found.rows) == 2
    found = queue.claim(NOW + 1, 10, 1, plain=True, early=False, turn=turn(queue))
    assert found is not None
    assert len(found.rows) == 1


def test_what_was_due_first_is_sent_first(queue: Queue) -> None:
    queue.put(
        [
            waiting(1, OTHER, NOW - 1),
            waiting(2, due=NOW - 3),
            waiting(3, OTHER, NOW - 4),
            waiting(4, due=NOW - 2),
        ]
    )
    assert claimed(queue, rows=1).body == b"000003"
    assert claimed(queue).body == b"000002000004"
    assert claimed(queue).body == b"000001"


def test_plain_values_are_claimed_only_if_asked_for(queue: Queue) -> None:
    queue.put([Waiting("", None, b"", Measurement("dark-\ud800", (("version", "2.1"), ("platform", "mac os"))), NOW)])
    assert claim(queue, plain=False) is None
    found = claimed(queue)
    assert (found.waiting[0].measurement, found.stream, found.fingerprint) == (
        Measurement("dark-\ud800", (("version", "2.1"), ("platform", "mac os"))),
        None,
        "",
    )


def test_a_full_queue_refuses_in_a_sentence(queue: Queue) -> None:
    small = Queue(queue.database, "words", most=3)
    small.put([waiting(1), waiting(2)])
    small.require_room(1)
    with pytest.raises(QueueFull, match=r"^2 .*words .* 3 .* 2 "):
        small.require_room(2)
    Queue(queue.database, "others", most=3).require_room(3)


def test_campaigns_share_a_database_and_nothing_in_it(queue: Queue) -> None:
    other = Queue(queue.database, "others")
    for one in (queue, other):
        one.put([waiting(1)])
        assert one.noted_once("token", lambda one=one: one.campaign) == one.campaign
    assert queue.clear() == 1
    assert (queue.waiting(), queue.fact("token"), other.waiting(), other.fact("token")) == (
        0,
        None,
        1,
        "others",
    )


def test_a_fact_is_made_once_whoever_asks(queue: Queue) -> None:
    makes = [lambda number=number: f"of {number}" for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        names = list(threads.map(queue.noted_once, ["token"] * 8, makes))
    assert len(set(names)) == 1


def test_the_file_is_private_and_what_was_deleted_is_not_in_it(tmp_path: Path) -> None:
    path = tmp_path / "queue.sqlite"
    queue = Queue(database(path), "words")
    queue.put([waiting(number, measurement=Measurement("a-secret-value")) for number in range(50)])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"a-secret-value" in path.read_bytes()
    assert queue.clear() == 50
    for left in tmp_path.iterdir():
        assert b"a-secret-value" not in left.read_bytes(), left
        assert stat.S_IMODE(left.stat().st_mode) == 0o600
    path.chmod(0o640)
    with pytest.raises(UsageError, match=r"0640.*0600.*chmod 600"):
        queue.waiting()


def test_a_damaged_file_and_a_folder_without_room_are_said_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "queue.sqlite"
    queue = Queue(database(path), "words")
    queue.put([waiting(1)])
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(FormatError, match="damaged"):
        queue.waiting()
    path.unlink()
    path.mkdir()
    with pytest.raises(UsageError, match="regular file"):
        queue.waiting()
    with pytest.raises(HushcountError, match="No such file"):
        Queue(database(tmp_path / "none" / "queue.sqlite"), "words").waiting()


def test_an_error_in_a_change_changes_nothing(queue: Queue) -> None:
    queue.put([waiting(1)])
    with pytest.raises(HushcountError, match="nothing changed"), queue.database.change() as tables:
        tables.execute("DELETE FROM rows")
        raise sqlite3.OperationalError("disk full")
    assert queue.waiting() == 1


FORKS = get_context("fork")


def in_child(work: object) -> object:
    """Return what a function returns in a forked process."""
    mine, theirs = FORKS.Pipe()

    def run() -> None:
        theirs.send(work())  # type: ignore[operator]

    child = FORKS.Process(target=run)
    child.start()
    assert mine.poll(60.0), "the child hangs"
    said = mine.recv()
    child.join()
    return said


def test_a_child_of_a_fork_sees_the_rows_of_a_file_and_none_of_its_parents_memory(tmp_path: Path) -> None:
    for path, seen in ((tmp_path / "queue.sqlite", 1), (None, 0)):
        queue = Queue(database(path), "words")
        queue.put([waiting(1)])
        assert in_child(queue.waiting) == seen
        assert in_child(lambda queue=queue: claim(queue) is not None) is bool(seen)
        assert queue.waiting() == 1


@pytest.mark.long(but=("memory",))
@pytest.mark.parametrize("kind", ["file", "memory"])
def test_a_fork_while_threads_write_leaves_a_child_that_works(kind: str, tmp_path: Path) -> None:
    queue = Queue(database(tmp_path / "queue.sqlite" if kind == "file" else None), "words")
    ending = threading.Event()

    def write() -> None:
        while not ending.is_set():
            queue.put([waiting(1)])

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(8):
            assert in_child(lambda: queue.put([waiting(2)])) is None
    finally:
        ending.set()
        for thread in threads:
            thread.join()
    seen = queue.waiting()
    assert seen > 8
    assert claimed(queue, rows=10**6).waiting[0].body == b"000001"


def test_processes_that_claim_at_once_share_the_rows_without_overlap(tmp_path: Path) -> None:
    queue = Queue(database(tmp_path / "queue.sqlite"), "words")
    queue.put([waiting(number) for number in range(60)])

    def claim_all() -> Iterator[int]:
        while (found := claim(queue, rows=3)) is not None:
            yield from found.rows

    pipes = [FORKS.Pipe() for _ in range(3)]
    children = [FORKS.Process(target=lambda end=end: end.send(list(claim_all()))) for _, end in pipes]
    for child in children:
        child.start()
    rows = [row for mine, _ in pipes for row in mine.recv()]
    for child in children:
        child.join()
    assert sorted(rows) == list(range(1, 61))


def test_whatever_was_put_survives_a_kill_at_any_time(tmp_path: Path) -> None:
    path = tmp_path / "queue.sqlite"
    put = 0
    for _ in range(15):
        mine, theirs = FORKS.Pipe()

        def write(theirs=theirs, put=put) -> None:  # type: ignore[no-untyped-def]
            queue = Queue(database(path), "words")
            for number in range(put, put + 10**6):
                queue.put([waiting(number)])
                theirs.send(number + 1)

        child = FORKS.Process(target=write)
        child.start()
        acknowledged = put
        while acknowledged < put + 3:
            acknowledged = mine.recv()
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        while mine.poll():
            acknowledged = mine.recv()
        seen = Queue(database(path), "words").waiting()
        assert seen in (acknowledged, acknowledged + 1)
        put = seen


# Blanks: claimed from the beginning by whoever asks.


def blank(number: int, claim: str, until: float = NOW + 60, due: float = NOW + 90) -> Waiting:
    return Waiting(ONE, "discovery", b"blank%d" % number, None, due, claim, until, "one", 1000)


def test_a_blank_is_nobody_elses_until_its_time_and_then_goes(queue: Queue) -> None:
    queue.put([blank(1, A)])
    assert claim(queue, early=True) is None
    assert queue.next_due() == NOW + 90
    assert claim(queue, now=NOW + 89) is None
    assert claimed(queue, now=NOW + 90).body == b"blank1"


def test_an_answer_takes_the_place_of_the_blank_in_one_change(queue: Queue) -> None:
    queue.put([blank(1, A), blank(2, B), blank(3, C)])
    assert queue.settle([Settled(A, NOW, b"final1"), Settled(B, NOW), Settled("none", NOW, b"final4")]) == 2
    assert claimed(queue).body == b"final1blank2"
    assert queue.settle([Settled(A, NOW, b"again1")]) == 0, "it is claimed by who sends it"
    assert queue.waiting() == 3
    assert "final" not in repr(Settled(A, NOW, b"final1"))


def test_who_asks_claims_on_and_learns_what_is_gone(queue: Queue) -> None:
    queue.put([blank(1, A), blank(2, B, until=NOW + 500, due=NOW)])
    assert queue.renew([A, "none", B], NOW + 200) == [True, False, True]
    assert claim(queue, now=NOW + 199) is None
    assert claimed(queue, now=NOW + 200).body == b"blank1"
    assert queue.renew([A, B], NOW + 300) == [False, True]
    assert claim(queue, now=NOW + 499) is None
    other = Queue(queue.database, "others")
    assert other.renew([B], NOW) == [False]
    assert other.settle([Settled(B, NOW)]) == 0


def test_the_longest_evaluation_is_no_clock_that_was_set_back(queue: Queue) -> None:
    queue.put([blank(1, A, until=NOW + 2 * LONGEST_WAIT, due=NOW + 3 * LONGEST_WAIT)])
    assert claim(queue, now=NOW - 5, early=True) is None
    assert claimed(queue, now=NOW - 365 * 86400).body == b"blank1"


def test_who_asks_keeps_a_blank_also_after_the_clock_was_set_back(queue: Queue) -> None:
    queue.put([blank(1, A)])
    before = NOW - 40 * LONGEST_WAIT
    assert queue.renew([A], before + queue.lease) == [True]
    assert claim(queue, now=before + queue.lease - 1, early=True) is None
    assert claimed(queue, now=before + queue.lease, early=True).body == b"blank1"
