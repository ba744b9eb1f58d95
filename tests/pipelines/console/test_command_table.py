"""The table of commands: it has a row for every command, and imports no module that is not called."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import pipelines.commands
from pipelines.cli import HUSHCOUNT, app
from pipelines.console.command_table import Row, Unloaded

ROWS = (*HUSHCOUNT, *(row for group in HUSHCOUNT if isinstance(group.target, tuple) for row in group.target))
TARGETS = [row.target for row in ROWS if isinstance(row.target, str)]
RUN = """
import sys
from pipelines.entry import main
sys.argv = ["hushcount", {words}]
try:
    main()
except SystemExit as ended:
    print(ended.code or 0, *sorted(sys.modules))
"""
WITHOUT = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Without())
from pipelines.entry import main
"""


def program(source: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)  # noqa: S603


def imported(*words: str) -> tuple[int, set[str]]:
    """Return exit status and modules of a process that ran a command."""
    run = program(RUN.format(words=repr(words)[1:-1].rstrip(",")))
    status, *modules = run.stdout.splitlines()[-1].split()
    return int(status), set(modules)


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


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_has_the_name_and_the_first_line_of_its_commands_help(row: Row) -> None:
    command = Unloaded(row).load()
    assert command.help.splitlines()[0] == row.line
    assert command.name == row.name or hasattr(command, "commands")


def test_the_list_of_commands_shows_every_row_in_order() -> None:
    """At any width each row shows as much of its line as the command would."""
    for columns in ("60", "80", "200"):
        shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": columns}).output
        listed = [line.split(maxsplit=1) for line in shown.partition("Commands:\n")[2].splitlines()]
        assert [name for name, _ in listed] == [row.name for row in HUSHCOUNT]
        assert all(row.line.startswith(text.rstrip(".")) for row, (_, text) in zip(HUSHCOUNT, listed, strict=True))


def test_the_list_of_commands_imports_no_command_and_nothing_that_counts() -> None:
    status, modules = imported("--help")
    assert (status, commands(modules)) == (0, set())
    assert not packages(modules) & {"hushcount", "keys", "numpy", "pydantic", "rich", "nacl", "apache_beam"}


def test_the_list_of_a_group_with_a_table_imports_no_command() -> None:
    status, modules = imported("epoch", "--help")
    assert (status, commands(modules)) == (0, set())
    assert not packages(modules) & {"hushcount", "keys", "numpy", "nacl", "apache_beam"}


def test_a_command_that_does_not_exist_imports_no_other() -> None:
    status, modules = imported("colect")
    assert (status, commands(modules)) == (2, set())


@pytest.mark.parametrize(
    ("words", "module"),
    [
        (("plan", "--epsilon", "1", "--reports", "9", "--dictionary-size", "9"), "plan"),
        (("status", "--help"), "status"),
        (("run", "--help"), "operate"),
        (("shuffle", "--help"), "jobs"),
        (("epoch", "review", "--help"), "epochs"),
        (("bench", "--help"), "measure"),
    ],
)
def test_a_command_imports_its_module_and_no_key_nor_engine(words: tuple[str, ...], module: str) -> None:
    status, modules = imported(*words)
    assert status == 0
    assert commands(modules) == {f"pipelines.commands.{module}"}
    assert not packages(modules) & {"keys", "apache_beam", "experiments", "benchmarks"}


def test_a_command_of_keys_imports_no_engine() -> None:
    status, modules = imported("keys", "list", "--keys", "nowhere")
    assert (status, commands(modules)) == (2, {"pipelines.commands.keys"})
    assert "apache_beam" not in modules


@pytest.mark.parametrize(("name", "words"), [("typer", ("--help",)), ("nacl", ("keys", "list", "--keys", "nowhere"))])
def test_what_is_not_installed_is_named_in_one_sentence(name: str, words: tuple[str, ...]) -> None:
    """The first is missed by the table, the second by a command of it."""
    run = program(WITHOUT.format(name=name) + f"sys.argv = ['hushcount', *{words}]; main()")
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr == f"error: the hushcount command needs {name}: in a checkout, pip install ./hushcount .\n"


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
