"""Windows of another length, and a grace period that is no multiple of it: no campaign stops, no report is lost."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from hushcount.collection.windows import Window, window_at, window_text
from pipelines.audit.doctor import examine
from pipelines.audit.orphans import relist
from pipelines.ledger.clock import shown
from pipelines.log.entries import Closed, Decision
from pipelines.log.facts import Head
from pipelines.log.log import Logs
from pipelines.schedule.run import run
from pipelines.schedule.work import Vouched
from pipelines.windows.rules import calendar_of
from tests.support.clocks import stopped
from tests.support.collecting import DAY, START, add_copies, collect, window_name
from tests.support.site import FLOOR, Site, account_at, at, values, view_of

HOURS = {"6h": 0.25, "12h": 0.5, "1d": 1.0, "2d": 2.0}
"""Days of each length."""


def set_length(site: Site, length: str, grace: str = "2d", tail: str = "") -> None:
    before = site.config.read_text().partition("[windows]\n")[0]
    times = f'length = "{length}"\ngrace = "{grace}"\npatience = "1h"\n'
    site.config.write_text(f"{before}[windows]\n{times}{tail}")


def leave(site: Site, day: float, length: str, number: int, collector: str = "one", came: float | None = None) -> None:
    seconds = round(HOURS[length] * 86_400)
    collect(site.store, site.campaign, values(number), day, collector, seconds=seconds, came=came)


def begun(root: Path, grace: str = "2d", tail: str = "", number: int = 60) -> Site:
    """Return a site that counted its first window, of a day."""
    site = Site(root)
    set_length(site, "1d", grace, tail)
    leave(site, 0, "1d", number)
    site.run(1.1)
    return site


def pass_quarters(site: Site, *days: float) -> None:
    """Let windows of six hours come and be counted."""
    for day in days:
        leave(site, day, "6h", 60)
        site.run(day + 0.3)


def came(segment: Path, collector: str, day: float) -> None:
    """Let the store have had a collector's manifest from a moment on."""
    moment = at(day).timestamp()
    os.utime(segment.parents[1] / f"{collector}.manifest.json", (moment, moment))


def end(site: Site, window: Window, number: int) -> None:
    """Let a collector end a window of the log."""
    seconds = int(window.length.total_seconds())
    collect(site.store, site.campaign, values(number), (window.start - START) / DAY, seconds=seconds)


def running(site: Site, day: float) -> Window:
    """Return the window of a moment by the log, after what a run would let it follow."""
    fold = Logs(site.deployment).read("words")
    return calendar_of(site.deployment, fold).window_at(at(day))


def said_by_doctor(site: Site, day: float) -> str:
    """Return what doctor says of windows that follow, behind what it says of the grid."""
    says = "".join(one.says for one in examine(site.deployment, at(day)) if one.name == "windows of words")
    return says[says.index("from 20") :] if "from 20" in says else ""


def counted(site: Site) -> int:
    """Return how many reports were counted, in all batches."""
    fold = Logs(site.deployment).read("words")
    return sum(hops["analyze"].counts.accepted for hops in fold.done.values() if "analyze" in hops)


def decisions(site: Site, kind: str) -> list[Decision]:
    """Return the decisions of a kind, in their order."""
    log = Logs(site.deployment).of("shuffler", "words")
    log.read()
    every = (log.entry(Head(1, number)).decision for number in range(1, log.head.number + 1))
    return [one for one in every if one.kind == kind]


def names(site: Site) -> list[str]:
    """Return the names of the windows that were closed, in their order."""
    return [one.window for one in decisions(site, "closed") if isinstance(one, Closed)]


