"""What a user's terminal does to the command line: Ctrl-C at any moment, letters that it lacks, text in brackets."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
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


def test_help_says_all_that_was_written_also_in_brackets() -> None:
    for path in COMMANDS:
        shown = "".join(done(*path, "--help").out.split())
        texts = [COMMANDS[path].help, *(getattr(option, "help", None) for option in COMMANDS[path].params)]
        for text in texts:
            assert "".join((text or "").replace("\b", "").split()) in shown


def test_a_mistyped_command_line_is_one_sentence(subtests: pytest.Subtests) -> None:
    for arguments, says in [
        (("plan", "--epsilon", "two"), "--epsilon is 'two'"),
        (("ask", "item", "--last", "0"), "--last is '0'"),
        (("keys", "new", "--role", "operater"), "--role: 'operater'"),
        (("collect",), "hushcount collect --help"),
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
