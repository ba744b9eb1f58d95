"""The errors Hushcount raises for its caller's mistakes: one sentence each, to be shown as it is."""

from __future__ import annotations


class HushcountError(Exception):
    """A mistake or a state that one sentence explains; `exit_status` is what a command ends with."""

    exit_status = 1


class UsageError(HushcountError, ValueError):
    """The caller gave something that cannot be used: the message names it, its value and the allowed range."""

    exit_status = 2


class FormatError(UsageError):
    """A file is not what it should be: wrong kind, other version, damaged."""


class NotYet(HushcountError):
    """Nothing is wrong: run again when more reports have arrived. `streams` do not reach the minimum batch."""

    exit_status = 3

    def __init__(self, message: str, streams: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.streams = streams


class TooFewOpened(HushcountError):
    """Fewer reports were opened and accepted than the minimum batch, and no more can come: there is no result."""

    exit_status = 3


class RetiredKey(HushcountError):
    """A report is sealed to the destroyed key `id`: it can be counted, but not opened."""

    def __init__(self, message: str, id: str) -> None:
        super().__init__(message)
        self.id = id
