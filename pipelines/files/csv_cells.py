"""Texts in cells of CSV files: no cell begins as a formula, which spreadsheets calculate, and each is read back whole.

A text that begins with a formula's sign, after any apostrophes, gets one more apostrophe; the reader removes it. So
`=1+1` is `'=1+1` in the file, `'=1+1` is `''=1+1`, and `'quoted'` stays. Parquet has no formulas, and no cell changes.
"""

from __future__ import annotations

import csv
import io
import re

from hushcount.errors import FormatError

# The wide forms too: some spreadsheets take them for the narrow ones.
_SIGNS = "=+\\-@\t\r\uff1d\uff0b\uff0d\uff20"
_FORMULA = re.compile(f"'*[{_SIGNS}]")
_MARKED = re.compile(f"'+[{_SIGNS}]")


def cell(text: str) -> str:
    """Return what stands in a cell for a text."""
    return f"'{text}" if _FORMULA.match(text) else text


def text_of(cell: str) -> str:
    """Return the text that a cell stands for."""
    return cell[1:] if _MARKED.match(cell) else cell


def csv_rows(raw: bytes, name: str, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the rows of a CSV file, each with at least these columns.

    Raises:
        FormatError: it is not UTF-8 or not CSV, or a column is missing, in the first line or another; `name` is in it.
    """
    try:
        rows = csv.DictReader(io.StringIO(raw.decode("utf-8-sig"), newline=""))
        missing = [column for column in columns if column not in (rows.fieldnames or ())]
        if missing:
            raise FormatError(f"{name} has no column {missing[0]!r}")
        found = list(rows)
    except (UnicodeDecodeError, csv.Error) as error:
        fault = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else f"is not CSV: {error}"
        raise FormatError(f"{name} {fault}") from None
    if any(row[column] is None for row in found for column in columns):
        raise FormatError(f"{name} has a line with too few columns")
    return [{**row, "item": text_of(row["item"])} if "item" in columns else row for row in found]
