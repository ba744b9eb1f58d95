"""Every command of the command line, loaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from pipelines.cli import app
from pipelines.console.command_table import Unloaded


def _below(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, listed in group.commands.items():
        command = listed.load() if isinstance(listed, Unloaded) else listed
        if hasattr(command, "commands"):
            yield from _below(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS: dict[tuple[str, ...], Any] = dict(_below(get_command(app)))
"""By their words."""
