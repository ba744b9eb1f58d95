"""The window that is open now: when a run closes it, and which reports of it this machine's collector holds."""

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
        closed_by: when a run closes it at the latest: the window's end plus the patience.
        held: the journals of this machine's collector, by window and stream; None: they cannot be read here.
        why: the collector that the journals are of; without journals, the reason and where they can be read.
        notes: sentences on windows that do not begin with a day, or whose length or grace changes.
    """

    window: Window
    closed_by: datetime
    held: list[PendingReports] | None
    why: str
    notes: tuple[str, ...] = ()


def collecting(view: View) -> Collecting:
    """Return the state of a campaign's collection, as far as this machine knows: each collector's journal is local."""
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
    """Return sentences on windows that do not begin with a day, and on a change of windows that is announced."""
    calendar = view.calendar
    grid = tiling(calendar.at(view.now).length, calendar.window_at(view.now))
    return tuple(filter(None, [grid, announced(view.fold, view.now)]))
