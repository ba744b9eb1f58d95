"""Windows of another length, and a grace period that is no multiple of it: no campaign stops, no report is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushcount.collection.windows import window_at
from pipelines.audit.doctor import examine
from pipelines.log.facts import Head
from pipelines.log.log import Logs
from tests.support.collecting import DAY, START, collect, window_name
from tests.support.jobs import done
from tests.support.site import FLOOR, Site, account_at, at, values

HOURS = {"6h": 0.25, "12h": 0.5, "1d": 1.0, "2d": 2.0}
"""Days of each length."""


def set_length(site: Site, length: str, grace: str = "2d") -> None:
    before, _, after = site.config.read_text().partition("[windows]\n")
    rest = after.partition("patience")[2]
    site.config.write_text(f'{before}[windows]\nlength = "{length}"\ngrace = "{grace}"\npatience{rest}')


def leave(site: Site, day: float, length: str, number: int, collector: str = "one", came: float | None = None) -> None:
    seconds = round(HOURS[length] * 86_400)
    collect(site.store, site.campaign, values(number), day, collector, seconds=seconds, came=came)


def counted(site: Site) -> int:
    """Return how many reports were counted, in all batches."""
    fold = Logs(site.deployment).read("words")
    return sum(hops["analyze"].counts.accepted for hops in fold.done.values() if "analyze" in hops)


def names(site: Site) -> list[str]:
    """Return the names of the windows that were closed, in their order."""
    log, found = Logs(site.deployment).of("shuffler", "words"), []
    log.read()
    for number in range(1, log.head.number + 1):
        decision = log.entry(Head(1, number)).decision
        if decision.kind == "closed":
            found.append(decision.window)
    return found


@pytest.mark.parametrize("new", ["6h", "12h", "2d"])
@pytest.mark.long(but=("6h", "2d"))
def test_a_changed_length_stops_nothing_and_what_older_collectors_close_is_counted(tmp_path: Path, new: str) -> None:
    """Collector "one" is not restarted for a day."""
    site = Site(tmp_path)
    leave(site, 0, "1d", 100)
    assert site.run(1.1).closed == [f"words/{window_name(0)}"]
    set_length(site, new)
    leave(site, 1, "1d", 60)
    if HOURS[new] < 1:
        # It ends within the day of the other collector's window, which does not hold it up.
        leave(site, 1, new, 70, "two")
        assert site.run(1 + HOURS[new] + 0.1).closed == [f"words/{window_name(1)}"]
        leave(site, 2 - HOURS[new], new, 80, "two")
    # The first window of the new length that ends with the old one or later.
    end = window_at(at(2) - DAY / 100, DAY * HOURS[new]).end
    over = (end - START) / DAY
    assert site.run(over - 0.01).problems == []
    assert counted(site) == (170 if HOURS[new] < 1 else 100)
    assert site.run(over + 0.1).problems == []
    assert counted(site) == (310 if HOURS[new] < 1 else 160)
    leave(site, over, new, 90)
    assert site.run(over + HOURS[new] + 0.1).problems == []
    assert counted(site) == (400 if HOURS[new] < 1 else 250)
    closed = names(site)
    assert sorted(set(closed)) == closed
    assert "all numbers agree" in done("status", "--config", site.config).out
    bad = [check for check in examine(site.deployment, at(over + HOURS[new] + 0.2)) if check.verdict == "bad"]
    assert bad == []


def test_a_length_that_grows_within_a_day_gives_no_two_windows_one_name(tmp_path: Path) -> None:
    """The collector that was restarted says that its window began at midnight, as the first of six hours did."""
    site = Site(tmp_path)
    set_length(site, "6h")
    for quarter in (0, 1):
        leave(site, quarter * 0.25, "6h", 60)
        assert site.run(quarter * 0.25 + 0.3).closed == [f"words/{window_name(quarter * 0.25)}"]
    set_length(site, "1d")
    leave(site, 0, "1d", 70, "two")
    # One more of the old length, of a collector that was not restarted.
    leave(site, 0.5, "6h", 80)
    assert site.run(0.9).closed == []
    assert site.run(1.1).closed == [f"words/{window_name(0.5)}"]
    assert site.result(0.5)["received"] == 150
    assert counted(site) == 270
    assert names(site) == [window_name(0), window_name(0.25), window_name(0.5)]
    leave(site, 1, "1d", 90)
    assert site.run(2.1).closed == [f"words/{window_name(1)}"]
    assert counted(site) == 360
    assert account_at(site, 2.2).differences == []


def test_a_length_that_shrinks_and_grows_again_gives_no_two_windows_one_name(tmp_path: Path) -> None:
    site = Site(tmp_path)
    leave(site, 0, "1d", 60)
    site.run(1.1)
    total, day = 60, 1.0
    for length in ("6h", "1d", "12h", "6h", "2d", "6h", "1d"):
        set_length(site, length)
        for _ in range(2):
            # Whoever is restarted begins with the window of the calendar that runs.
            begun = window_at(START + day * DAY, DAY * HOURS[length])
            leave(site, (begun.start - START) / DAY, length, 60, f"c{round(day * 100)}")
            total, day = total + 60, (begun.end - START) / DAY
            assert site.run(day + 0.05).problems == []
            assert counted(site) == total
        # The change comes within a day.
        day += 0.25 if length == "6h" else 0
    closed = names(site)
    assert sorted(set(closed)) == closed
    assert account_at(site, day + 0.1).differences == []


@pytest.mark.parametrize(("grace", "came"), [("36h", 2.45), ("90m", 1.06), ("3h", 1.12), ("61h", 3.5)])
@pytest.mark.long(but=("36h-2.45", "90m-1.06"))
def test_grace_that_is_no_multiple_of_the_length_drops_nothing_that_came_within_it(
    tmp_path: Path, grace: str, came: float
) -> None:
    """What came in time is offered to the next window that closes, though that ends after the grace period."""
    site = Site(tmp_path)
    set_length(site, "1d", grace)
    leave(site, 0, "1d", 100)
    site.run(1.05)
    leave(site, 0, "1d", 30, "two", came=came)
    day = int(came)
    leave(site, day, "1d", 100)
    finished = site.run(day + 1.1)
    assert (finished.dropped, finished.problems) == ([], [])
    assert site.result(day)["received"] == 130
    assert counted(site) == 230


@pytest.mark.parametrize("grace", ["36h", "3h"])
@pytest.mark.long(but=("36h",))
def test_too_few_reports_wait_for_at_least_one_window_and_are_dropped_behind_it(tmp_path: Path, grace: str) -> None:
    site = Site(tmp_path)
    set_length(site, "1d", grace)
    leave(site, 0, "1d", FLOOR - 1)
    assert site.run(1.1).dropped == []
    over = 3.1 if grace == "36h" else 2.1
    assert site.run(over - 0.2).dropped == []
    (dropped,) = site.run(over).dropped
    assert f"{FLOOR - 1} reports are too late" in dropped
    assert account_at(site, over).differences == []


def test_what_came_after_its_grace_is_dropped_by_name(tmp_path: Path) -> None:
    site = Site(tmp_path)
    set_length(site, "1d", "36h")
    leave(site, 0, "1d", 100)
    site.run(1.05)
    leave(site, 0, "1d", 30, "two", came=2.55)
    leave(site, 2, "1d", 100)
    (dropped,) = site.run(3.1).dropped
    assert "two-000000.blocks: 30 reports are too late" in dropped
    assert f"after the grace of {window_name(0)}" in dropped
    assert site.result(2)["received"] == 100