@pytest.mark.parametrize("new", ["6h", "2d"])
@pytest.mark.long(but=("6h",))
def test_another_length_is_announced_and_begins_where_the_running_window_ends(tmp_path: Path, new: str) -> None:
    site = Site(tmp_path)
    leave(site, 0, "1d", 100)
    assert site.run(1.1).closed == [f"words/{window_name(0)}"]
    set_length(site, new)
    said = f"from {shown(at(2))} on windows are {new} long, with a grace of 2d"
    assert site.run(1.2).announced == [f"words: {said}"]
    assert (site.run(1.3).announced, said_by_doctor(site, 1.3)) == ([], said)
    leave(site, 1, "1d", 60)
    assert site.run(2.1).closed == [f"words/{window_name(1)}"]
    assert said_by_doctor(site, 2.1) == ""
    first = running(site, 2)
    assert (first.start, first.end) == (at(2), window_at(at(2), DAY * HOURS[new]).end)
    end(site, first, 70)
    over = (first.end - START) / DAY
    assert site.run(over).closed == []
    assert site.run(over + 0.05).closed == [f"words/{window_name(2)}"]
    assert counted(site) == 230
    assert account_at(site, over + 0.1).differences == []


def test_a_window_of_a_collector_that_was_not_started_again_is_named_and_counted(tmp_path: Path) -> None:
    site = begun(tmp_path, number=100)
    set_length(site, "6h")
    site.run(1.2)
    leave(site, 1, "1d", 60)
    assert site.run(2.1).problems == []
    # It learned of the change on this day, and ends the window that it has begun.
    leave(site, 2, "1d", 50)
    assert site.run(3.1).problems == []
    leave(site, 3, "1d", 80)
    (said,) = site.run(4.1).problems
    assert "collector one ended a window of 1d" in said
    assert f"{window_text(window_name(3.75))} takes its reports" in said
    assert counted(site) == 290
    (check,) = [one for one in examine(site.deployment, at(4.2)) if one.name == "windows of one"]
    assert (check.verdict, site.run(4.2).problems) == ("warning", [])
    assert account_at(site, 4.2).differences == []


def test_a_change_can_be_taken_back_until_it_begins_and_is_made_once_in_a_window(tmp_path: Path) -> None:
    """Else two runs with two deployment files would write entry after entry."""
    site = begun(tmp_path)
    set_length(site, "6h")
    assert len(site.run(1.2).announced) == 1
    set_length(site, "12h")
    (said,) = site.run(1.3).problems
    assert "windows are 12h long, with a grace of 2d, in " in said
    assert "must be 6h long" in said
    set_length(site, "1d")
    assert site.run(1.4).announced == [f"words: from {shown(at(2))} on windows are 1d long, with a grace of 2d"]
    set_length(site, "6h")
    assert len(site.run(1.5).problems) == 1
    leave(site, 1, "1d", 60)
    assert site.run(2.1).closed == [f"words/{window_name(1)}"]
    assert running(site, 2.1).end == at(3)
    # By then it is a change like any other.
    assert running(site, 3).end == at(3.25)


@pytest.mark.parametrize(("before", "after"), [("3d", "1d"), ("1d", "3d")])
def test_a_segment_has_the_grace_that_was_in_force_when_its_window_ended(
    tmp_path: Path, before: str, after: str
) -> None:
    site = begun(tmp_path, before)
    set_length(site, "1d", after)
    assert len(site.run(1.2).announced) == 1
    dropped: list[str] = []
    for day in range(1, 7):
        leave(site, day, "1d", 60)
        # Of the last window before the change, and of the first behind it.
        if day in (4, 5):
            leave(site, day - 3, "1d", 20, "late", came=day + 0.5)
        dropped += site.run(day + 1.1).dropped
    assert [f"/{window_name(2 if before == '3d' else 1)}/" in line for line in dropped] == [True]
    assert counted(site) == 60 * 7 + 20


