"""Prompts for a person, or for the lines of a pipe, on standard error, because standard output is for results."""

from __future__ import annotations

import sys
from collections.abc import Callable

from hushcount.errors import UsageError
from pipelines.console.answer import note

_TRIES = 3
_LONGEST = 1000
_LONGEST_REPEATED = 40


def is_person() -> bool:
    """Return whether somebody at a terminal can read a prompt and answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def prompt(text: str, option: str, check: Callable[[str], None], default: str | None = None) -> str:
    """Return the answer to a prompt.

    After an invalid answer a person may type another answer, up to three answers in all. An invalid line of a pipe is
    an error.

    Args:
        text: the text of the prompt, one line.
        option: the option that gives the answer without a prompt; the error message names it.
        check: raises UsageError if an answer is invalid.
        default: the answer that an empty line stands for.

    Raises:
        UsageError: standard input ends before an answer, or the answer is invalid.
    """
    none = f"standard input has no answer to the prompt: {text} Type an answer, or give {option}"
    for left in range(_TRIES - 1, -1, -1):
        note(text if default is None else f"{text} [{default}]")
        try:
            answer = _line() or default
            if answer is None:
                raise UsageError(none)
            check(answer)
        except UsageError as error:
            if not left or not sys.stdin.isatty():
                raise
            note(f"  {error}")
            continue
        except EOFError:
            raise UsageError(none) from None
        return answer
    raise AssertionError


def repeated(answer: str) -> str:
    """Return an answer for an error message: in quotes, shortened, with control characters escaped."""
    return repr(answer) if len(answer) <= _LONGEST_REPEATED else f"{answer[:_LONGEST_REPEATED]!r}..."


def _line() -> str:
    """Return a line of standard input without white space around it; EOFError: standard input has no more lines."""
    try:
        line = sys.stdin.readline(_LONGEST)
        if len(line) == _LONGEST and line[-1] != "\n":
            # Discard the rest of the line, because it must not be read as the answer to the next prompt.
            while (rest := sys.stdin.readline(_LONGEST)) and rest[-1] != "\n":
                pass
            raise UsageError(f"the answer is longer than {_LONGEST:,} characters: type a shorter one")
        # A lenient decoder turns invalid bytes into surrogates, and `encode` raises an error if there are any.
        line.encode()
    except UnicodeError:
        raise UsageError("the answer is not UTF-8: type it in that encoding") from None
    if not line:
        raise EOFError
    return line.strip()
