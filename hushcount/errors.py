"""The errors Hushcount raises for its caller's mistakes: one sentence each, fit to be shown as it is."""

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
    """Nothing is wrong, but the minimum batch is not reached: run again when more reports have arrived.

    Attributes:
        streams: those that do not reach it.
    """

    exit_status = 3

    def __init__(self, message: str, streams: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.streams = streams


class LostLock(HushcountError):
    """Another run works on the same state, or the state was exchanged: this run records nothing any more."""


class TooFewOpened(HushcountError):
    """Fewer reports could be opened and accepted than the minimum batch: there is no result, and more cannot come."""

    exit_status = 3


class RetiredKey(HushcountError):
    """What is to be opened is sealed to a key that was destroyed: it can be counted, and no more.

    Attributes:
        id: of the key.
    """

    def __init__(self, message: str, id: str) -> None:
        super().__init__(message)
        self.id = id
