"""What is promised of windows, of the reports that wait, and of clocks that are wrong."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from itertools import pairwise

from pipelines.audit.parties import UNRECEIVED
from pipelines.files import storage
from pipelines.log.entries import Closed
from pipelines.log.log import Logs
from pipelines.log.segments import GIVEN_UP
from tests.model.made import BEGIN, FLOOR
from tests.model.memory import Memory, require
from tests.model.seen import Fate, Output, accounts, decisions, fates, outputs, window_of
from tests.model.world import World
from tests.support.collecting import DAY

_LONGEST = 2 * DAY
"""Of all windows here."""


def windows_follow_each_other(world: World, memory: Memory, there: list[Output]) -> None:
    """No two windows of the log overlap, so that none has two ends."""
    windows = [window_of(one) for one in decisions(world, "shuffler") if isinstance(one, Closed)]
    for before, after in pairwise(windows):
        require(before.end <= after.start, f"window {after.name} is closed after {before.name}, which ends later")


def nothing_is_closed_ahead(world: World, memory: Memory, there: list[Output]) -> None:
    """No window is closed before it ended, whatever one clock says."""
    for name, end in world.ends.items():
        require(end <= world.moment(), f"window {name} was closed {end - world.moment()} before its end")


def segments_stay(world: World, memory: Memory, there: list[Output]) -> None:
    """What collectors stored is deleted only when retention says so."""
    keeps = "segments" in world.kind.retention
    for path, one in world.acknowledged.items():
        if path in world.harmed.keys() | world.once_harmed or (keeps and one.window.end + 3 * DAY < world.moment()):
            continue
        require(storage.exists(path), f"{path} was deleted")


def what_is_dropped_had_its_grace(world: World, memory: Memory, there: list[Output]) -> None:
    """No report is too late that the store had within the grace of its window, if a batch could have taken it."""
    if world.log_restored:
        # What its settings were, a log that was restored need not know.
        return
    root = world.deployment.folder("segments")
    known = {storage.relative(path, root): one for path, one in world.acknowledged.items()}
    for entry in decisions(world, "shuffler"):
        if not isinstance(entry, Closed):
            continue
        dropped: Counter[str] = Counter()
        for path, reason in entry.dropped.items():
            one = known[path]
            until = one.window.end + world.followed.promised(one.window)
            # Who looks after its grace at what has a stamp that is to come cannot know whether it is late.
            known_by = max(one.came, min(one.stamped, world.closed_at[entry.window]))
            if reason == GIVEN_UP or known_by > until or reason.startswith("its file"):
                continue
            require(reason.startswith("grace ended"), f"{path} came at {one.came}, in time until {until}: {reason}")
            require(until <= window_of(entry).end, f"{path} was dropped by {entry.window}, in time until {until}")
            dropped[one.stream] += one.reports
        for stream, reports in dropped.items():
            taken = any(stream in streams for streams in entry.batches.values())
            require(reports < FLOOR and not taken, f"{reports} {stream} were dropped by {entry.window}, enough for it")


def collectors_have_the_windows_of_the_log(world: World, memory: Memory, there: list[Output]) -> None:
    """A window of collectors that came in time is one of the log, if a run sees each change while its window runs."""
    if world.log_restored or not world.followed.is_in_step(world.moment()):
        return
    closed = [window_of(one) for one in decisions(world, "shuffler") if isinstance(one, Closed)]
    first = min((one.start for one in closed), default=None)
    for window in world.collecting.begun:
        if closed and first is not None and first <= window.start and window.end <= closed[-1].end:
            others = [one for one in closed if one.start < window.end and window.start < one.end and one != window]
            require(not others, f"collectors ended window {window.name} of {window.length}, the log {others[:1]}")


def has_problems(world: World) -> bool:
    """Return whether the last run named a problem, other than a collector that was not started anew."""
    return world.last is not None and any("and the log has no such window" not in one for one in world.last.problems)


def every_window_closes(world: World, memory: Memory) -> None:
    """What is stored joins the next window that closes, of whatever length its own is, and one closes in time."""
    if world.store_wrong or has_problems(world):
        return
    told, root = fates(world), world.deployment.folder("segments")
    (began, before), closed = world.began, max(world.ends.values(), default=BEGIN)
    for path, one in world.acknowledged.items():
        if told.get(storage.relative(path, root), Fate("stored")).state != "stored" or not storage.exists(path):
            continue
        last = max(one.window.end, closed) + _LONGEST
        is_due = last + timedelta(hours=world.settings.patience) < world.moment()
        require(not is_due, f"{path} is stored, and no window takes it, though one ended by {last}")
        was_passed = one.came <= began and one.window.end <= closed and before < closed
        require(not was_passed, f"{path} is stored, and no window took it, though one closed at {closed}")


def lost(world: World, memory: Memory) -> list[Output]:
    """Return what was handed on and deleted before all who read it left a receipt."""
    there = {one.place for one in outputs(world)} | world.gone.keys() | world.unmarked
    gone = [one for place, one in memory.outputs.items() if place not in there and one.folder == "shuffled"]
    return [one for one in gone if world.unread.get(one.place)]


def what_goes_unreceived_is_shown(world: World, memory: Memory) -> None:
    """What was deleted before all who read it left a receipt is in the account of each party, for ever."""
    if not world.kind.apart or world.log_restored:
        return
    handed, gone = [one for one in memory.outputs.values() if one.folder == "shuffled"], lost(world, memory)
    shuffler, readers = accounts(world)
    read = Logs(world.parts[1]).read("words")
    for one in gone:
        require(any(one.batch in said for said in shuffler.differences), f"{one.place} went, and nothing says so")
        is_said = read.hops_of(one.batch) or any(one.batch in said for said in readers.differences)
        require(bool(is_said), f"{one.place} went, and those who read it do not say so")
    for stream in world.campaign.streams:
        handing, reading = (
            next(line for line in account.parties if line.stream == stream and line.source == "log")
            for account in (shuffler, readers)
        )
        number = sum(len(one.records(stream)) for one in gone if stream in world.unread[one.place])
        said = handing.dropped.get(UNRECEIVED, 0)
        require(said == number, f"{number} {stream} were deleted without a receipt, and the account says {said}")
        number = sum(len(one.records(stream)) for one in handed)
        said = reading.received
        require(said == number, f"{number} {stream} were handed on, and the account of their readers says {said}")
