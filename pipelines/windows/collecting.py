"""The window that is open now: when it closes, its reports that the collector here holds, and what a result needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hushcount.collection.windows import Window
from hushcount.errors import HushcountError
from pipelines.console.tables import stamp
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.log.fold import Fold
from pipelines.windows.closing import Listed
from pipelines.windows.rules import calendar_of, notes_of
from shuffler.collector.journals.pending_reports import PendingReports, pending_reports

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Collecting:
    """The state of collection of one campaign.

    Attributes:
        window: the open window.
        closed_by: when a run closes the open window at the latest: the window's end plus the patience.
        held: the reports in the journals of this machine's collector, by window and stream; None: the journals cannot
            be read here.
        why: the collector that wrote the journals; if `held` is None, why they cannot be read here, and where they can.
        outlook: sentences on the next result, which is of the open window, or of an earlier window that has reports and
            is not closed yet. They say when this window ends, how many reports a result needs, and how many are there:
            in the journals, stored, or left from closed windows. Only stored reports of the present epoch count.
        notes: sentences on when windows begin, unless a window begins at every midnight, and on an announced change of
            windows.
    """

    window: Window
    closed_by: datetime
    held: list[PendingReports] | None
    why: str
    outlook: tuple[str, ...]
    notes: tuple[str, ...]


def collecting(
    deployment: Deployment, epochs: Epochs, fold: Fold, listed: Sequence[Listed], now: datetime
) -> Collecting:
    """Return the state of a campaign's collection; only the journal of this machine's collector can be read.

    Args:
        listed: the manifests that no closed window has taken.
    """
    calendar, held = calendar_of(deployment, fold), None
    window = calendar.window_at(now)
    if deployment.collector is None:
        why = "this deployment file has no [collector] table: run status where a collector runs"
    else:
        root = deployment.base / deployment.collector.journal
        try:
            held = [one for one in pending_reports(root) if one.campaign == epochs.campaign]
            why = f"of collector {deployment.collector.name} alone, on this machine"
        except FileNotFoundError:
            why = f"journal directory {root} is not here: no collector has run here"
        except OSError as error:
            why = f"journal directory {root} cannot be read, {error.strerror}: run status as the collector's user"
        except (HushcountError, ValueError) as error:
            why = f"journal directory {root}: {error}"
    end = min([window.end, *(one.window.end for one in (*(held or ()), *listed))])
    tiling = calendar.of(window).tiling
    ends = stamp(end)
    if not isinstance(tiling.length, timedelta):
        ends += f" ({end.astimezone(tiling.clock):%Y-%m-%d %H:%M:%S} {tiling.clock})"
    outlook = [f"the open window ends {ends}"]
    if end <= now:
        outlook = [f"window {calendar.window_at(end - _SECOND).text} ended {ends}"]
    if deployment.shuffles:
        outlook.append(f"{deployment.command('run')} closes it by {stamp(end + deployment.windows.patience)}")
        outlook.append(_needed(epochs, fold, listed, held, end, now))
    else:
        outlook.append("the shuffler closes it elsewhere")
    return Collecting(
        window, window.end + deployment.windows.patience, held, why, tuple(outlook), notes_of(calendar, fold, now)
    )


def _needed(
    epochs: Epochs, fold: Fold, listed: Sequence[Listed], held: Sequence[PendingReports] | None, end: datetime,
    now: datetime,
) -> str:  # fmt: skip
    """Return a sentence on the reports that a result of the window with this end needs, and on those that are there."""
    current = epochs.collection.current(now)
    file, campaign = max(
        (item for item in epochs.campaigns.items() if current is None or item[0][0] == current.epoch),
        key=lambda item: item[0],
    )
    stream = campaign.streams[0]
    stored = [*fold.waiting.values(), *(one for each in listed if each.window.end <= end for one in each.segments)]
    number = sum(one.records for one in stored if (one.file, one.stream) == (file, stream))
    if held is None:
        there = f"{number:,} are stored, and collectors elsewhere may hold more"
    else:
        number += sum(one.reports for one in held if one.stream == stream and one.window.end <= end)
        there = f"{number:,} are here"
    return f"a result then needs {campaign.shuffle.minimum_batch:,} reports, and {there}"
