"""The window that is open now: when a run closes the window, and which of its reports the collector here holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hushcount.collection.windows import Window, tiling
from hushcount.errors import HushcountError
from pipelines.audit.view import View
from pipelines.windows.rules import announced
from shuffler.collector.journals.pending_reports import PendingReports, pending_reports


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


def notes_of(view: View) -> tuple[str, ...]:
    """Return sentences on when windows begin, unless a window begins at every midnight, and on a change of windows."""
    calendar = view.calendar
    grid = tiling(calendar.at(view.now).length, calendar.window_at(view.now))
    return tuple(filter(None, [grid, announced(view.fold, view.now)]))
