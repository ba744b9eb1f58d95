"""Tables at any width: no number, window or date is cut, whatever the terminal, and nothing in brackets is lost."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.console.answer import Sentence, show
from pipelines.console.tables import Table
from tests.support.collecting import collect
from tests.support.site import Site, values

WIDTHS = (40, 60, 80, 160)
BIG = 12_345_678
"""Counts of this size stand in every table that is not printed from a real deployment here."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(tmp_path_factory.mktemp("tables"))
    for day in (0, 1):
        collect(site.store, site.campaign, [*values(1_000 * (day + 1)), *["delta"] * 200], day=day)
        site.run(day + 1.1)
    return site


def printed(width: int, *arguments: object) -> str:
    result = CliRunner().invoke(app, [str(one) for one in arguments], env={"COLUMNS": str(width), "NO_COLOR": "1"})
    return result.output


COMMANDS = {
    "status": ("status", "--config", "deployment.toml"),
    "ask item": ("ask", "item", "--config", "deployment.toml", "--campaign", "words"),
    "ask top": ("ask", "top", "--config", "deployment.toml", "--campaign", "words"),
    "ask sum": ("ask", "sum", "--config", "deployment.toml", "--campaign", "words", "--all"),
    "ask total": ("ask", "total", "--config", "deployment.toml", "--campaign", "words"),
    "ask change": ("ask", "change", "--config", "deployment.toml", "--campaign", "words"),
    "doctor": ("doctor", "--all", "--config", "deployment.toml"),
    "ledger show": ("ledger", "show", "--ledger", "ledger.db"),
    "keys list": ("keys", "list", "--keys", "keys"),
    "plan": ("plan", "--epsilon", 1, "--dictionary-size", 26_000, "--reports", 100_000_000),
    "privacy": ("privacy", "--discovery", "--epsilon", 1, "--delta", 1e-8),
}


def words_of(text: str) -> set[str]:
    return set(re.findall(r"[^\s│─━]*[0-9][^\s│─━]*", text))


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.long(but=("privacy",))
def test_a_narrow_terminal_shows_every_number_that_a_wide_one_shows(
    site: Site, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(site.root)
    wide = printed(1_000, *COMMANDS[command])
    # Free space and the ledger's age change from look to look. What is longer than a terminal is folded: paths, keys.
    lines = [line for line in wide.splitlines() if " GB " not in line and "beside the ledger" not in line]
    numbers = {word for word in words_of(" ".join(lines)) if len(word) < 26}
    assert len(numbers) > 3
    for width in (60, 80):
        narrow = printed(width, *COMMANDS[command])
        assert "…" not in narrow
        assert "\x1b" not in narrow
        assert numbers - words_of(narrow) == set()


def test_a_job_and_an_estimate_too(site: Site) -> None:
    where = ("--campaign", site.campaign, "--input", site.store / "shuffled" / "words" / site.batch(1))
    shown = printed(60, "job", "analyze", *where, "--keys", site.keys, "--out", site.root / "again")
    assert "2,200" in shown
    estimate = ("job", "estimate", "--campaign", site.campaign, "--items", site.words, "--out", site.root / "more")
    shown += printed(60, *estimate, "--tally", site.root / "again" / "tally.npz")
    assert "written to" in shown
    assert "…" not in shown


def test_cells_that_do_not_fit_beside_each_other_come_below_each_other(subtests: pytest.Subtests) -> None:
    for width in WIDTHS:
        with subtests.test(width=width):
            stream = io.StringIO()
            console = Console(file=stream, width=width, markup=False, emoji=False)
            heads = ("window", "received", "limit/s", "error", "why")
            rows = [
                ("2026-11-22", f"{BIG + n:,}", "no limit", f"{BIG:,} ± 12,345", "one [word] :smile: after another")
                for n in range(3)
            ]
            console.print(Table("a [title]", heads, rows, words=("why",)))
            shown = stream.getvalue()
            assert "…" not in shown
            assert all(len(line) <= width for line in shown.splitlines())
            for number in range(3):
                assert f"{BIG + number:,}" in shown
            assert shown.count(f"{BIG:,} ± 12,345") == 3
            assert shown.count("[word]") == shown.count(":smile:") == 3
            assert "a [title]" in shown


def test_a_sentence_is_wrapped_between_words_on_a_terminal_and_whole_in_a_pipe() -> None:
    text = " ".join(f"word-{number}" for number in range(40))
    for terminal in (True, False):
        stream = io.StringIO()
        show([Sentence(text)], Console(file=stream, width=60, force_terminal=terminal, color_system=None))
        lines = stream.getvalue().splitlines()
        assert [word for line in lines for word in line.split()] == text.split()
        assert all(line.startswith("  ") and line == line.rstrip() for line in lines)
        assert (len(lines) > 1) == terminal
        assert all(len(line) <= 60 for line in lines) == terminal
