"""The demo on a small cut of its own data: what it prints is true and the page stands alone."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from scipy.stats import binom
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.jobs.found import read_found_items

DATA = Path(__file__).parents[1] / "examples" / "data"
PEOPLE, WORDS, FEW = 1_000, 9_000, 3_000
"""Of so many words a value outside the 500 listed ones is found with probability 1 - 3e-8."""
# |z| beyond this happens by chance with probability 1e-9 for one item, so below 1e-6 for all items of the cut.
Z_BOUND = 6.2


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cut(tmp_path_factory.mktemp("data"), WORDS)


def cut(directory: Path, words: int, listed: int = 500) -> Path:
    """Cut the demo's data to so many words, so many of them listed, and return the directory."""
    directory.mkdir(exist_ok=True)
    for name, lines in (("education.txt.gz", PEOPLE), ("words.txt.gz", words), ("words_dictionary.txt.gz", listed)):
        with gzip.open(DATA / name, "rt", encoding="utf-8") as stream:
            kept = [next(stream) for _ in range(lines)]
        with gzip.open(directory / name, "wt", encoding="utf-8") as stream:
            stream.writelines(kept)
    (directory / "education_dictionary.txt").write_bytes((DATA / "education_dictionary.txt").read_bytes())
    return directory


@pytest.fixture(scope="module")
def shown(small: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("demo") / "out"
    result = CliRunner().invoke(app, ["demo", "--out", str(out), "--data", str(small)], env={"COLUMNS": "300"})
    assert result.exit_code == 0, result.output
    return out, result.output


def test_it_tells_what_each_party_saw_and_could_not_see(shown: tuple[Path, str]) -> None:
    _, output = shown
    for party in ("Clients", "Shuffler", "Auxiliary server", "Analyzer"):
        assert party in output
    assert f"{PEOPLE:,} reports" in output
    assert f"{2 * WORDS:,} reports" in output


def test_estimates_are_within_their_errors(shown: tuple[Path, str]) -> None:
    out, _ = shown
    summary = json.loads((out / "summary.json").read_text())
    for scene, items in (("adult", 16), ("words", 500)):
        assert summary[scene]["items"] == items
        assert summary[scene]["largest_z"] < Z_BOUND
    discovery = summary["words"]["discovery"]
    assert abs(discovery["found"] - discovery["expected"]) < Z_BOUND * discovery["expected_deviation"] + 1
    assert discovery["found"] > 0
    # The intervals hold 95 % of words far above the threshold; near it more of them miss, less than a quarter of all.
    missing = discovery["found"] - discovery["intervals_holding"]
    assert 0 <= missing <= binom.isf(1e-6, discovery["found"], 0.25)
    # One word's noise is beyond 50 with a probability below 1e-8.
    assert discovery["error"] < 50
    assert discovery["predicted_error"] == pytest.approx(2.98, abs=5e-3)


def test_discovered_words_are_shown_with_count_interval_and_truth(shown: tuple[Path, str]) -> None:
    _, output = shown
    table = output.partition("the most frequent of them:")[2]
    heads, _, word = [line for line in table.splitlines() if line.strip()][:3]
    assert heads.split() == ["word", "truth", "count", "95", "%", "interval", "error"]
    truth, count, low, _, high = word.split()[1:6]
    assert float(low) < float(count) < float(high)
    assert abs(float(truth) - float(count)) < 50
    assert "Truth of “other”:" in output


def test_the_page_stands_alone_and_shows_everything(shown: tuple[Path, str]) -> None:
    out, output = shown
    for scene in ("adult", "words"):
        page = out / scene / "results" / "report.html"
        assert str(page) in output
        text = page.read_text(encoding="utf-8")
        # Names of XML name spaces are no references; nothing may be loaded from anywhere.
        assert not re.search(r"(?:src|href)\s*=\s*['\"](?!#)|@import|url\((?!#)", text)
        assert "default-src 'none'" in text
        assert "data-chart='intervals'" in text
        assert "What this guarantees" in text
        assert "Counts of every hop" in text
    assert all(f"<bdi>{item}</bdi>" in text for item in read_found_items(str(out / "words" / "found" / "found.csv")))


def test_no_report_is_kept(shown: tuple[Path, str]) -> None:
    out, _ = shown
    assert list(out.rglob("results/tally.npz"))
    assert not list(out.rglob("*.blocks"))


def test_a_second_run_needs_overwrite(shown: tuple[Path, str], small: Path) -> None:
    out, _ = shown
    again = CliRunner().invoke(app, ["demo", "--out", str(out), "--data", str(small)])
    assert again.exit_code == 2
    assert "--overwrite" in again.output


def test_missing_data_are_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "out"), "--data", str(tmp_path)])
    assert result.exit_code == 2
    assert "education.txt.gz" in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_with_oblivious_names_an_evaluator_plays_too(tmp_path: Path) -> None:
    """Where three words are listed, another of 3,000 is found with probability 1 - 1e-11."""
    out = tmp_path / "out"
    run = ["demo", "--out", str(out), "--data", str(cut(tmp_path / "data", FEW, 3)), "--hash", "oblivious"]
    result = CliRunner().invoke(app, run, env={"COLUMNS": "300"})
    assert result.exit_code == 0, result.output
    assert f"{FEW:,} evaluations" in result.output
    campaign = json.loads((out / "words" / "campaign.json").read_text())
    assert campaign["discovery"]["hash"] == "oblivious"
    assert "hash_key" not in campaign["discovery"]
    assert json.loads((out / "summary.json").read_text())["words"]["discovery"]["found"] > 0
