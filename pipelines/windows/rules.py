"""The windows of a campaign, as its log states them, and how the log follows the deployment file (docs/adr/0045)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from hushcount.collection.windows import duration_text
from hushcount.errors import HushcountError
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.ledger.clock import shown
from pipelines.log.entries import CalendarSettings, Settings, settings_of
from pipelines.log.facts import Times
from pipelines.log.fold import Fold
from pipelines.windows.calendar import Calendar
from pipelines.windows.closing import Listed, Rule

START_AGAIN = "give the collector the deployment file that is used here, and restart it"
"""The cure, for messages, if a collector ends windows that the log does not have."""


def calendar_of(deployment: Deployment, fold: Fold) -> Calendar:
    """Return the calendar of the log, or the deployment file's calendar if the log states no windows."""
    return Calendar(fold.times or (Times(None, deployment.windows.tiling, deployment.windows.grace),))


def rule_of(deployment: Deployment, epochs: Epochs, fold: Fold) -> Rule:
    """Return the rule by which the windows of a campaign close."""
    collectors = frozenset(deployment.file.collectors)
    return Rule(calendar_of(deployment, fold), deployment.windows.patience, collectors, epochs.campaigns)


def changed(deployment: Deployment, fold: Fold, now: datetime) -> Settings | CalendarSettings | None:
    """Return the entry that sets tiling and grace as the deployment file does, or None if the log states them already.

    The new settings begin when the present window ends. Until the new settings begin, they can be taken back once.

    Raises:
        HushcountError: another change of the settings was announced, and has not begun yet.
    """
    windows = deployment.windows
    new = Times(None, windows.tiling, windows.grace)
    if fold.times:
        calendar, newest = Calendar(fold.times), fold.times[-1]
        if newest.same(new):
            return None
        moment = now if fold.closed is None else max(now, fold.closed)
        present = calendar.at(moment)
        if newest.begins is not None and newest.begins > moment and (newest.same(present) or not new.same(present)):
            raise HushcountError(
                f"windows are {_of(new)}, in {deployment.path}, must be {_of(newest)}, until {shown(newest.begins)}: "
                "that was announced; change windows again after that time"
            )
        new = Times(calendar.window_at(moment).end, new.tiling, new.grace)
    return settings_of(new.begins, new.tiling, new.grace)


def notes_of(calendar: Calendar, fold: Fold, now: datetime) -> tuple[str, ...]:
    """Return sentences on when windows begin, unless a window begins at every midnight, and on a change of windows."""
    grid = calendar.at(now).tiling.words(calendar.window_at(now))
    return tuple(filter(None, [grid, announced(fold, now)]))


def announced(fold: Fold, now: datetime) -> str:
    """Return a sentence on new settings that begin after a moment; empty if there are no new settings."""
    newest = fold.times[-1] if fold.times else None
    if newest is None or newest.begins is None or newest.begins <= now:
        return ""
    return f"from {shown(newest.begins)} on windows are {_of(newest)}"


def strangers(calendar: Calendar, listed: Iterable[Listed]) -> Iterator[str]:
    """Yield a sentence for each manifest whose window a collector with other settings ended."""
    for one in listed:
        if not calendar.has(one.window):
            own = calendar.window_at(one.window.end - timedelta(seconds=1))
            yield (
                f"{one.path}: collector {one.manifest.collector} ended a window of {duration_text(one.window.length)}, "
                f"and the log has no such window: window {own.text} takes its reports; {START_AGAIN}"
            )


def _of(times: Times) -> str:
    return f"{times.tiling.said}, with a grace of {duration_text(times.grace)}"
