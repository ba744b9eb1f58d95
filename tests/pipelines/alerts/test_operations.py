"""The conditions that need no statistics: functions of what the audit found."""

from __future__ import annotations

import pytest

from pipelines.alerts.operations import LowVolume, Volume, budget, differences, dropped, low_volume, volume, waiting
from pipelines.audit.foresight import Room
from pipelines.audit.reconcile import Account, WindowCounts
from pipelines.log.waiting import Waiting


def test_dropped_reports_are_told_by_window_and_again_if_there_are_more() -> None:
    def counts(window: str, late: int) -> WindowCounts:
        return WindowCounts(window, "reports", 100, {"batched": 100 - late, **({"too_late": late} if late else {})})

    (one,) = dropped(Account("words", [counts("w1", 0), counts("w2", 40)]))
    assert dict(one.numbers) == {"window": "w2", "stream": "reports", "too_late": 40, "received": 100}
    assert all(text in one.says for text in ("40", "100", "w2", "words", "too_late"))
    (more,) = dropped(Account("words", [counts("w2", 41)]))
    assert (more.subject, more.id(0)) != (one.subject, one.id(0))
    assert more.subject == one.subject
    (lost,) = dropped(Account("words", [WindowCounts("w2", "reports", 100, {"given_up": 40, "batched": 60})]))
    assert dict(lost.numbers) == {"window": "w2", "stream": "reports", "given_up": 40, "received": 100}
    assert "nobody knows whether they are in a result" in lost.says
    assert lost.subject != one.subject
    # What was long ago is not news to who sets alerts now.
    assert dropped(Account("words", [counts("w00", 40), *(counts(f"w{day:02}", 0) for day in range(1, 31))])) == []


def test_reports_that_will_be_dropped_are_told_before() -> None:
    def one(verdict: str) -> Waiting:
        return Waiting(1, "reports", 30, "w1", 20, "2026-11-03T00:00:00+00:00", verdict, "they wait")  # type: ignore[arg-type]

    assert waiting(Account("words", waiting=[one("warning")])) == []
    (told,) = waiting(Account("words", waiting=[one("bad")]))
    assert told.says == "they wait"
    assert dict(told.numbers)["oldest"] == 20


def test_differences_are_one_alert_that_changes_with_them() -> None:
    assert differences(Account("words")) == []
    (one,) = differences(Account("words", differences=["b is missing", "a is missing"]))
    assert one.says.startswith("2 ")
    assert one.says.endswith(" words: a is missing; b is missing")
    (same,) = differences(Account("words", differences=["a is missing", "b is missing"]))
    (other,) = differences(Account("words", differences=["a is missing"]))
    assert same == one
    assert (other.subject, other.fact != one.fact) == (one.subject, True)
    (many,) = differences(Account("words", differences=[f"{number} " + "x" * 999 for number in range(9999)]))
    assert len(many.says) < 3000
    assert "9,994" in many.says
    assert "hushcount status" in many.says


def test_a_budget_is_told_if_it_ends_within_the_windows_and_before_it_renews(subtests: pytest.Subtests) -> None:
    for room, fact in [
        (Room(8, None), None),
        (Room(7, None), "low"),
        (Room(1, 5), "low"),
        (Room(0, 5), "none"),
        (Room(0, None), "none"),
        (Room(5, 5), None),
        (Room(6, 5), None),
    ]:
        with subtests.test(room=room):
            assert [one.fact for one in budget("words", room, 7)] == ([] if fact is None else [fact])


def volumes(*numbers: int) -> list[Volume]:
    return [Volume(name(day), number) for day, number in enumerate(numbers)]


def name(day: int) -> str:
    return f"202611{day + 1:02}T000000Z"


def test_a_window_is_low_beside_those_before(subtests: pytest.Subtests) -> None:
    for numbers, since in [
        ((), None),
        ((100, 100, 10), None),
        ((100, 100, 100, 50), None),
        ((100, 100, 100, 49), 3),
        # One day of much more, or of less, is not what is usual.
        ((100, 1000, 100, 100, 60), None),
        ((100, 100, 100, 100, 40, 100, 45), 6),
        # Low windows follow each other as one fact, and the end of them ends it.
        ((100, 100, 100, 49, 30, 0), 3),
        ((100, 100, 100, 49, 90), None),
        # A weekend is as low as the one before.
        ((100, 100, 100, 100, 100, 20, 20), 5),
        ((100, 100, 100, 100, 100, 20, 20, 100, 100, 100, 100, 100, 20, 20), None),
        ((100, 100, 100, 100, 100, 20, 20, 100, 100, 100, 100, 100, 20, 9), 13),
        ((100, 100, 100, 100, 100, 20, 20, 100, 100, 100, 100, 20), 11),
        # What is low for as long as the windows before is usual.
        ((100,) * 7 + (30,) * 6, 7),
        ((100,) * 7 + (30,) * 7, None),
        ((100,) * 7 + (30,) * 8 + (14,), 15),
        ((0, 0, 0, 0, 0), None),
    ]:
        with subtests.test(numbers=numbers):
            low = low_volume(volumes(*numbers), 0.5, 7)
            assert (None if low is None else low.since) == (None if since is None else name(since))


def test_low_volume_says_what_is_usual() -> None:
    low = low_volume(volumes(100, 110, 120, 130, 40), 0.5, 7)
    assert low == LowVolume(name(4), name(4), 40, 115.0)
    (one,) = volume("words", "reports", low)
    assert all(text in one.says for text in (f"window {name(4)}", "40 reports of words", "115"))
    assert volume("words", "reports", None) == []
