"""The errors that Hushcount raises for a caller's mistakes; each message is one sentence that can be shown to users."""

from __future__ import annotations


class HushcountError(Exception):
    """A mistake or a state that one sentence explains; a command that raises this error ends with `exit_status`."""

    exit_status = 1


class UsageError(HushcountError, ValueError):
    """An argument or a file cannot be used; the message has the argument's name, its value and the allowed range."""

    exit_status = 2


class FormatError(UsageError):
    """A file is of the wrong kind, of another version, or damaged."""


class NotYet(HushcountError):
    """Nothing is wrong, but something is not there yet: try again later. `streams`: streams with too few reports."""

    exit_status = 3

    def __init__(self, message: str, streams: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.streams = streams


class TooFewOpened(HushcountError):
    """Fewer reports were opened and accepted than the minimum batch, and no more can come, so there is no result."""

    exit_status = 3


class RetiredKey(HushcountError):
    """A report is sealed to the key `id`, which was destroyed, so the report can be counted but not opened."""

    def __init__(self, message: str, id: str) -> None:
        super().__init__(message)
        self.id = id
