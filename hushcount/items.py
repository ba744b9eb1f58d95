"""Which strings may be items, and their one spelling.

A text can be written in several ways: é is one character, or an e and an accent. `canonical` gives every value that
enters one spelling. What `may_be_item` refuses would be lost or changed in a line of a dictionary or a cell of a table,
or would mislead a reader: two items that look the same, or one that reads the other way round.
"""

from __future__ import annotations

from hushcount.formats import unicode13

MOST_ITEM_BYTES = 4096
"""Longest item, in UTF-8: what a table can hold in one cell, and the longest value that can be discovered."""
MOST_SPELLED_BYTES = 4 * MOST_ITEM_BYTES
"""Longest text whose canonical form may be an item: that form has more than a quarter of the bytes."""
_UNFIT = {
    "Cc": "a control character",
    "Cs": "a lone surrogate",
    "Zl": "a separator of lines",
    "Zp": "a separator of paragraphs",
}
_TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Controls of the direction of text."""
_MARK = "\ufeff"
_JOINERS = "\u200c\u200d"
"""They part or join letters of Persian, of India's scripts and of emoji, which shows."""
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that show nothing."""


def canonical(value: str) -> str:
    """Return the one spelling of a value, its NFC by Unicode 13.0, whatever the version of Python.

    Case, compatible forms (NFKC) and white space stay: what looks different is another item. So does a value that is
    too long for an item, because sorting its marks takes the square of their number.
    """
    return value if _is_longer(value, MOST_SPELLED_BYTES) else unicode13.nfc(value)


def may_be_item(value: str) -> bool:
    """Return whether a string may be an item."""
    return fault_of_item(value) is None


def fault_of_item(value: str) -> str | None:
    """Return why a string may not be an item, as a predicate that does not repeat it; None if it may be one."""
    return f"has more than {MOST_ITEM_BYTES:,} bytes" if _is_longer(value, MOST_ITEM_BYTES) else fault_of_text(value)


def fault_of_text(value: str) -> str | None:
    """Return the same as `fault_of_item` for a string of any length."""
    if not value:
        return "is empty"
    if value.isascii() and value.isprintable():
        return None
    if value.startswith(_MARK):
        # At the beginning of a file it would be taken for no part of the text.
        return "begins with a byte order mark"
    for place, letter in enumerate(value):
        category = unicode13.category(letter)
        unfit = _UNFIT.get(category) or ("a control of direction" if letter in _TURNS else None)
        if unfit is None and (letter in _BLANKS or (category == "Cf" and not _joins(value, place))):
            unfit = "an invisible character"
        if unfit is not None:
            return f"holds {unfit}"
    return None if canonical(value) == value else "is not in Unicode's normal form NFC"


def _joins(value: str, place: int) -> bool:
    """Return whether a letter joins or parts two letters beyond ASCII; elsewhere it is invisible."""
    around = value[place - 1 : place] + value[place + 1 : place + 2]
    return value[place] in _JOINERS and len(around) == 2 and not any(map(str.isascii, around))


def _is_longer(value: str, most: int) -> bool:
    # No letter has more than four bytes; a lone surrogate counts as three.
    return len(value) > most // 4 and len(value.encode(errors="surrogatepass")) > most
