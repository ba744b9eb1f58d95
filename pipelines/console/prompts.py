"""Prompts for a person or the lines of a pipe, on standard error: standard output is for the command's answer."""

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

    After an invalid answer a person may try again; an invalid line of a pipe is an error.

    Args:
        text: the text of the prompt, one line.
        option: the option that answers without a prompt, for the error message.
        check: raises UsageError if an answer is invalid.
        default: the answer that an empty line stands for.

    Raises:
        UsageError: standard input has ended; or the answer is invalid.
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
    """Return an answer as an error message repeats it: in quotes, shortened, with control characters escaped."""
    return repr(answer) if len(answer) <= _LONGEST_REPEATED else f"{answer[:_LONGEST_REPEATED]!r}..."


def _line() -> str:
    """Return a line of standard input without white space around it; EOFError at its end."""
    try:
        line = sys.stdin.readline(_LONGEST)
        if len(line) == _LONGEST and line[-1] != "\n":
            # Discard the rest of the line: it must not answer the next prompt.
            while (rest := sys.stdin.readline(_LONGEST)) and rest[-1] != "\n":
                pass
            raise UsageError(f"the answer is longer than {_LONGEST:,} characters: type a shorter one")
        # A lenient decoder leaves surrogates in place of invalid bytes; encoding finds them.
        line.encode()
    except UnicodeError:
        raise UsageError("the answer is not UTF-8: type it in that encoding") from None
    if not line:
        raise EOFError
    return line.strip()
