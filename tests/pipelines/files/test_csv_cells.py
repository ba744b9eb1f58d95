"""CSV files: no text is a formula to a spreadsheet, no number one of thousands, and each is read back as it was."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.files.csv_cells import cell, csv_header, csv_rows, csv_text, text_of
from pipelines.files.item_files import read_names
from pipelines.jobs.found import write_found
from pipelines.jobs.table_files import csv_bytes, read_csv_rows
from tests.support.jobs import done, estimates, new_campaign, new_keys, write_lines

FORMULAS = ['=HYPERLINK("http://example.org","x")', "+1", "-1", "@SUM(A1)", "\t=1", "\uff1d1+1", "'=1", "''@x"]
STARTS = "=+-@\t\r\uff1d\uff0b\uff0d\uff20"
SEPARATORS = ";,|\t"
texts = st.text(alphabet=st.sampled_from(f"{STARTS}{SEPARATORS}'\"a 1")) | st.text()


@given(texts)
def test_every_text_is_read_back_and_none_begins_as_a_formula(text: str) -> None:
    assert text_of(cell(text)) == text
    assert not cell(text).startswith(tuple(STARTS))


@given(texts)
@example("a;=cmd|' /C calc'!A0")
@example('a;"=1+1')
@example("a|@SUM(A1)")
def test_no_text_is_a_formula_wherever_a_spreadsheet_cuts_the_line(text: str) -> None:
    """Where a comma is the decimal mark a cell ends at a semicolon; quotation marks count at its beginning only."""
    line = csv_text(("count", "item"), [(1.5, text)]).partition("\n")[2].removesuffix("\n")
    for separator in SEPARATORS:
        cut = next(csv.reader([line.replace("\n", " ").replace("\r", " ")], delimiter=separator), [])
        bare = [piece.lstrip('"') for piece in re.split(f"[{re.escape(separator)}\r\n]", line)]
        assert not [piece for piece in (*cut, *bare) if piece.lstrip('"').startswith(tuple(STARTS))]


def test_columns_are_named_whatever_ends_the_lines() -> None:
    for raw in (b"item,count\ra,5\r", b"\xef\xbb\xbfitem,count\r\na,5\r\n", b"item,count\na,5\n"):
        assert csv_header(raw, "x.csv") == ["item", "count"]
        assert csv_rows(raw, "x.csv", ("item", "count")) == [{"item": "a", "count": "5"}]
    assert csv_header(b'item,"a\nb"\n', "x.csv") == ["item", "a\nb"]


@given(texts.map(lambda text: text.replace("\0", "")), st.floats(allow_nan=False), st.integers(), st.booleans())
@example("NA", 677.827, 0, True)
@example("1.234", 1.234e-05, 0, True)
@example("", -0.125, 1234, True)
def test_every_row_is_read_back_and_no_number_has_three_decimals(
    text: str, number: float, whole: int, truth: bool
) -> None:
    written = csv_text(("item", "count", "whole", "truth", "none"), [(text, number, whole, truth, None)])
    (row,) = csv_rows(written.encode(errors="replace"), "x", ("item", "count"))
    assert row["item"] == text.encode(errors="replace").decode()
    assert (float(row["count"]), int(row["whole"]), row["truth"], row["none"]) == (
        number,
        whole,
        str(truth).lower(),
        "",
    )
    assert not re.search(r"[.,]\d{3}(?!\d)", row["count"])


def test_what_needs_no_mark_has_none() -> None:
    for text in ("alpha", "a=b", "'quoted'", "it's", "", " =1", "1-2", "a;b", "a, b", "a|'b'"):
        assert cell(text) == text


def test_found_values_and_estimates_hold_no_formula(subtests: pytest.Subtests, tmp_path: Path) -> None:
    """Whoever sent a value often enough wrote into the spreadsheet of whoever opened found.csv."""
    for text in FORMULAS:
        with subtests.test(text=text):
            write_found([(text, None), ("plain", None)], str(tmp_path))
            table = csv_bytes(pa.table({"item": [text], "count": [-1.5]}))
            (tmp_path / "estimates.csv").write_bytes(table)
            for name in ("found.csv", "estimates.csv"):
                path = tmp_path / name
                lines = path.read_text().splitlines()[1:]
                assert not any(line.strip('"').startswith(tuple(STARTS)) for line in lines)
                assert text in [row["item"] for row in read_csv_rows(str(path), ("item",))]
                assert text in read_names(path)


def test_items_that_are_formulas_go_through_the_jobs(tmp_path: Path) -> None:
    """A dictionary may list them: they are asked for, estimated, and asked for again by estimates.csv."""
    items = ["=1+1", "'=1+1", "-x", "plain"]
    words = write_lines(tmp_path / "words.txt", items)
    path = new_campaign(tmp_path / "c.json", new_keys(tmp_path / "keys"), dictionary=words, min_batch=10)
    lines = write_lines(tmp_path / "values.txt", ["=1+1", "plain"] * 10)
    common = ("--campaign", path)
    done("job", "encode", *common, "--values", lines, "--out", tmp_path / "encoded")
    done("job", "shuffle", *common, "--input", tmp_path / "encoded", "--out", tmp_path / "shuffled")
    done(
        "job",
        "analyze",
        *common,
        "--input",
        tmp_path / "shuffled",
        "--keys",
        tmp_path / "keys",
        "--out",
        tmp_path / "out",
    )
    assert sorted(estimates(tmp_path / "out")) == sorted(items)
    table, tally = tmp_path / "out" / "estimates.csv", tmp_path / "out" / "tally.npz"
    done("job", "estimate", *common, "--tally", tally, "--items", table, "--out", tmp_path / "again")
    assert estimates(tmp_path / "again") == estimates(tmp_path / "out")
    assert sorted(row["item"] for row in read_csv_rows(str(table), ("item",))) == sorted(items)
