"""What is wrong with a command line, in one sentence as every other error: the option, its value, what is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError
from typer.core import TyperGroup

from hushcount.errors import UsageError
from hushcount.formats.models import explain
from pipelines.console.common import fail


class Commands(TyperGroup):
    """All commands: errors of the parser are said as ours are."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _in_our_words():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        with _in_our_words():
            return super().invoke(ctx)


@contextmanager
def _in_our_words() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # The parser's errors have no public type; what they have in common is what they are shown by.
        if not hasattr(error, "format_message") or isinstance(error, UsageError):
            raise
        context = getattr(error, "ctx", None)
        command = "hushcount" if context is None else context.command_path
        fail(f"{_said(error)}: see {command} --help", getattr(error, "exit_code", 2))


def _said(error: Any) -> str:
    parameter = getattr(error, "param", None)
    if isinstance(error.__cause__, ValidationError) and parameter is not None:
        return explain(error.__cause__, _name(parameter)).rstrip(".")
    message = str(error.format_message()).strip().rstrip(".")
    return message[:1].lower() + message[1:]


def _name(parameter: Any) -> str:
    return str(parameter.opts[0])
