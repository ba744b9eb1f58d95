"""The minimum batch: the shuffler forwards a stream's reports only together with enough others."""

from __future__ import annotations


def may_leave(reports: int, minimum: int) -> bool:
    """Return whether so many reports of one stream may leave the shuffler together.

    Args:
        reports: those that would be forwarded: after the cap, copies dropped.
        minimum: the campaign's `minimum_batch`.

    Privacy: a report hides among the others of its batch. The shuffler cannot tell forged reports from honest ones, so
        whoever opens them checks the minimum once more (`pipelines/outputs/minimum_batch.py`).
    """
    return reports >= minimum
