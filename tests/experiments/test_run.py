"""Whole figures: their files, resumption, missing data, and verdicts that can be no."""

from __future__ import annotations

import csv
import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from experiments import catalogue, overview
from experiments.__main__ import main
from experiments.catalogue import FIGURES, figures
from experiments.figure import Settings
from experiments.figure_files import Folder
from experiments.judging import bounded, judge
from experiments.rows import COLUMNS
from experiments.run import Options, reproduce
from hushcount.errors import UsageError

NEEDED = ("figure", "reproduced", "as_printed", "sentence", "runs", "seed", "data", "quick", "version", "claims")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny stand-ins for the files that are not shipped."""
    directory = tmp_path_factory.mktemp("data")
    held = "".join(f"{value},{count}\n" for value, count in enumerate([3, 480, 50, 40, 30, *[2] * 100]))
    (directory / "mini_kosarak.csv").write_text("value,count\n" + held, encoding="utf-8")
    lines = "".join(f"site-{place}\n" * (1 + 300 // (place + 1)) for place in range(300))
    _gzip(directory / "url20_modelled_100000.txt.gz", lines)
    words = "".join(f"word{place}\t{10 + 100_000 // (place + 1)}\n" for place in range(2000))
    _gzip(directory / "twitter_word_counts.tsv.gz", words)
    return directory


def _gzip(path: Path, text: str) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.write(text)


THREE = ("j-fig2", "p25-fig2", "p26-table")
TEN = (*THREE, "j-fig5", "j-fig7", "j-fig8", "p25-table2", "p25-fig4", "p26-fig1", "p26-fig2")


@pytest.fixture(
    scope="module",
    params=[pytest.param(THREE, marks=pytest.mark.long), pytest.param(TEN, marks=pytest.mark.long)],
    ids=["three", "ten"],
)
def names(request: pytest.FixtureRequest) -> tuple[str, ...]:
    figures: tuple[str, ...] = request.param
    return figures


@pytest.fixture(scope="module")
def results(names: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    """Some figures, run quickly."""
    out = tmp_path_factory.mktemp("results")
    done = reproduce(names, Options(out, data, quick=True, runs=3))
    assert [outcome.state for outcome in done] == ["run"] * len(names)
    return out


def test_every_figure_has_a_table_a_plot_and_a_verdict(results: Path, names: tuple[str, ...]) -> None:
    for record in results.glob("*.json"):
        facts = json.loads(record.read_text(encoding="utf-8"))
        assert all(name in facts for name in NEEDED)
        assert facts["reproduced"] is True, facts["sentence"]
        assert any(letter.isdigit() for letter in facts["sentence"])
        with record.with_suffix(".csv").open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert tuple(rows[0]) == COLUMNS
        assert any(row["measured"] and row["predicted"] for row in rows)
        assert record.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert {path.stem for path in results.glob("*.json")} == set(names)
    assert not list(results.glob(".*")), "nothing unfinished is left"


def test_runs_are_those_asked_for_and_none_where_nothing_is_drawn(results: Path) -> None:
    def runs(name: str) -> int:
        return int(json.loads((results / f"{name}.json").read_text(encoding="utf-8"))["runs"])

    assert runs("p25-fig2") == 3
    assert runs("j-fig2") == 0


def test_the_overview_has_a_line_a_sentence_and_a_plot_for_each(results: Path) -> None:
    page = (results / "README.md").read_text(encoding="utf-8")
    for record in results.glob("*.json"):
        facts = json.loads(record.read_text(encoding="utf-8"))
        assert facts["sentence"] in page
        assert f"![{facts['figure']}]({facts['figure']}.png)" in page
    assert "0.09 %" in page


def test_what_a_paper_has_wrong_is_told_as_printed_no(results: Path) -> None:
    facts = json.loads((results / "p26-table.json").read_text(encoding="utf-8"))
    assert facts["as_printed"] is False
    refuted = {claim["text"] for claim in facts["claims"] if not claim["holds"]}
    assert "OCMS is at most 0.09 % above the bound at epsilon 1, d = 100" in refuted


@pytest.mark.parametrize("name", ["j-fig2", "p25-table2", "p25-fig2", "p26-fig1", "p26-table"])
@pytest.mark.long(but=("p26-table",))
def test_a_spoilt_prediction_is_not_reproduced(name: str) -> None:
    figure = FIGURES[name]
    rows = [row for point in figure.points(Settings(15, 1, True)) for row in point.measure()]
    assert judge(bounded(rows), []).reproduced
    for factor in (0.3, 3.0):
        spoilt = [replace(row, predicted=row.predicted * factor) if row.predicted else row for row in rows]
        assert not judge(bounded(spoilt), []).reproduced, factor


@pytest.mark.long
def test_a_finished_figure_is_kept_unless_something_changed(results: Path, data: Path) -> None:
    def again(**changes: object) -> str:
        options = replace(Options(results, data, quick=True, runs=3), **changes)  # type: ignore[arg-type]
        return reproduce(["p26-table"], options)[0].state

    before = (results / "p26-table.png").stat().st_mtime_ns
    assert again() == "kept"
    assert (results / "p26-table.png").stat().st_mtime_ns == before
    assert again(overwrite=True) == "run"
    assert again(seed=2) == "run"
    assert again() == "run"


def test_a_figure_without_one_of_its_files_runs_again(tmp_path: Path) -> None:
    assert reproduce(["j-fig7"], Options(tmp_path, quick=True))[0].state == "run"
    (tmp_path / "j-fig7.png").unlink()
    assert Folder.of(tmp_path).record("j-fig7") is None
    assert reproduce(["j-fig7"], Options(tmp_path, quick=True))[0].state == "run"


@pytest.mark.long
def test_a_killed_run_goes_on_after_its_finished_points(tmp_path: Path) -> None:
    def stop(name: str, done: int, total: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    options = Options(tmp_path / "killed", quick=True, runs=3)
    with pytest.raises(KeyboardInterrupt):
        reproduce(["p26-fig1"], options, stop)
    assert not list(options.out.glob("p26-fig1.*")), "no file of the figure before it is whole"
    kept = sorted(options.out.glob(".p26-fig1.*.tmp/*.json"))
    assert len(kept) == 4
    first = json.loads(kept[0].read_text(encoding="utf-8"))
    first[0]["series"] = "as it was kept"
    kept[0].write_text(json.dumps(first), encoding="utf-8")
    reproduce(["p26-fig1"], options)
    reproduce(["p26-fig1"], replace(options, out=tmp_path / "whole"))
    resumed, whole = ((tmp_path / name / "p26-fig1.csv").read_text(encoding="utf-8") for name in ("killed", "whole"))
    assert "as it was kept" in resumed
    # All points but the marked one are the same as those of a run that was not killed.
    ours, theirs = (
        [line.rpartition(",")[0].rpartition(",")[0] for line in text.splitlines()] for text in (resumed, whole)
    )
    assert sum(a != b for a, b in zip(ours, theirs, strict=True)) == 1
    assert not list(options.out.glob(".*"))


def test_missing_data_are_named_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"p25-fig4: mini_kosarak\.csv"):
        reproduce(["j-fig2", "p25-fig4"], Options(tmp_path / "out", tmp_path))
    assert not (tmp_path / "out").exists()


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalogue of three: all of them take a minute even quickly."""
    chosen = {name: FIGURES[name] for name in ("j-fig7", "j-fig9", "p26-table")}
    monkeypatch.setattr(catalogue, "FIGURES", chosen)
    monkeypatch.setattr(overview, "FIGURES", chosen)


