"""What is wrong with a command line, in one sentence as every other error: the option, its value, what is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def in_our_words() -> Iterator[None]:
    """Say errors of the parser as ours are said.

    Raises:
        Exit: there was one; it was said.
    """
    try:
        yield
    except Exception as error:
        # The parser's errors have no public type; what they have in common is what they are shown by.
        if not hasattr(error, "format_message"):
            raise
        # Nothing of ours is needed where there is no error.
        from pipelines.console.common import fail

        context = getattr(error, "ctx", None)
        command = "hushcount" if context is None else context.command_path
        fail(f"{_said(error)}: see {command} --help", getattr(error, "exit_code", 2))


def _said(error: Any) -> str:
    from pydantic import ValidationError

    from hushcount.formats.models import explain

    parameter = getattr(error, "param", None)
    if isinstance(error.__cause__, ValidationError) and parameter is not None:
        return explain(error.__cause__, _name(parameter)).rstrip(".")
    message = str(error.format_message()).strip().rstrip(".")
    return message[:1].lower() + message[1:]


def _name(parameter: Any) -> str:
    return str(parameter.opts[0])
