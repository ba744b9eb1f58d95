"""Which strings may be items: one predicate for clients, dictionaries, what is revealed, and the epochs made of it.

What it accepts stands in one line of a dictionary and in one cell of a table, and is read there as it was written. What
it refuses would be lost or changed on the way, or would show a reader something else than what is there: two items that
look alike, or one that stands the other way round.
"""

from __future__ import annotations

import unicodedata

MOST_ITEM_BYTES = 4096
"""Longest item, in UTF-8: what a table can hold in one cell, and the longest value that can be discovered."""
_UNFIT = {
    "Cc": "a control character",
    "Cs": "a lone surrogate",
    "Zl": "a separator of lines",
    "Zp": "a separator of paragraphs",
}
_TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Controls of the direction of text: what is shown would not be what is there."""
_MARK = "\ufeff"
_JOINERS = "\u200c\u200d"
"""They part or join letters of Persian, of India's scripts and of emoji, and are to be seen by that."""
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that show nothing."""


def may_be_item(value: str) -> bool:
    """Return whether a string may be an item."""
    return fault_of_item(value) is None


def fault_of_item(value: str) -> str | None:
    """Return why a string may be no item, to stand after its name, which is never the string; None: it may be one."""
    fault = fault_of_text(value)
    # No letter has more than four bytes.
    if fault is None and len(value) > MOST_ITEM_BYTES // 4 and len(value.encode()) > MOST_ITEM_BYTES:
        return f"has more than {MOST_ITEM_BYTES:,} bytes"
    return fault


def fault_of_text(value: str) -> str | None:
    """Return the same, however long the string is."""
    if not value:
        return "is empty"
    if value.isascii() and value.isprintable():
        return None
    if value.startswith(_MARK):
        # At the beginning of a file it would be taken for no part of the text.
        return "begins with a byte order mark"
    for place, letter in enumerate(value):
        category = unicodedata.category(letter)
        held = _UNFIT.get(category) or ("a control of direction" if letter in _TURNS else None)
        if held is None and (letter in _BLANKS or (category == "Cf" and not _joins(value, place))):
            held = "an invisible character"
        if held is not None:
            return f"holds {held}"
    return None


def _joins(value: str, place: int) -> bool:
    """Return whether a letter joins or parts two others beyond ASCII; anywhere else it shows nothing."""
    around = value[place - 1 : place] + value[place + 1 : place + 2]
    return value[place] in _JOINERS and len(around) == 2 and not any(map(str.isascii, around))
