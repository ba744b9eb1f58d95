"""The window that is open now: when it closes, its reports that the collector here holds, and what a result needs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from hushcount.collection.windows import Window, tiling
from hushcount.errors import HushcountError
from pipelines.audit.view import View
from pipelines.console.tables import stamp
from pipelines.windows.rules import announced
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
        notes: sentences on when windows begin, unless a window begins at every midnight, and on an announced change of
            windows.
    """

    window: Window
    closed_by: datetime
    held: list[PendingReports] | None
    why: str
    notes: tuple[str, ...] = ()


def collecting(view: View) -> Collecting:
    """Return the state of a campaign's collection; only the journal of this machine's collector can be read."""
    collector = view.deployment.collector
    window, held = view.calendar.window_at(view.now), None
    if collector is None:
        why = "this deployment file has no [collector] table: run status where a collector runs"
    else:
        root = view.deployment.base / collector.journal
        try:
            held = [one for one in pending_reports(root) if one.campaign == view.campaign]
            why = f"of collector {collector.name} alone, on this machine"
        except FileNotFoundError:
            why = f"journal directory {root} is not here: no collector has run here"
        except OSError as error:
            why = f"journal directory {root} cannot be read, {error.strerror}: run status as the collector's user"
        except (HushcountError, ValueError) as error:
            why = f"journal directory {root}: {error}"
    return Collecting(window, window.end + view.deployment.windows.patience, held, why, notes_of(view))


def outlook_of(view: View, now: Collecting) -> tuple[str, ...]:
    """Return sentences on the next result, as `run` and `status` both say them.

    The next result is of the open window, or of an earlier window that has reports and is not closed yet. The sentences
    say when this window ends, how many reports a result needs, and how many are there: in the journals of this
    machine's collector, stored, or left from closed windows. Only stored reports of the present epoch count.
    """
    held, listed = now.held or (), view.intake.listed
    end = min([now.window.end, *(one.window.end for one in (*held, *listed))])
    ends = f"{view.campaign}: the open window ends {stamp(end)}"
    if end <= view.now:
        ends = f"{view.campaign}: window {view.calendar.window_at(end - _SECOND).text} ended {stamp(end)}"
    if not view.shuffles:
        return ends, "the shuffler closes it elsewhere"
    current = view.epochs.collection.current(view.now)
    file, campaign = max(
        (item for item in view.epochs.campaigns.items() if current is None or item[0][0] == current.epoch),
        key=lambda item: item[0],
    )
    stream = campaign.streams[0]
    stored = [*view.fold.waiting.values(), *(one for each in listed if each.window.end <= end for one in each.segments)]
    number = sum(one.records for one in stored if (one.file, one.stream) == (file, stream))
    if now.held is None:
        there = f"{number:,} are stored, and collectors elsewhere may hold more"
    else:
        number += sum(one.reports for one in held if one.stream == stream and one.window.end <= end)
        there = f"{number:,} are here"
    return (
        ends,
        f"hushcount run closes it by {stamp(end + view.deployment.windows.patience)}",
        f"a result then needs {campaign.shuffle.minimum_batch:,} reports, and {there}",
    )


def notes_of(view: View) -> tuple[str, ...]:
    """Return sentences on when windows begin, unless a window begins at every midnight, and on a change of windows."""
    calendar = view.calendar
    grid = tiling(calendar.at(view.now).length, calendar.window_at(view.now))
    return tuple(filter(None, [grid, announced(view.fold, view.now)]))
