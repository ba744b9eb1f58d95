"""Turn any exception of a store's client into a one-line StorageError, and keep the client's log quiet."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from traceback import extract_tb

from hushcount.errors import HushcountError

_HOME = Path(__file__).parents[2]
_MOST_PLACES = 4


class StorageError(HushcountError):
    """Reading or writing failed; nothing was released and the input is unchanged."""


class WriteError(StorageError):
    """A store's client failed to write a file, and raised an exception of its own class."""


@contextmanager
def client(path: str, what: str = "read", kind: type[StorageError] = StorageError) -> Iterator[None]:
    """Turn any exception of a store's client into a StorageError with one line."""
    try:
        yield
    except (HushcountError, OSError):
        raise
    except Exception as error:
        raise kind(f"cannot {what} {path}: {line(error)}") from error


def cause(error: BaseException) -> str:
    """Return why reading or writing failed, in plain words."""
    details = getattr(error, "exception_details", None)
    if isinstance(details, dict) and details:
        return str(next(iter(details.values())))
    return str(getattr(error, "strerror", None) or error)


def told(error: Exception) -> str:
    """Return the file's name, if the error has one, and `cause`; for errors of classes not ours, their type and place.

    The place is where in our code the error was raised. The text of an error of a class that is not ours may hold a
    value of a report, so the text is not repeated.
    """
    if not isinstance(error, HushcountError | OSError):
        frames = [frame for frame in extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(_HOME)]
        places = [f"{Path(frame.filename).relative_to(_HOME)}:{frame.lineno}" for frame in frames[-_MOST_PLACES:]]
        return f"{type(error).__name__} at {' > '.join(places)}: report this bug"
    name = getattr(error, "filename", None)
    return cause(error) if name is None else f"{name}: {cause(error)}"


def line(error: BaseException) -> str:
    """Return the last line of an error's text, or its type if it has no text."""
    if isinstance(error, AttributeError) and error.__context__ is not None:
        # If no answer came, Beam's S3 client raises AttributeError when it reads the status; the cause is the earlier
        # error.
        error = error.__context__
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


@contextmanager
def silent_clients() -> Iterator[None]:
    """While a block runs, do not log the stacks of Beam's store clients, as the error says what failed."""
    # Each block adds its own filter, so that the end of an inner block does not remove the outer block's filter.
    own = partial(_is_not_of_beam)
    loggers = (logging.getLogger(), logging.getLogger("apache_beam.utils.retry"))
    for logger in loggers:
        logger.addFilter(own)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(own)


def _is_not_of_beam(record: logging.LogRecord) -> bool:
    return "apache_beam" not in record.pathname
