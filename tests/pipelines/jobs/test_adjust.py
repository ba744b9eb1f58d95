"""hushcount adjust: the column, where its total is from, and that nothing else changes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushcount.oracles.postprocess import non_negative, norm_sub, sum_to
from pipelines.jobs.results import COLUMNS
from pipelines.jobs.tables import csv_bytes
from tests.support.jobs import done, files_under, read_csv, refused

COUNTS = np.array([612.25, 305.5, 41.125, -20.0, -38.875, 7.0])
NAMES = ["alpha", "größe", '"quoted", and comma', "nobody", "null", ""]
ACCEPTED, OTHER = 1000, 150.5


def table(counts: np.ndarray = COUNTS) -> pa.Table:
    error = np.full(len(counts), 30.0)
    numbers = (counts, error, 0.0 * error, counts - 60, counts + 60, counts - 80, counts + 80)
    columns = (NAMES[: len(counts)], *numbers, counts > 90.0, counts > 100.0)
    return pa.table(dict(zip(COLUMNS, columns, strict=True)))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """What hushcount analyze leaves of a whole dictionary, as far as adjust reads it."""
    directory = tmp_path / "results"
    directory.mkdir()
    pq.write_table(table(), directory / "estimates.parquet")
    (directory / "estimates.csv").write_bytes(csv_bytes(table()))
    write_summary(directory)
    return directory


def write_summary(directory: Path, **changes: object) -> None:
    summary = {"hop": "analyze", "accepted": ACCEPTED, "other": {"count": OTHER}, "items": 6, "whole_dictionary": True}
    data = {key: value for key, value in {**summary, **changes}.items() if value is not None}
    (directory / "summary.json").write_text(json.dumps(data))


def adjusted(path: Path) -> pa.Table:
    return pq.read_table(path)


def test_one_column_is_added_and_the_rest_is_as_it_was(
    subtests: pytest.Subtests, results: Path, tmp_path: Path
) -> None:
    for source in (
        "estimates.parquet",
        "estimates.csv",
    ):
        for method, expected in (
            ("non-negative", non_negative(COUNTS)),
            ("sum-to", sum_to(COUNTS, ACCEPTED - OTHER)),
            ("norm-sub", norm_sub(COUNTS, ACCEPTED - OTHER)),
        ):
            with subtests.test(source=source, method=method):
                here = tmp_path / f"{method}-{source}"
                here.mkdir()
                before = files_under(results)
                for ending in ("parquet", "csv"):
                    out = here / "new" / f"{method}.{ending}"
                    done("adjust", "--estimates", results / source, "--method", method, "--out", out)
                    assert out.stat().st_mode & 0o777 == 0o600
                stored, rows = adjusted(here / "new" / f"{method}.parquet"), read_csv(here / "new" / f"{method}.csv")
                assert stored.drop_columns(["adjusted"]).equals(table())
                assert stored["adjusted"].to_numpy() == pytest.approx(expected, abs=1e-9)
                assert [float(row["adjusted"]) for row in rows] == pytest.approx(expected, abs=5.1e-4)
                assert list(rows[0]) == [*COLUMNS, "adjusted"]
                assert [row["item"] for row in rows] == NAMES
                assert [row["detected"] for row in rows] == ["true", "true", "false", "false", "false", "false"]
                assert files_under(results) == before
                assert set(files_under(here / "new")) == {f"{method}.csv", f"{method}.parquet"}


def test_the_total_is_that_of_the_summary_unless_given_and_it_is_said(results: Path, tmp_path: Path) -> None:
    arguments = ("adjust", "--estimates", results / "estimates.parquet", "--method", "norm-sub", "--out")
    said = done(*arguments, tmp_path / "a.csv").out
    assert all(value in said for value in ("850", "1,000", "150"))
    assert "biased" in said
    assert str(tmp_path / "a.csv") in said.replace("\n", "")
    told = done(*arguments, tmp_path / "b.parquet", "--json").json
    assert told["total"] == pytest.approx(849.5) == told["sum_of_adjusted"]
    assert told["sum_of_counts"] == pytest.approx(COUNTS.sum())
    given = done(*arguments, tmp_path / "c.parquet", "--total", 500, "--json").json
    assert (given["total"], given["total_from"]) == (500.0, "given")
    assert adjusted(tmp_path / "c.parquet")["adjusted"].to_numpy() == pytest.approx(norm_sub(COUNTS, 500.0))
    plain = ("--method", "non-negative", "--out", tmp_path / "d.csv", "--json")
    assert done("adjust", "--estimates", results / "estimates.csv", *plain).json["total"] is None


def test_a_total_that_is_not_known_must_be_given(results: Path, tmp_path: Path) -> None:
    """An open domain has no "other", some items have fewer reports, and a lone table has no summary at all."""
    arguments = ("adjust", "--estimates", results / "estimates.csv", "--method", "sum-to", "--out", tmp_path / "a.csv")
    for changes, says in (
        ({"other": None}, "no estimate of 'other'"),
        ({"whole_dictionary": False}, "not of the whole dictionary"),
        ({"items": 7}, "not of the whole dictionary"),
        ({"accepted": "many"}, "is no summary"),
        ({"other": 5}, "is no summary"),
    ):
        write_summary(results, **changes)
        refused(*arguments, says=[says, "--total"])
    (results / "summary.json").write_text("[")
    refused(*arguments, says=["summary.json"])
    (results / "summary.json").unlink()
    refused(*arguments, says=["no summary.json", "--total"])
    assert not (tmp_path / "a.csv").exists()
    done(*arguments, "--total", 900)


def test_totals_that_are_of_no_use(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    arguments = ("adjust", "--estimates", results / "estimates.csv", "--out", out, "--method")
    refused(*arguments, "non-negative", "--total", 5, says=["total is 5", "non-negative"])
    refused(*arguments, "norm-sub", "--total", -1, says=["total is -1", "0"])
    refused(*arguments, "sum-to", "--total", "nan", says=["total is 'nan'"])
    refused(*arguments, "simplex", says=["simplex"])
    write_summary(results, other={"count": 2000.0})
    refused(*arguments, "norm-sub", says=["total is -1000"])
    assert not out.exists()


def test_nothing_is_replaced_unasked_or_that_is_not_ours(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    arguments = ("adjust", "--estimates", results / "estimates.csv", "--method", "norm-sub", "--out")
    done(*arguments, out)
    first = files_under(tmp_path)
    refused(*arguments, out, "--total", 5, says=[str(out), "--overwrite"])
    assert files_under(tmp_path) == first
    done(*arguments, out, "--total", 5, "--overwrite")
    assert sum(float(row["adjusted"]) for row in read_csv(out)) == pytest.approx(5.0, abs=0.01)
    (tmp_path / "thesis.csv").write_text("mine\n")
    (tmp_path / "folder.csv").mkdir()
    before = files_under(tmp_path)
    for taken in (
        tmp_path / "thesis.csv",
        tmp_path / "folder.csv",
        results / "estimates.csv",
        results / "estimates.parquet",
    ):
        refused(*arguments, taken, "--overwrite", says=["no result of hushcount adjust"])
    for odd in (tmp_path / "out.txt", tmp_path / "out"):
        refused(*arguments, odd, says=[".csv or .parquet"])
    assert files_under(tmp_path) == before


def test_tables_that_are_none(results: Path, tmp_path: Path) -> None:
    def says(name: str, *texts: str) -> None:
        refused(
            "adjust", "--estimates", results / name, "--method", "non-negative", "--out", tmp_path / "a.csv", says=texts
        )

    says("none.csv", "cannot read", "none.csv")
    (results / "folder.csv").mkdir()
    says("folder.csv", "cannot read", "folder.csv")
    whole = (results / "estimates.csv").read_text()
    for content in ("", "item,count\na,5\n", whole.replace("count", "number"), whole + "short,1\n"):
        (results / "bad.csv").write_text(content)
        says("bad.csv", "bad.csv")
    for cell in ("many", ""):
        (results / "bad.csv").write_text(whole.replace("612.25", cell))
        says("bad.csv", "bad.csv")
    (results / "bad.csv").write_text(whole.replace("612.25", "inf"))
    says("bad.csv", "counts holds inf")
    (results / "bad.csv").write_bytes(whole.encode("latin-1"))
    says("bad.csv", "bad.csv")
    raw = (results / "estimates.parquet").read_bytes()
    for damaged in (b"", b"garbage", raw[:200], raw[:-9]):
        (results / "bad.parquet").write_bytes(damaged)
        says("bad.parquet", "bad.parquet is no table of estimates")
    # Adjusting twice would take the one column for the other.
    done("adjust", "--estimates", results / "estimates.csv", "--method", "norm-sub", "--out", results / "twice.csv")
    says("twice.csv", "has columns", "adjusted")
    pq.write_table(table(COUNTS[:0]), results / "none.parquet")
    says("none.parquet", "at least one count")
    assert not (tmp_path / "a.csv").exists()


def test_what_appears_meanwhile_is_left_as_it_is(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program takes the name after the check, at the moment of the last step."""
    out = tmp_path / "out.csv"
    link = os.link

    def late(source: str, target: str) -> None:
        shutil.copy(results / "summary.json", target)
        link(source, target)

    monkeypatch.setattr("os.link", late)
    arguments = ("--estimates", results / "estimates.csv", "--method", "norm-sub", "--out", out)
    refused("adjust", *arguments, says=["was taken"])
    assert out.read_bytes() == (results / "summary.json").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"results", "out.csv"}
