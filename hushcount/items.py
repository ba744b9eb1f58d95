"""Which strings may be items, and how each is spelled: for clients, dictionaries, what is revealed, epochs made of it.

A text that looks the same can be written in several ways: é is one character, or an e and an accent. `canonical` is
called where a value enters, and makes one spelling of them; what is in another one may be no item.

What the predicate accepts stands in one line of a dictionary and in one cell of a table, and is read there as it was
written. What it refuses would be lost or changed on the way, or would show a reader something else than what is there:
two items that look the same, or one that stands the other way round.
"""

from __future__ import annotations

from hushcount.formats import unicode13

MOST_ITEM_BYTES = 4096
"""Longest item, in UTF-8: what a table can hold in one cell, and the longest value that can be discovered."""
MOST_SPELLED_BYTES = 4 * MOST_ITEM_BYTES
"""No longer text has an item as its canonical form, which has more than a quarter of the bytes."""
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


def canonical(value: str) -> str:
    """Return the one spelling of a value, its NFC by Unicode 13.0: the same with every Python, and in other languages.

    Case, compatible forms (NFKC) and white space are not touched: what looks different is another item. A value that is
    too long to be an item stays as it is: its marks would be sorted, and that takes the square of their number.
    """
    return value if _is_longer(value, MOST_SPELLED_BYTES) else unicode13.nfc(value)


def may_be_item(value: str) -> bool:
    """Return whether a string may be an item."""
    return fault_of_item(value) is None


def fault_of_item(value: str) -> str | None:
    """Return why a string may be no item, to stand after its name, which is never the string; None: it may be one."""
    return f"has more than {MOST_ITEM_BYTES:,} bytes" if _is_longer(value, MOST_ITEM_BYTES) else fault_of_text(value)


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
        category = unicode13.category(letter)
        held = _UNFIT.get(category) or ("a control of direction" if letter in _TURNS else None)
        if held is None and (letter in _BLANKS or (category == "Cf" and not _joins(value, place))):
            held = "an invisible character"
        if held is not None:
            return f"holds {held}"
    return None if canonical(value) == value else "is not in Unicode's normal form NFC"


def _joins(value: str, place: int) -> bool:
    """Return whether a letter joins or parts two others beyond ASCII; anywhere else it shows nothing."""
    around = value[place - 1 : place] + value[place + 1 : place + 2]
    return value[place] in _JOINERS and len(around) == 2 and not any(map(str.isascii, around))


def _is_longer(value: str, most: int) -> bool:
    """Return whether a value has more bytes; no letter has more than four, and a lone surrogate counts as three."""
    return len(value) > most // 4 and len(value.encode(errors="surrogatepass")) > most
