"""Jobs that end without a result, each with the summary that counts its input."""

from __future__ import annotations

from hushcount.errors import RetiredKey, TooFewOpened
from pipelines.outputs.summary import HopSummary


class Withheld(TooFewOpened):
    """Fewer reports could be opened and accepted than the minimum batch; their summary is not written."""

    def __init__(self, message: str, summary: HopSummary) -> None:
        super().__init__(message)
        self.summary = summary


class CountedRetired(RetiredKey):
    """What was sealed to a destroyed key was counted; its summary is written.

    Attributes:
        reports: how many cannot be opened.
    """

    def __init__(self, message: str, id: str, reports: int, summary: HopSummary) -> None:
        super().__init__(message, id)
        self.reports = reports
        self.summary = summary
