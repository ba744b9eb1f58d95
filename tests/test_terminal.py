"""What a user's terminal does to the command line: Ctrl-C at any moment, letters that it lacks, text in brackets."""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pipelines.entry
from tests.support.commands import COMMANDS
from tests.support.jobs import done, refused

INTERRUPTED = """
import os, signal, sys
# Who starts tests in the background of a shell has them ignore SIGINT, and Python would leave it so.
signal.signal(signal.SIGINT, signal.default_int_handler)
class AtImport:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, AtImport())
from pipelines.entry import main
main()
"""
"""A command to which Ctrl-C comes while it imports a module."""
HUSHCOUNT = 'import sys; from pipelines.entry import main; sys.argv[0] = "hushcount"; main()'
_BREAKS = str.maketrans("", "", "\b\\")
"""What lines of an example are broken by, and marks that they stay."""


def program(source: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-c", source, *map(str, arguments)],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip


def test_ctrl_c_while_a_command_is_loaded_ends_it_without_a_word(subtests: pytest.Subtests) -> None:
    for name in ["typer", "numpy", "pydantic"]:
        with subtests.test(name=name):
            run = program(INTERRUPTED.format(name=name), "plan", "--epsilon", 1, "--dictionary-size", 9, "--reports", 9)
            assert (run.returncode, run.stdout, run.stderr) == (-signal.SIGINT, "", "")


def test_ctrl_c_while_a_command_runs_is_one_word() -> None:
    run = program(INTERRUPTED.format(name="pipelines.deployment.settings"), "doctor", "--config", "deployment.toml")
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "stopped\n")


def test_a_command_without_its_libraries_says_how_they_are_installed() -> None:
    source = "import sys; sys.modules['typer'] = None; from pipelines.entry import main; main()"
    run = program(source, "plan")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("error: ")
    assert "typer" in run.stderr
    assert "pip install ./hushcount ./sealed_lanes ." in run.stderr


@pytest.mark.long
def test_what_is_started_in_the_background_goes_on_ignoring_ctrl_c() -> None:
    source = INTERRUPTED.format(name="pipelines.deployment.settings").replace(
        "signal.default_int_handler", "signal.SIG_IGN"
    )
    assert "nowhere.toml" in program(source, "doctor", "--config", "nowhere.toml").stderr


def test_letters_that_a_terminal_lacks_are_said_in_its_own() -> None:
    plan = ("plan", "--epsilon", 1, "--reports", 9, "--dictionary")
    source = "from pipelines.entry import main; main()"
    run = program(source, *plan, "größe-±.txt", PYTHONIOENCODING="ascii")
    assert (run.returncode, run.stdout) == (2, "")
    assert r"gr\xf6\xdfe-+-.txt" in run.stderr
    pipelines.entry._speak_plainly()
    lone = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=pipelines.entry._PLAINLY)
    lone.write("a file named \udcff")
    lone.flush()
    assert lone.buffer.getvalue() == rb"a file named \udcff"  # type: ignore[attr-defined]


@pytest.mark.long
def test_what_is_missing_of_beams_clouds_is_not_told() -> None:
    """The extra gcp is installed here, that of Beam is not: Beam warns of half a Google Cloud."""
    source = "from pipelines.entry import main; main()"
    run = program(source, "job", "shuffle", "--campaign", "nowhere.json", "--input", "nowhere", "--out", "nowhere")
    assert run.stderr.count("\n") == 1
    assert run.stderr.startswith("error: ")
    assert "nowhere.json" in run.stderr


@pytest.mark.long
def test_json_is_json_in_every_encoding(tmp_path: Any) -> None:
    words = tmp_path / "w.txt"
    words.write_text("größe\n")
    source = "from pipelines.console.answer import show_json; show_json({'item': 'größe ±'})"
    for encoding in ("ascii", "latin-1", "utf-8"):
        run = program(f"import json\n{source}", PYTHONIOENCODING=encoding, PYTHONUTF8="0")
        assert '"item"' in run.stdout
        assert run.returncode == 0
        assert (r"\u00f6" in run.stdout) == (encoding != "utf-8")


def test_help_says_all_that_was_written_also_in_brackets_and_fits_into_80_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for path, command in COMMANDS.items():
        lines = done(*path, "--help").out.splitlines()
        assert max(map(len, lines)) <= 80, path
        shown = "".join("".join(lines).split())
        for text in [command.help, *(getattr(option, "help", None) for option in command.params)]:
            assert "".join((text or "").translate(_BREAKS).split()) in shown.translate(_BREAKS)


def test_the_example_of_each_help_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser takes its words: each is a command, an option that there is, or a value that it allows."""
    monkeypatch.setenv("COLUMNS", "80")
    for path in [(), *{path[:1] for path in COMMANDS if len(path) > 1}, *COMMANDS]:
        examples = re.findall(r"Example: hushcount ((?:.*\\\n)*.*)", done(*path, "--help").out)
        assert examples
        for example in examples:
            words = shlex.split(example.partition(" > ")[0].replace("\\\n", " "))
            assert words[: len(path)] == [*path]
            if "--help" in words:
                done(*words)
            else:
                name = next(name for name in COMMANDS if words[: len(name)] == [*name])
                COMMANDS[name].make_context("hushcount", words[len(name) :])


def test_a_shell_completes_commands_and_options(tmp_path: Path) -> None:
    """After the one command that documents name, in a new shell."""
    hushcount = tmp_path / "hushcount"
    hushcount.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{HUSHCOUNT}' \"$@\"\n")
    hushcount.chmod(0o700)
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}", "SHELL": "bash"}
    lines = """
        hushcount --install-completion bash > /dev/null || exit 1
        . ~/.bashrc
        complete -p hushcount
        for asked in "hushcount ask to" "hushcount ask top --wi" "hushcount re"; do
            COMP_WORDS=($asked) COMP_CWORD=$(($(echo "$asked" | wc -w) - 1)); _hushcount_completion hushcount
            echo "${COMPREPLY[@]}"
        done
    """
    run = subprocess.run(["bash", "-c", lines], env=environment, capture_output=True, text=True, check=True)  # noqa: S603, S607  # our own words
    assert run.stdout.splitlines()[1:] == ["top total", "--window", "repair"], run.stderr


def test_a_mistyped_command_line_is_one_sentence(subtests: pytest.Subtests) -> None:
    for arguments, says in [
        (("plan", "--epsilon", "two"), "--epsilon is 'two'"),
        (("ask", "item", "--last", "0"), "--last is '0'"),
        (("keys", "new", "--role", "operater"), "--role: 'operater'"),
        (("job", "shuffle"), "hushcount job shuffle --help"),
        (("colect",), "'colect'"),
        (("plan", "--epsilom", "1"), "--epsilom"),
        (("status", "deployment.toml", "--config", "d.toml"), "deployment.toml"),
        (
            ("privacy", "--discovery", "--epsilon", 1, "--delta", 1e-8, "--cap", 10**11),
            "cap is 100000000000",
        ),
        (("keys", "list", "--keys", "nowhere"), "hushcount keys new"),
    ]:
        with subtests.test(arguments=arguments):
            run = refused(*arguments, says=[says])
            assert run.out == ""
            assert run.err.startswith("error: ")
            assert run.err.count("\n") == 1
            assert not any(theirs in run.err for theirs in ("Value error", "Input should", "Usage:", "Try "))
