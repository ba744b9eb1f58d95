"""Write CSV files that are read back exactly.

No spreadsheet reads text in these files as a formula, or the number 1.234 as 1234. The writer puts an apostrophe before
a sign that can begin a formula: at the start of a cell, and after any character that a spreadsheet may take for the end
of a cell. Where the comma is the decimal mark, spreadsheets cut lines at semicolons, and quotation marks protect only
the first cell of a line. A sign can also begin a formula after quotation marks and apostrophes. The reader removes the
apostrophe that the writer put before a sign. For example, the file has `'=1+1` for the text `=1+1`, `''=1+1` for
`'=1+1`, and `a;'=b` for `a;=b`, but `'quoted'` is not changed. Cells of a Parquet file are not changed, because Parquet
has no formulas.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from hushcount.errors import FormatError
from hushcount.formats.lines import fault_of_encoding, require_fit

Cell = str | float | bool | None
# The signs that can begin a formula include full-width forms, because some spreadsheets treat these like the ASCII
# signs.
_SIGNS = "=+\\-@\t\r\uff1d\uff0b\uff0d\uff20"
_BEGIN = "((?:^|[;,|\t\r\n])[\"']*)"
_FORMULA = re.compile(f"{_BEGIN}(?=[{_SIGNS}])")
_MARKED = re.compile(f"{_BEGIN}'(?=[{_SIGNS}])")
_THOUSANDS = re.compile(r"(\.\d{3})(?=e|$)")


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return a CSV file: text is quoted, a bool is `true` or `false`, None is an empty cell.

    A number is written with the fewest digits from which the same float is read back. A number with three decimals is
    written with one more zero, because many spreadsheets in Europe read 1.234 as 1234.
    """
    lines = (",".join(map(_written, row)) for row in rows)
    return "".join(f"{line}\n" for line in (",".join(columns), *lines))


def _written(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"{}"'.format(cell(value).replace('"', '""'))
    return _THOUSANDS.sub(r"\g<1>0", str(value))


def cell(text: str) -> str:
    """Return a text as it is written in a cell."""
    return _FORMULA.sub(r"\1'", text)


def text_of(cell: str) -> str:
    """Return the text that was written as this cell."""
    return _MARKED.sub(r"\1", cell)


def csv_header(raw: bytes, name: str) -> list[str]:
    """Return the column names of a CSV file, which may end after its header; raises FormatError as `csv_rows`."""
    with _in_a_sentence(name):
        return list(_reader(raw, name).fieldnames or ())


def csv_rows(raw: bytes, name: str, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the rows of a CSV file, each with at least these columns.

    Raises:
        FormatError: the file is not UTF-8 or not CSV, or its header or a row lacks a column. The message begins with
            `name`.
    """
    return [row for _, row in numbered_csv_rows(raw, name, columns)]


def numbered_csv_rows(raw: bytes, name: str, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of `csv_rows`, each as (number of the row's last line, row).

    If a row lacks a column, the error is raised after the last row.
    """
    faults = []
    with _in_a_sentence(name):
        rows = _reader(raw, name)
        missing = [column for column in columns if column not in (rows.fieldnames or ())]
        if missing:
            raise FormatError(f"{name} has no column {missing[0]!r}")
        for row in rows:
            if None in map(row.get, columns):
                faults.append((rows.line_num, "has too few columns"))
            else:
                yield rows.line_num, {**row, "item": text_of(row["item"])} if "item" in columns else row
    require_fit(faults, name)


def _reader(raw: bytes, name: str) -> csv.DictReader[str]:
    if (fault := fault_of_encoding(raw)) is not None:
        raise FormatError(f"{name} {fault}")
    return csv.DictReader(io.TextIOWrapper(io.BytesIO(raw), "utf-8-sig", newline=""))


@contextmanager
def _in_a_sentence(name: str) -> Iterator[None]:
    try:
        yield
    except (UnicodeDecodeError, csv.Error) as error:
        fault = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else f"is not CSV: {error}"
        raise FormatError(f"{name} {fault}") from None
