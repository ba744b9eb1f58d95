"""The windows that no run has closed yet: when they close, and what this machine's collector holds of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hushcount.collection.windows import Window, window_at
from hushcount.errors import HushcountError
from pipelines.deployment.settings import Deployment
from shuffler.collector.journals.pending_reports import PendingReports, pending_reports


@dataclass(frozen=True)
class Collecting:
    """What is being collected of one campaign.

    Attributes:
        window: that is open now.
        closed_by: when a run closes it at the latest: the collectors' manifests are waited for that long.
        held: what the collector of this machine holds, by window and stream; None where that cannot be seen.
        why: why it cannot be seen, and where it can; or whose is not seen besides.
    """

    window: Window
    closed_by: datetime
    held: list[PendingReports] | None
    why: str


def collecting(deployment: Deployment, campaign: str, now: datetime) -> Collecting:
    """Return what is being collected of a campaign, as far as it is known here: journals are local to a collector."""
    window = window_at(now, deployment.windows.length)
    held, why = _held(deployment, campaign)
    return Collecting(window, window.end + deployment.windows.patience, held, why)


def _held(deployment: Deployment, campaign: str) -> tuple[list[PendingReports] | None, str]:
    if (collector := deployment.collector) is None:
        return None, "this deployment file has no [collector] table: run status where a collector runs"
    root = deployment.base / collector.journal
    try:
        held = [one for one in pending_reports(root) if one.campaign == campaign]
    except FileNotFoundError:
        return None, f"journal directory {root} is not here: no collector has run here"
    except OSError as error:
        return None, f"journal directory {root} cannot be read, {error.strerror}: run status as the collector's user"
    except (HushcountError, ValueError) as error:
        return None, f"journal directory {root}: {error}"
    return held, f"of collector {collector.name} alone, on this machine"
