"""What became of a report that was to be opened: the same reasons wherever one is."""

from __future__ import annotations

from enum import IntEnum


class Outcome(IntEnum):
    """Their names in lower case are those of the counts."""

    ACCEPTED = 0
    NOT_OPENED = 1
    WRONG_CAMPAIGN = 2
    MALFORMED = 3
