"""The errors that Hushcount raises for a caller's mistakes; each message is one sentence, fit to be shown as it is."""

from __future__ import annotations


class HushcountError(Exception):
    """A mistake or a state that one sentence explains; a command that raises it ends with `exit_status`."""

    exit_status = 1


class UsageError(HushcountError, ValueError):
    """An argument or a file cannot be used: the message has its name, its value and the allowed range."""

    exit_status = 2


class FormatError(UsageError):
    """A file is of the wrong kind, of another version, or damaged."""


class NotYet(HushcountError):
    """Nothing is wrong: run again when more reports have arrived. `streams` are those below the minimum batch."""

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
