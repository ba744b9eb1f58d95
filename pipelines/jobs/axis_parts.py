"""The axes of `hushcount campaign new`: what clients are broken down by, from files of coordinates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from hushcount.campaigns.axes import AxesPart
from hushcount.errors import UsageError
from hushcount.formats.reading import validated
from hushcount.randomness import SystemWords, hex_seed
from hushcount.strata import COORDINATE, OTHER
from pipelines.files.item_files import read_names


def axes_part(by: Sequence[str] | None, public_by: Sequence[str] | None = None) -> AxesPart | None:
    """Return the section that `--by` and `--public-by` ask for, with a new key; None without axes.

    Args:
        by, public_by: private and public axes, AXIS=FILE each; the file has one coordinate a line, or is a .csv with
            the column item. It may list "other", which every axis has.

    Raises:
        UsageError: a text has another form, a file cannot be read, or axes or coordinates are out of range.
    """
    listed = [{**_axis(one, "--by"), "public": False} for one in by or ()]
    listed += [{**_axis(one, "--public-by"), "public": True} for one in public_by or ()]
    if not listed:
        return None
    given = " or ".join(option for option, files in (("--by", by), ("--public-by", public_by)) if files)
    return validated(AxesPart, {"listed": listed, "key": hex_seed(SystemWords())}, given)


def _axis(text: str, option: str) -> dict[str, object]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise UsageError(f"{option} is {text!a}, must be AXIS=FILE, as version=versions.txt")
    values, first = read_names(Path(path)), dict[str, int]()
    for place, value in enumerate(values, start=1):
        if re.fullmatch(COORDINATE, value) is None:
            raise UsageError(
                f"coordinate {place} of {path} is {value[:60]!a}, must be 1 to 64 printable characters of ASCII "
                "without , = [ ] and without a space at an end"
            )
        if first.setdefault(value, place) < place:
            raise UsageError(
                f"coordinates {first[value]} and {place} of {path} are both {value!a}, must be different: remove one"
            )
    values = [value for value in values if value != OTHER]
    if not values:
        raise UsageError(f"{path} lists no coordinate beside {OTHER}, must list at least 1 for axis {name}")
    return {"name": name, "values": values}
