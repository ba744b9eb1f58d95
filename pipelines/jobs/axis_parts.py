"""The axes of `hushcount campaign new`: what clients are broken down by, from files of coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hushcount.campaigns.parts import AxesPart
from hushcount.errors import UsageError
from hushcount.formats.reading import validated
from hushcount.randomness import SystemWords, hex_seed
from hushcount.strata import OTHER
from pipelines.files.item_files import read_listed


def axes_part(by: Sequence[str] | None) -> AxesPart | None:
    """Return the section that `--by` asks for, with a new key; None without axes.

    Args:
        by: AXIS=FILE each; the file has one coordinate a line, and may list "other", which every axis has.

    Raises:
        UsageError: a text has another form, a file cannot be read, or axes or coordinates are out of range.
    """
    if not by:
        return None
    listed = [_axis(one) for one in by]
    return validated(AxesPart, {"listed": listed, "key": hex_seed(SystemWords())}, "--by")


def _axis(text: str) -> dict[str, object]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise UsageError(f"--by is {text!a}, must be AXIS=FILE, as version=versions.txt")
    return {"name": name, "values": [one for one in read_listed(Path(path)).items if one != OTHER]}
