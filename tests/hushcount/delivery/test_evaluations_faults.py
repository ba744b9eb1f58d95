"""An evaluator that fails or lies costs values, never a report; what it did stands in the log, and no value does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from hushcount.delivery import Delivery, Site
from hushcount.delivery.waits import LONGEST_WAIT
from keys.evaluating import EvaluatorKey
from tests.hushcount.delivery.evaluating import NEW, evaluating, is_on_disk, pass_time, told, values
from tests.hushcount.delivery.fake_collector import EVALUATOR, Evaluate, FakeCollector, answered, refused, sender

OTHER = EvaluatorKey(bytes([9]) * 32)
BINARY = "application/octet-stream"


def saying(change: Callable[[bytes], bytes], kind: str = BINARY) -> Evaluate:
    """Return an evaluator whose right answers are changed."""
    return lambda blinded: (200, kind, change(EVALUATOR.evaluate(blinded)))


LIES = {
    "another key": answered(OTHER),
    "another key's elements": saying(lambda answer: OTHER.evaluate(EVALUATOR.public_key)[:32] + answer[32:]),
    "a wrong proof": saying(lambda answer: answer[:-64] + bytes([answer[-64] ^ 1]) + answer[-63:]),
    "a proof of zeros": saying(lambda answer: answer[:-64] + bytes(64)),
    "the identity": saying(lambda answer: bytes(32) + answer[32:]),
    "no element": saying(lambda answer: b"\xff" * 32 + answer[32:]),
    "the evaluation itself": lambda blinded: (200, BINARY, blinded + bytes(64)),
}
SENT_AGAIN = {
    "one byte too few": (saying(lambda answer: answer[:-1]), "wrong_length"),
    "one byte too many": (saying(lambda answer: answer + b"\0"), "wrong_length"),
    "nothing": (saying(lambda _: b""), "wrong_length"),
    "elements of another evaluation too": (saying(lambda answer: answer[:32] + answer), "wrong_length"),
    "too long for any answer": (saying(lambda answer: bytes(1 << 17)), "too_long"),
    "a hotel's page": (lambda _: (200, "text/html", b"<html>"), "no_evaluator"),
    "a page of the right length": (saying(lambda answer: answer, "text/html"), "no_evaluator"),
    "another place": (lambda _: (302, "text/html", b""), "no_evaluator"),
    "a collector's thanks": (lambda _: (202, BINARY, b""), "no_evaluator"),
    "nobody": (lambda _: (503, "text/html", b""), "status_503"),
    "over the limit": (refused(429, "too_many_evaluations"), "too_many_evaluations"),
    "a file not read yet": (refused(409, "unknown_fingerprint"), "unknown_fingerprint"),
    "not begun": (refused(409, "epoch_not_begun"), "epoch_not_begun"),
}
REFUSED = {
    "the key is gone": (refused(410, "key_destroyed"), "key_destroyed"),
    "the epoch is over": (refused(409, "epoch_closed"), "epoch_closed"),
    "a wrong evaluation": (refused(400, "wrong_evaluation"), "wrong_evaluation"),
    "who are you": (refused(401, "unauthorised"), "unauthorised"),
    "no evaluator here": (refused(404, "unknown_stream"), "unknown_stream"),
    "one is too many": (refused(413, "too_long"), "too_long"),
}


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with evaluating() as one:
        yield one


def test_a_lie_costs_the_values_is_named_and_is_not_asked_for_again(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for number, (lie, evaluate) in enumerate(LIES.items()):
        with evaluating() as collector, subtests.test(lie=lie):
            collector.evaluate = evaluate
            one = sender(collector, tmp_path if number == 0 else None)
            one.report(NEW)
            one.report("one")
            assert one.deliver() == Delivery(sent=4, blank={"equivocation": 2})
            assert one.deliver() == Delivery()
            assert len(collector.asked) == 1
            assert values(collector) == [None, None]
            assert told(one, "blank", "answered", "not_answered") == [("blank", "equivocation", 2)]
            assert NEW not in repr(one.log)


def test_what_is_refused_for_good_goes_at_once_with_the_evaluators_word(
    subtests: pytest.Subtests, tmp_path: Path
) -> None:
    for number, (fault, (evaluate, reason)) in enumerate(REFUSED.items()):
        with evaluating() as collector, subtests.test(fault=fault):
            collector.evaluate = evaluate
            one = sender(collector, tmp_path if number == 0 else None)
            one.report(NEW)
            assert one.deliver() == Delivery(sent=2, blank={reason: 1})
            assert (len(collector.asked), values(collector)) == (1, [None])


def test_what_may_be_answered_later_is_asked_again_until_its_time_is_up(
    subtests: pytest.Subtests, tmp_path: Path
) -> None:
    for number, (fault, (evaluate, reason)) in enumerate(SENT_AGAIN.items()):
        with evaluating() as collector, subtests.test(fault=fault):
            right = collector.evaluate
            collector.evaluate = evaluate
            one = sender(collector, tmp_path if number == 0 else None)
            one.report(NEW)
            done = one.deliver()
            assert (done.sent, done.waiting, done.blank) == (1, 1, {})
            assert told(one, "not_answered") == [("not_answered", reason, 1)]
            assert one.deliver() == Delivery(waiting=1), "nothing is asked before the pause is over"
            assert len(collector.asked) == 1
            pass_time(one)
            collector.evaluate = right
            assert one.deliver() == Delivery(sent=1)
            assert len(set(collector.evaluations)) == 1, "the same bytes"
            assert values(collector) == [NEW]
            # Another value, and nobody answers until its time is up.
            collector.evaluate = evaluate
            one.report("also new")
            assert one.deliver().waiting == 1
            pass_time(one, 3601.0)
            assert one.deliver() == Delivery(sent=1, blank={"no_answer": 1})
            assert values(collector) == [NEW, None]
            assert not is_on_disk(tmp_path)


def test_whatever_it_answers_requests_are_the_same_for_every_value(
    subtests: pytest.Subtests, collector: FakeCollector
) -> None:
    """Each answer to a new value and to a listed one; one answer of each kind to values that nobody can discover."""
    answers = LIES | {fault: evaluate for fault, (evaluate, _) in (SENT_AGAIN | REFUSED).items()}
    kinds = [next(iter(kind)) for kind in (LIES, SENT_AGAIN, REFUSED)]
    cases = [(fault, value) for fault in answers for value in (NEW, "one")]
    cases += [(fault, value) for fault in kinds for value in ("", "longer than the 32 bytes of this campaign")]
    for fault, value in cases:
        with subtests.test(fault=fault, value=value):
            collector.evaluate = answers[fault]
            collector.asked.clear()
            collector.posts.clear()
            one = sender(collector)
            one.report(value)
            one.deliver()
            assert len(collector.asked) == 1
            one.deliver(early=True)
            one.close()
            assert [len(asked.blinded) for asked in collector.asked] == [32]
            assert values(collector) == [None]


def test_an_evaluator_that_cannot_be_reached_or_is_slow_holds_no_other_report_up(
    collector: FakeCollector, tmp_path: Path
) -> None:
    one = sender(collector, tmp_path, evaluator="http://127.0.0.1:1")
    one.report(NEW)
    assert one.deliver() == Delivery(sent=1, waiting=1)
    assert told(one, "not_answered") == [("not_answered", "unreachable", 1)]
    assert len(collector.received("reports")) == 1
    with evaluating(seconds=5.0) as slow:
        other = sender(collector, tmp_path / "other", evaluator=Site(slow.address, seconds=0.1))
        other.report(NEW)
        assert other.deliver() == Delivery(sent=1, waiting=1)
        assert told(other, "not_answered") == [("not_answered", "too_slow", 1)]


def test_without_a_folder_the_last_call_sends_blanks_rather_than_nothing(collector: FakeCollector) -> None:
    with sender(collector, evaluator="http://127.0.0.1:1") as one:
        one.report(NEW)
    assert values(collector) == [None]
    assert told(one, "blank") == [("blank", "no_answer", 1)]


def test_pauses_grow_are_bounded_and_belong_to_the_evaluator_alone(collector: FakeCollector) -> None:
    one = sender(collector, answer_within=timedelta(days=1))
    collector.evaluate = refused(429, "too_many_evaluations")
    one.report(NEW)
    one.deliver()
    one._queue.note("hold_evaluator", "9 0")
    assert one.deliver().held_until is None
    due = one._deliverer.asker.next_due()
    assert due is not None
    assert time.time() + 600.0 < due < time.time() + LONGEST_WAIT
    collector.evaluate = answered()
    one.report("one")
    assert one.deliver() == Delivery(sent=1, waiting=2), "its frequency report"
    pass_time(one)
    assert one.deliver() == Delivery(sent=2)
    assert one._queue.fact("hold_evaluator") == "0 0"


def test_too_many_at_once_are_halved(collector: FakeCollector) -> None:
    right = collector.evaluate

    def at_most_three(blinded: bytes) -> tuple[int, str, bytes]:
        return right(blinded) if len(blinded) <= 96 else refused(413, "too_many_evaluations_at_once")(blinded)

    collector.evaluate = at_most_three
    one = sender(collector)
    for number in range(10):
        one.report(f"new-{number}")
    assert one.deliver() == Delivery(sent=20)
    assert [len(asked.elements) for asked in collector.asked] == [10, 5, 2, 2, 2, 2, 2]
    assert sorted(map(str, values(collector))) == [f"new-{number}" for number in range(10)]


def test_what_is_left_of_a_clients_evaluations_is_used(collector: FakeCollector) -> None:
    right, left = collector.evaluate, 7

    def limited(blinded: bytes) -> tuple[int, str, bytes]:
        nonlocal left
        if (evaluations := len(blinded) // 32) > left:
            return refused(429, "too_many_evaluations")(blinded)
        left -= evaluations
        return right(blinded)

    collector.evaluate = limited
    one = sender(collector)
    for number in range(10):
        one.report(f"new-{number}")
    assert one.deliver() == Delivery(sent=17, waiting=3)
    assert [len(asked.elements) for asked in collector.asked] == [10, 5, 5, 2, 2, 1]
    assert told(one, "not_answered") == [("not_answered", "too_many_evaluations", 1)]


def test_a_disk_that_fails_while_it_asks_keeps_the_evaluations(
    collector: FakeCollector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = sender(collector, tmp_path)
    one.report(NEW)

    def full(*_: object) -> int:
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr("hushcount.delivery.queue.Queue.settle", full)
        with pytest.raises(OSError, match="disk full"):
            one.deliver()
    assert one.deliver() == Delivery(sent=2)
    assert values(collector) == [NEW]
