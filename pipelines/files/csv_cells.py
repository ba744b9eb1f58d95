"""Texts in cells of CSV files: no cell begins as a formula, which spreadsheets calculate, and each is read back whole.

A text that begins with a formula's sign, after any apostrophes, gets one more apostrophe; the reader removes it. So
`=1+1` is `'=1+1` in the file, `'=1+1` is `''=1+1`, and `'quoted'` stays. Parquet has no formulas, and no cell changes.
"""

from __future__ import annotations

import csv
import io
import re

from hushcount.errors import FormatError
from hushcount.formats.lines import fault_of_encoding, require_fit

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


def csv_header(raw: bytes, name: str) -> list[str]:
    """Return the names of the columns in the first line of a CSV file; FormatError if it cannot be UTF-8."""
    _require_utf8(raw, name)
    first = raw.partition(b"\n")[0].decode("utf-8-sig", errors="replace")
    return next(csv.reader([first]), [])


def csv_rows(raw: bytes, name: str, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the rows of a CSV file, each with at least these columns.

    Raises:
        FormatError: it is not UTF-8 or not CSV, or a column is missing, in the first line or another; `name` is in it.
    """
    return [row for _, row in numbered_csv_rows(raw, name, columns)]


def numbered_csv_rows(raw: bytes, name: str, columns: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    """Return the same rows, each behind the number of its last line."""
    _require_utf8(raw, name)
    try:
        rows = csv.DictReader(io.StringIO(raw.decode("utf-8-sig"), newline=""))
        missing = [column for column in columns if column not in (rows.fieldnames or ())]
        if missing:
            raise FormatError(f"{name} has no column {missing[0]!r}")
        found = [(rows.line_num, row) for row in rows]
    except (UnicodeDecodeError, csv.Error) as error:
        fault = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else f"is not CSV: {error}"
        raise FormatError(f"{name} {fault}") from None
    require_fit(((line, "has too few columns") for line, row in found if None in map(row.get, columns)), name)
    return [(line, {**row, "item": text_of(row["item"])} if "item" in columns else row) for line, row in found]


def _require_utf8(raw: bytes, name: str) -> None:
    if (fault := fault_of_encoding(raw)) is not None:
        raise FormatError(f"{name} {fault}")