def test_what_late_reports_are_compared_with_stays_as_long_as_their_grace_was_promised(tmp_path: Path) -> None:
    site = begun(tmp_path, "3d", '[retention]\nshuffled = "7d"\n')
    set_length(site, "1d", "1d", '[retention]\nshuffled = "3d"\n')
    site.run(1.2)
    for day in (1, 2, 3):
        leave(site, day, "1d", 60)
    site.run(4.1)
    for day in range(4, 9):
        leave(site, day, "1d", 60)
        deleted = site.run(day + 1.1).deleted
        gone = {line.split("/")[1][:16] for line in deleted}
        # 2 * 3 d and 1 d behind the end of each window with the old grace, and of the last of these.
        assert (window_name(0) in gone) == (day == 7)
        assert (window_name(1) in gone, window_name(2) in gone) == (day == 8, day == 8)


def test_a_length_that_grows_within_a_day_gives_no_two_windows_one_name(tmp_path: Path) -> None:
    """A collector without a journal says that its window began at midnight, as the first of six hours did."""
    site = Site(tmp_path)
    set_length(site, "6h")
    for quarter in (0, 1):
        leave(site, quarter * 0.25, "6h", 60)
        assert site.run(quarter * 0.25 + 0.3).closed == [f"words/{window_name(quarter * 0.25)}"]
    set_length(site, "1d")
    assert len(site.run(0.6).announced) == 1
    leave(site, 0, "1d", 70, "two")
    leave(site, 0.5, "6h", 80)
    assert site.run(0.9).closed == [f"words/{window_name(0.5)}"]
    assert site.run(1.1).closed == [f"words/{window_name(0.75)}"]
    assert site.result(0.75)["received"] == 70
    assert counted(site) == 270
    leave(site, 1, "1d", 90)
    assert site.run(2.1).closed == [f"words/{window_name(1)}"]
    assert counted(site) == 360
    assert account_at(site, 2.2).differences == []


def test_a_length_that_shrinks_and_grows_again_gives_no_two_windows_one_name(tmp_path: Path) -> None:
    site = begun(tmp_path)
    total, day = 60, 1.0
    for length in ("6h", "1d", "12h", "6h", "2d", "6h", "1d"):
        set_length(site, length)
        assert len(site.run(day + 0.1).announced) == 1
        for _ in range(3):
            window = running(site, day)
            end(site, window, 60)
            total, day = total + 60, (window.end - START) / DAY
            assert site.run(day + 0.05).problems == []
            assert counted(site) == total
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
    assert f"after the grace of {window_text(window_name(0))}" in dropped
    assert site.result(2)["received"] == 100


def test_a_late_segment_of_a_longer_grace_is_compared_with_what_came_since(tmp_path: Path) -> None:
    site = begun(tmp_path, "5d")
    set_length(site, "1d", "1d", '[retention]\nshuffled = "3d"\n')
    site.run(1.2)
    leave(site, 1, "1d", 60)
    site.run(2.1)
    (second,) = collect(site.store, site.campaign, values(60), 2)
    site.run(3.1)
    for day in (3, 4, 5):
        leave(site, day, "1d", 60)
        site.run(day + 1.1)
    # Of the window of day 1, the last with the longer grace: until 7.
    (late,) = collect(site.store, site.campaign, values(3), 1, "late")
    add_copies(second, late, "late")
    came(late, "late", 6.5)
    leave(site, 6, "1d", 60)
    assert site.run(7.1).dropped == []
    assert counted(site) == 7 * 60 + 3


def test_a_clock_that_is_behind_lets_no_shorter_grace_begin_for_windows_that_have_ended(tmp_path: Path) -> None:
    site = begun(tmp_path, "3d")
    for day in (1, 2, 3, 4):
        leave(site, day, "1d", 60)
    leave(site, 3, "1d", 20, "late", came=5.1)
    set_length(site, "1d", "1h")
    # It is day 5.2.
    assert site.run(2.2).announced == [f"words: from {shown(at(6))} on windows are 1d long, with a grace of 1h"]
    assert site.run(5.3).dropped == []
    assert counted(site) == 5 * 60 + 20


