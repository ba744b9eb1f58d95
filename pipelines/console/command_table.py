"""A command line as a table of modules: each is imported when its command is called or asked for its help."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from pipelines.console.loading import loading
from pipelines.console.usage import in_our_words


@dataclass(frozen=True)
class Row:
    """A command or a group of commands.

    Attributes:
        name: the word on the command line.
        line: the first line of its help, so that the list of commands needs no import.
        target: full name of the module that holds it as `app`; for a group with a table of its own, that table.
    """

    name: str
    line: str
    target: str | type[Commands]


class Unloaded(TyperCommand):
    """A row in the list of commands; what it stands for is loaded when it is called."""

    def __init__(self, row: Row) -> None:
        super().__init__(row.name, help=row.line)
        self.row = row

    def load(self) -> Any:
        """Return the command or group itself; its module is imported."""
        target = self.row.target
        if not isinstance(target, str):
            return target(name=self.row.name, help=self.row.line, no_args_is_help=True, rich_markup_mode=None)
        return get_command(import_module(target).app)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with loading():
            return self.load().make_context(*arguments, **options)


class Commands(TyperGroup):
    """A table of commands; errors of the parser are said as ours are."""

    rows: ClassVar[tuple[Row, ...]] = ()

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for row in self.rows:
            self.add_command(Unloaded(row))

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with loading(), in_our_words():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        with in_our_words():
            return super().invoke(ctx)


def new_app(text: str | None = None, table: type[Commands] | None = None) -> typer.Typer:
    """Return an app without commands: of one command, of a group, or of a table.

    Args:
        text: what the group's help says; None for an app of one command.
        table: the group's commands, if they are loaded when called.
    """
    return typer.Typer(
        name="hushcount",
        cls=table,
        help=text,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
        # Help is text: as markup it would lose what stands in brackets.
        rich_markup_mode=None,
    )
