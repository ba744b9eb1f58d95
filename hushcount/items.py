"""Which strings may be items: one predicate for clients, dictionaries, what is revealed, and the epochs made of it.

What it accepts stands in one line of a dictionary and in one cell of a table, and is read there as it was written. What
it refuses would be lost or changed on the way, or would show a reader something else than what is there.
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
    if value.isprintable():
        return None
    for letter in value:
        held = _UNFIT.get(unicodedata.category(letter)) or ("a control of direction" if letter in _TURNS else None)
        if held is not None:
            return f"holds {held}"
    # At the beginning of a file it would be taken for no part of the text.
    return "begins with a byte order mark" if value.startswith(_MARK) else None
