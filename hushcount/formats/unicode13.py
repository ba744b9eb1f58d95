"""Unicode 13.0 in every version of Python: the normal form NFC, and the invisible characters.

Every version of Unicode adds characters, and each Python normalises the characters of its own Unicode version. So a
mark of a later version would split one item into two: one from clients with an older Python, another from clients with
a newer Python. Here, as in the tables of 13.0, a character that 13.0 does not assign stays as it is, and separates the
text before it from the text after it. Unicode promises that later versions normalise text of assigned characters as
13.0 did.

Reference: Unicode Standard Annex 15, sections 3 (versioning) and 6.1 (substrings); Normalization Stability Policy.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from functools import lru_cache
from importlib import resources
from itertools import groupby
from typing import Literal

Version = Literal["13.0"]
VERSION: Version = "13.0"
UNASSIGNED = "unassigned-13.0.txt"
"""Code points that Unicode 13.0 does not assign: FIRST..LAST in hexadecimal, ascending, one range a line."""
INVISIBLE = "invisible-13.0.txt"
"""Code points with a property, after a line of explanation: PROPERTY CODE FIRST..LAST ..., one property a line."""


def nfc(text: str) -> str:
    """Return the normal form NFC of a text by the tables of Unicode 13.0; lone surrogates stay as they are."""
    # Substrings of a normalised text are normalised.
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return text
    parts = ((assigned, "".join(letters)) for assigned, letters in groupby(text, is_assigned))
    return "".join(unicodedata.normalize("NFC", part) if assigned else part for assigned, part in parts)


def classes() -> dict[str, str]:
    """Return the content of a regular expression's character class for each property of INVISIBLE."""
    lines = _text(INVISIBLE).splitlines()[1:]
    return {name: "".join(map(_class, codes)) for name, *codes in map(str.split, lines)}


def _class(codes: str) -> str:
    return "-".join(chr(int(code, 16)) for code in codes.split(".."))


def _text(name: str) -> str:
    return resources.files("hushcount.formats").joinpath(name).read_text(encoding="ascii")


@lru_cache(maxsize=1 << 12)
def is_assigned(letter: str) -> bool:
    """Return whether Unicode 13.0 assigns a character."""
    return bisect_right(_ends(), letter) % 2 == 0


@lru_cache(maxsize=1)
def _ends() -> list[str]:
    """Return the first unassigned character, the next assigned one, and so on, ascending."""
    ranges = (tuple(int(place, 16) for place in line.split("..")) for line in _text(UNASSIGNED).split())
    places = [place for first, last in ranges for place in (first, last + 1)]
    # The last range ends with the last code point.
    return list(map(chr, places[:-1]))
