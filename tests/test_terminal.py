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


@pytest.mark.parametrize("name", ["typer", "numpy", "pydantic"])
def test_ctrl_c_while_a_command_is_loaded_ends_it_without_a_word(name: str) -> None:
    run = program(INTERRUPTED.format(name=name), "plan", "--epsilon", 1, "--dictionary-size", 9, "--reports", 9)
    assert (run.returncode, run.stdout, run.stderr) == (-signal.SIGINT, "", "")


def test_ctrl_c_while_a_command_runs_is_one_word() -> None:
    run = program(INTERRUPTED.format(name="pipelines.deployment.settings"), "doctor", "--config", "deployment.toml")
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "stopped\n")


def test_a_command_without_its_libraries_says_how_they_are_installed() -> None:
    source = "import sys; sys.modules['typer'] = None; from pipelines.entry import main; main()"
    run = program(source, "plan")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == "error: the hushcount command needs typer: in a checkout, pip install ./hushcount .\n"


@pytest.mark.long
def test_what_is_started_in_the_background_goes_on_ignoring_ctrl_c() -> None:
    source = INTERRUPTED.format(name="pipelines.deployment.settings").replace(
        "signal.default_int_handler", "signal.SIG_IGN"
    )
    assert "cannot read deployment file" in program(source, "doctor", "--config", "nowhere.toml").stderr


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
    run = program(source, "shuffle", "--campaign", "nowhere.json", "--input", "nowhere", "--out", "nowhere")
    assert run.stderr == "error: cannot read campaign file nowhere.json: No such file or directory\n"


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


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_says_all_that_was_written_also_in_brackets(path: tuple[str, ...]) -> None:
    shown = "".join(done(*path, "--help").out.split())
    texts = [COMMANDS[path].help, *(getattr(option, "help", None) for option in COMMANDS[path].params)]
    for text in texts:
        assert "".join((text or "").split()) in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("plan", "--epsilon", "two"), "--epsilon is 'two': must be a number: see hushcount plan --help"),
        (("ask", "item", "--last", "0"), "--last is '0': must be at least 1: see hushcount ask item --help"),
        (("keys", "new", "--role", "operater"), "--role: 'operater' is not one of 'both', "),
        (("collect",), "missing option '--config': see hushcount collect --help"),
        (("colect",), "no such command 'colect'"),
        (("plan", "--epsilom", "1"), "no such option: --epsilom"),
        (("status", "deployment.toml", "--config", "d.toml"), "unexpected extra argument"),
        (
            ("privacy", "--discovery", "--epsilon", 1, "--delta", 1e-8, "--cap", 10**11),
            "cap is 100000000000, must be in",
        ),
        (("keys", "list", "--keys", "nowhere"), "must be one that hushcount keys new made"),
    ],
)
def test_a_mistyped_command_line_is_one_sentence(arguments: tuple[object, ...], says: str) -> None:
    run = refused(*arguments, says=[says])
    assert run.out == ""
    assert run.err.startswith("error: ")
    assert run.err.count("\n") == 1
    assert not any(theirs in run.err for theirs in ("Value error", "Input should", "Usage:", "Try "))
