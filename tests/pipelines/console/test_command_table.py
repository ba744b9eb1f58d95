"""The table of commands: it has a row for every command, and imports no module that is not called."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
from itertools import product

import pytest
from typer.testing import CliRunner

import pipelines.commands
from pipelines.cli import HUSHCOUNT, app
from pipelines.console.command_table import Unloaded

SHOWN = [row for rows in HUSHCOUNT.values() for row in rows]
ROWS = (*SHOWN, *(row for group in SHOWN if isinstance(group.target, tuple) for row in group.target))
TARGETS = [row.target for row in ROWS if isinstance(row.target, str)]
RUN = """
import json, os, sys
import pipelines.cli
from pipelines.entry import main
for name, words in json.loads(sys.argv[1]).items():
    if os.fork() == 0:
        sys.argv = ["hushcount", *words]
        try:
            main()
        except SystemExit as ended:
            print(name, ended.code or 0, *sorted(sys.modules), flush=True)
        os._exit(0)
    os.wait()
"""
"""Runs each command in a copy of a process that has loaded the table."""
CALLED: dict[str, tuple[str, ...]] = {
    "list": ("--help",),
    "group": ("campaign", "--help"),
    "unknown": ("colect",),
    "keys": ("keys", "list", "--keys", "nowhere"),
    "plan": ("plan", "--epsilon", "1", "--reports", "9", "--dictionary-size", "9"),
    "status": ("status", "--help"),
    "operate": ("run", "--help"),
    "jobs": ("job", "shuffle", "--help"),
    "epochs": ("campaign", "review", "--help"),
    "simulate": ("simulate", "--help"),
}
"""Commands by name; where it is that of a module of commands, they import this one alone."""
WITHOUT = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Without())
from pipelines.entry import main
"""


def program(source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-c", source, *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def imported() -> dict[str, tuple[int, set[str]]]:
    """Exit status and modules of a process that ran a command, by its name."""
    run = program(RUN, json.dumps(CALLED))
    lines = [line.split() for line in run.stdout.splitlines() if line.partition(" ")[0] in CALLED]
    ended = {name: (int(status), set(modules)) for name, status, *modules in lines if "sys" in modules}
    assert ended.keys() == CALLED.keys(), run.stderr
    return ended


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def commands(modules: set[str]) -> set[str]:
    return {name for name in modules if name.startswith("pipelines.commands.")}


def test_every_public_function_of_a_module_of_commands_has_one_row() -> None:
    functions = [
        f"{module.name}:{name}"
        for module in pkgutil.iter_modules(pipelines.commands.__path__, "pipelines.commands.")
        for name, value in vars(importlib.import_module(module.name)).items()
        if inspect.isfunction(value) and value.__module__ == module.name and not name.startswith("_")
    ]
    assert sorted(f"pipelines.commands.{target}" for target in TARGETS) == sorted(functions)


def test_a_row_has_the_name_and_the_first_line_of_its_commands_help() -> None:
    for row in ROWS:
        command = Unloaded(row).load()
        assert command.help.splitlines()[0] == row.line
        assert command.name == row.name or hasattr(command, "commands")


def test_without_a_word_every_command_is_shown_in_its_group_with_its_whole_line() -> None:
    for words, columns in product(([], ["--help"]), ("60", "80", "200")):
        run = CliRunner().invoke(app, words, env={"COLUMNS": columns})
        assert (run.exit_code, run.stderr) == (0, "")
        shown = [*map(str.split, run.output.splitlines())]
        assert [line[0][:-1] for line in shown if line and line[0][:-1] in HUSHCOUNT] == [*HUSHCOUNT]
        listed = " ".join(" ".join(line) for line in shown)
        for title, rows in HUSHCOUNT.items():
            assert f"{title}: {' '.join(f'{row.name} {row.line}' for row in rows)}" in listed
    assert len(SHOWN) <= 19


def test_the_list_of_commands_imports_no_command_and_nothing_that_counts(
    imported: dict[str, tuple[int, set[str]]],
) -> None:
    status, modules = imported["list"]
    assert (status, commands(modules)) == (0, set())
    assert not packages(modules) & {"hushcount", "keys", "numpy", "pydantic", "rich", "nacl", "apache_beam"}


def test_the_list_of_a_group_with_a_table_imports_no_command(imported: dict[str, tuple[int, set[str]]]) -> None:
    status, modules = imported["group"]
    assert (status, commands(modules)) == (0, set())
    assert not packages(modules) & {"hushcount", "keys", "numpy", "nacl", "apache_beam"}


def test_a_command_that_does_not_exist_imports_no_other(imported: dict[str, tuple[int, set[str]]]) -> None:
    status, modules = imported["unknown"]
    assert (status, commands(modules)) == (2, set())


def test_a_command_imports_its_module_and_no_key_nor_engine(
    imported: dict[str, tuple[int, set[str]]], subtests: pytest.Subtests
) -> None:
    for module in ("plan", "status", "operate", "jobs", "epochs", "simulate"):
        with subtests.test(module=module):
            status, modules = imported[module]
            assert status == 0
            assert commands(modules) == {f"pipelines.commands.{module}"}
            assert not packages(modules) & {"keys", "apache_beam"}


def test_a_command_of_keys_imports_no_engine(imported: dict[str, tuple[int, set[str]]]) -> None:
    status, modules = imported["keys"]
    assert (status, commands(modules)) == (2, {"pipelines.commands.keys"})
    assert "apache_beam" not in modules


def test_what_is_not_installed_is_named_in_one_sentence() -> None:
    """The first is missed by the table, the second by a command of it."""
    for name, words in (("typer", ("--help",)), ("nacl", ("keys", "list", "--keys", "nowhere"))):
        run = program(WITHOUT.format(name=name) + f"sys.argv = ['hushcount', *{words}]; main()")
        assert (run.returncode, run.stdout, run.stderr.count("\n")) == (1, "", 1), run.stderr
        assert f" {name}: " in run.stderr
        assert "pip install ./hushcount ./sealed_lanes ." in run.stderr


def test_a_signal_while_a_command_is_imported_ends_the_process_without_a_word() -> None:
    """Ctrl-C at that moment is in tests/test_terminal.py."""
    source = """
import os, signal, sys
class AtImport:
    def find_spec(self, name, path=None, target=None):
        if name == "pipelines.commands.plan":
            os.kill(os.getpid(), signal.SIGTERM)
sys.meta_path.insert(0, AtImport())
sys.argv = ["hushcount", "plan", "--help"]
from pipelines.entry import main
main()
"""
    run = program(source)
    assert (run.returncode, run.stdout, run.stderr) == (-15, "", "")
