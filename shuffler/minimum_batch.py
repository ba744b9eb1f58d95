"""The minimum batch: the shuffler forwards a stream's reports only together with enough others."""

from __future__ import annotations


def may_leave(reports: int, minimum: int) -> bool:
    """Return whether so many reports of one stream, after the cap and without copies, may leave the shuffler together.

    Privacy: a report hides among the others of its batch. The shuffler cannot tell forged reports from honest ones, so
        the party that opens them checks the minimum again (`pipelines/outputs/minimum_batch.py`).
    """
    return reports >= minimum