def test_what_comes_too_late_while_a_run_looks_is_dropped_though_its_stamp_is_later_than_the_run(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path)
    set_length(site, "1d", "1d", '[retention]\nshuffled = "3d"\n')
    (first,) = collect(site.store, site.campaign, values(60), 0)
    for day in (1, 2, 3, 4):
        site.run(day + 0.1)
        leave(site, day, "1d", 60)
    assert site.run(5.1).deleted != []
    leave(site, 5, "1d", 60)
    (late,) = collect(site.store, site.campaign, values(3), 0, "late")
    add_copies(first, late, "late")
    came(late, "late", 6.1 + 5 / 86_400)
    site.run(6.1)
    assert counted(site) == 6 * 60


def test_a_log_that_is_restored_after_a_change_takes_batches_to_be_as_long_as_windows_were(tmp_path: Path) -> None:
    """What came at the end of one is compared with the next ones."""
    site = begun(tmp_path, "2h")
    set_length(site, "6h", "2h")
    site.run(1.2)
    shutil.copytree(site.store / "log", tmp_path / "copy")
    (first,) = collect(site.store, site.campaign, values(60), 1)
    site.run(2.05)
    shutil.rmtree(site.store / "log")
    shutil.copytree(tmp_path / "copy", site.store / "log")
    run(site.deployment, clock=stopped(at(2.07)), vouched=Vouched(log_was_restored=True))
    (second,) = collect(site.store, site.campaign, values(60), 2, seconds=21_600)
    add_copies(first, second)
    came(second, "one", 2.25)
    assert site.run(2.35).problems == []
    assert counted(site) == 180


def test_a_collector_with_longer_windows_is_compared_with_all_that_came_within_its_own(tmp_path: Path) -> None:
    """It was not started again for two days after a change from a day to six hours."""
    site = Site(tmp_path)
    set_length(site, "1d", "1h")
    leave(site, 0, "1d", 60, "old")
    site.run(1.1)
    set_length(site, "6h", "1h", '[retention]\nshuffled = "8h"\n')
    site.run(1.2)
    leave(site, 1, "1d", 60, "old")
    site.run(2.05)
    pass_quarters(site, 2, 2.25, 2.5, 2.75)
    leave(site, 2, "1d", 60, "old")
    (first,) = collect(site.store, site.campaign, values(60), 3, seconds=21_600)
    site.run(3.3)
    pass_quarters(site, 3.25, 3.5)
    before = counted(site)
    (own,) = collect(site.store, site.campaign, values(60), 3, "old", seconds=86_400)
    add_copies(first, own, "old")
    came(own, "old", 4.0)
    site.run(4.05)
    assert counted(site) == before + 60


def test_a_manifest_that_is_made_anew_after_a_change_has_the_window_of_its_day(tmp_path: Path) -> None:
    site = begun(tmp_path, "12h")
    set_length(site, "6h", "12h")
    site.run(1.2)
    (segment,) = collect(site.store, site.campaign, values(60), 1)
    (segment.parents[1] / "one.manifest.json").unlink()
    relist(view_of(site.deployment, at(2.1)))
    (manifest,) = segment.parents[1].glob("*.manifest.json")
    assert json.loads(manifest.read_text())["seconds"] == 86_400


def test_two_runs_with_two_files_put_two_entries_a_window_at_most_and_the_log_keeps_one_change(tmp_path: Path) -> None:
    site = Site(tmp_path)
    set_length(site, "6h")
    leave(site, 0, "6h", 60)
    site.run(0.3)
    before = len(decisions(site, "settings"))
    for number in range(1, 5):
        for length in ("12h", "6h", "12h", "6h"):
            set_length(site, length)
            site.run(number * 0.25 + 0.1)
    assert len(decisions(site, "settings")) <= before + 2 * 4
    assert len(Logs(site.deployment).read("words").times) <= 2
