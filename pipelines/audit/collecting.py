"""The windows that no run has closed yet: when they close, and how much of them this machine's collector holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hushcount.collection.windows import Window, window_at
from hushcount.errors import HushcountError
from pipelines.audit.view import View
from shuffler.collector.journals.pending_reports import PendingReports, pending_reports


@dataclass(frozen=True)
class Collecting:
    """What is being collected of one campaign.

    Attributes:
        window: the open one.
        closed_by: when a run closes it at the latest: so long it waits for the collectors' manifests.
        held: the journals of this machine's collector, by window and stream; None: they cannot be seen here.
        why: why not, and where they can be seen; or whose journals these are.
    """

    window: Window
    closed_by: datetime
    held: list[PendingReports] | None
    why: str


def collecting(view: View) -> Collecting:
    """Return what is being collected of a campaign, as far as it is known here: journals are local to a collector."""
    windows, collector = view.deployment.windows, view.deployment.collector
    window, held = window_at(view.now, windows.length), None
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
    return Collecting(window, window.end + windows.patience, held, why)
