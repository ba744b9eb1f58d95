"""Questions to a person, or to the lines of a pipe: on standard error, so that standard output is the answer."""

from __future__ import annotations

import sys
from collections.abc import Callable

from hushcount.errors import UsageError
from pipelines.console.answer import note

_TRIES = 3
_LONGEST = 1000


def ask(question: str, option: str, check: Callable[[str], None]) -> str:
    """Return the answer to a question.

    A person may try again; the lines of a pipe are taken as they are.

    Args:
        question: one line.
        option: what gives the answer without a question, for the error.
        check: raises UsageError if an answer cannot be.

    Raises:
        UsageError: standard input has ended; or the answer cannot be.
    """
    for left in range(_TRIES - 1, -1, -1):
        note(question)
        line = sys.stdin.readline(_LONGEST)
        if not line.strip():
            raise UsageError(f"no answer on standard input to the question: {question} Type one, or give {option}")
        try:
            check(line.strip())
        except UsageError as error:
            if not left or not sys.stdin.isatty():
                raise
            note(f"  {error}")
            continue
        return line.strip()
    raise AssertionError
