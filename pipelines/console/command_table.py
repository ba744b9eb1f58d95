"""A command line as a table of functions; the module of a function is imported only when its command is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from textwrap import wrap
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from pipelines.console.loading import loading

_WIDTH = 74
"""Width of an example's line, so that with two columns before the line and a backslash after it, 80 columns suffice."""


@dataclass(frozen=True)
class Row:
    """A command or a group of commands.

    Attributes:
        name: the word on the command line.
        line: the first line of the help; it is in this table so that the list of commands needs no import.
        target: module of pipelines.commands and function, as in jobs:shuffle; for a group, the rows of its commands. A
            function with the parameter `context` accepts Beam's options after a bare --.
        example: for a group, the words after the group's name in the example of the help; empty for a command, whose
            example is in the docstring of its function.
    """

    name: str
    line: str
    target: str | tuple[Row, ...]
    example: str = ""


class Unloaded(TyperCommand):
    """A row in the list of commands; the command's module is imported when the command is called."""

    def __init__(self, row: Row) -> None:
        super().__init__(row.name, help=row.line)
        self.row = row

    def load(self) -> Any:
        """Import the module of the command or group, and return the command or group."""
        row = self.row
        if isinstance(row.target, tuple):
            example = f"Example: hushcount {row.name} {row.example}"
            sections = {"Commands": row.target}
            return Commands(name=row.name, help=row.line, epilog=example, sections=sections, rich_markup_mode=None)
        from pipelines.console.answer import answering

        module, _, name = row.target.partition(":")
        function = getattr(import_module(f"pipelines.commands.{module}"), name)
        app = _app()
        app.command(
            row.name,
            help=f"{row.line}\n\n{_pasted(inspect.getdoc(function) or '')}",
            context_settings={"allow_extra_args": "context" in inspect.signature(function).parameters},
        )(answering(function))
        return get_command(app)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with loading():
            return self.load().make_context(*arguments, **options)


class Commands(TyperGroup):
    """Tables of commands under their titles, printed if no command is given; rewords the parser's errors."""

    sections: ClassVar[Mapping[str, tuple[Row, ...]]] = {}

    def __init__(self, *, sections: Mapping[str, tuple[Row, ...]] | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self._sections = sections or self.sections
        for rows in self._sections.values():
            for row in rows:
                self.add_command(Unloaded(row))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args if args or ctx.resilient_parsing else ["--help"])

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # the parser's
        # Start the texts of all tables at the same column, and cut no text.
        width = max(map(len, self.commands))
        for title, rows in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(row.name.ljust(width), row.line) for row in rows])

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with loading(), _in_our_words():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        with _in_our_words():
            return super().invoke(ctx)


def new_app(
    text: str,
    tables: Mapping[str, tuple[Row, ...]],
    options: Callable[..., None] = lambda: None,
    more: str = "",
) -> typer.Typer:
    """Return the app with these tables of commands, by title of the table.

    Args:
        text: the help of the app.
        options: function that takes the options before the command.
        more: the last paragraph of the help. If it is empty, the help ends with an example of the first command.
    """
    (first, *_), *_ = tables.values()

    class Tables(Commands):
        sections = tables

    app = _app(cls=Tables, add_completion=True)
    app.callback(help=text, epilog=more or f"Example: hushcount {first.name} --help")(options)
    return app


def _app(*, add_completion: bool = False, **settings: Any) -> typer.Typer:
    return typer.Typer(
        add_completion=add_completion,
        name="hushcount",
        pretty_exceptions_enable=False,
        # With markup, help texts would lose words in brackets.
        rich_markup_mode=None,
        **settings,
    )


def _pasted(text: str) -> str:
    """Break the example at the end of a docstring into lines that can be pasted and that the parser does not join."""
    before, begin, example = text.rpartition("Example: ")
    return f"{before}\b\n" + " \\\n  ".join(wrap(begin + example, _WIDTH, break_on_hyphens=False))


@contextmanager
def _in_our_words() -> Iterator[None]:
    """Turn an error of the parser into one sentence that names the option, its value, and the allowed range.

    Raises:
        Exit: the parser found an error in the command line.
    """
    try:
        yield
    except Exception as error:
        # The parser's errors have no public type, but all of them have the method format_message.
        if not hasattr(error, "format_message"):
            raise
        from pipelines.console.answer import fail

        context = getattr(error, "ctx", None)
        command = "hushcount" if context is None else context.command_path
        fail(f"{_sentence(error)}: see {command} --help", getattr(error, "exit_code", 2))


def _sentence(error: Any) -> str:
    from pydantic import ValidationError

    from hushcount.formats.models import explain

    parameter = getattr(error, "param", None)
    if isinstance(error.__cause__, ValidationError) and parameter is not None:
        return explain(error.__cause__, str(parameter.opts[0])).rstrip(".")
    message = str(error.format_message()).strip().rstrip(".")
    return message[:1].lower() + message[1:]