@pytest.mark.usefixtures("three")
def test_of_all_figures_those_without_data_are_listed_and_the_status_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--quick", "--out", str(tmp_path)]) == 2
    told = dict(line.split(": ", maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert told["j-fig9"].startswith("not run, data missing: ")
    assert "url20_modelled" in told["j-fig9"]
    assert told["p26-table"].startswith("reproduced yes, as printed no. ")
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "not run: data missing" in page
    assert "url20_modelled" in page


@pytest.mark.long
def test_discovery_on_other_data_misses_the_papers_number(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verdict is computed: what is measured follows the prediction, but 5,500 URLs are not found among 300."""
    assert main(["j-fig9", "j-fscore", "--runs", "3", "--out", str(tmp_path), "--data", str(data)]) == 1
    found = json.loads((tmp_path / "j-fig9.json").read_text(encoding="utf-8"))
    assert found["inside"] == found["tested"]
    assert found["reproduced"] is False
    assert "j-fig9: reproduced no" in capsys.readouterr().out


def test_one_wrong_name_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"p25-fig3\?") as caught:
        main(["p25-figg3", "--out", str(tmp_path)])
    assert all(name in str(caught.value) for name in FIGURES)


def test_one_run_is_too_few_and_a_billion_are_too_many(tmp_path: Path) -> None:
    for runs in (1, 10**9):
        with pytest.raises(UsageError, match=rf"runs is {runs:,}.* 2"):
            reproduce(["p26-fig1"], Options(tmp_path, runs=runs))


def test_a_damaged_data_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "mini_kosarak.csv").write_text("value,count\n99999,3\n", encoding="utf-8")
    with pytest.raises(UsageError, match="columns value"):
        reproduce(["p26-fig2"], Options(tmp_path / "out", tmp_path, quick=True))
    (tmp_path / "twitter_word_counts.tsv.gz").write_bytes(b"no gzip")
    with pytest.raises(UsageError, match="gzip"):
        reproduce(["j-fscore"], Options(tmp_path / "out", tmp_path, quick=True))


def test_the_packages_own_directory_keeps_figures_apart_from_code(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").touch()
    reproduce(["p26-table"], Options(tmp_path, quick=True))
    assert (tmp_path / "plots" / "p26-table.png").is_file()
    assert "(plots/p26-table.png)" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_names_are_run_once_and_in_order() -> None:
    assert [figure.name for figure in figures(["j-fig7", "j-fig2", "j-fig7"])] == ["j-fig7", "j-fig2"]
    assert len(figures([])) == 16
