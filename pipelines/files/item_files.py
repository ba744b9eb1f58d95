"""Files of items that people write: one a line, or the column "item" of a .csv."""

from __future__ import annotations

import re
from pathlib import Path

from hushcount.campaigns.dictionary import Dictionary, read_dictionary, read_items
from hushcount.errors import UsageError
from hushcount.formats.reading import TABLE_BYTES, read_file
from hushcount.items import canonical
from pipelines.files.csv_cells import csv_header, csv_rows

_SEPARATOR = re.compile(r"[,;](?! )")
"""A comma that a space follows belongs to a text, as in "Paris, France"; programs write tables without the space."""


def read_names(path: Path) -> list[str]:
    """Read items: one a line, or the column "item" of a .csv such as estimates.csv or found.csv.

    Raises:
        UsageError: the file cannot be read, is not UTF-8, or is a .csv without the column "item".
    """
    if path.suffix != ".csv":
        return read_items(path)
    raw = read_file(path, "items", TABLE_BYTES)
    if "item" not in csv_header(raw, str(path)):
        raise UsageError(
            f"{path} has no column 'item': give the column of the items this name in the first line, or give a file "
            ".txt with one item a line"
        )
    return [canonical(row["item"]) for row in csv_rows(raw, str(path), ("item",))]


def read_listed(path: Path) -> Dictionary:
    """Read the dictionary that an operator gives: text or gzip, one item a line, or the column "item" of a .csv.

    Raises:
        UsageError: as in `read_names` and `read_dictionary`.
    """
    if path.suffix != ".csv":
        return read_dictionary(path)
    return Dictionary(tuple(read_names(path)), f"the column item of {path}, counted without its head")


def table_note(path: Path, known: Dictionary) -> str | None:
    """Return a note if the items of a file that is not .csv are the lines of a table; None otherwise.

    It is a note, not an error, because a comma may belong to every item of an honest list.
    """
    parts = {len(_SEPARATOR.findall(item)) for item in known.items}
    if path.suffix == ".csv" or len(known.items) < 2 or len(parts) > 1 or 0 in parts:
        return None
    return (
        f"each line of {path} looks like a row of a table, and each whole line is one item, commas included: if only "
        "one column has the items, name this column item, and the file .csv"
    )
