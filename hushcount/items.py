"""Rules for items: which strings may be items, and how an item is spelled.

The same text can be encoded in several ways: é is one character, or an e and an accent. `canonical` gives every value
its canonical spelling. `may_be_item` refuses a string that would be lost or changed when written as a line of a
dictionary or a cell of a table. `may_be_item` also refuses a string that would mislead a reader, because the string
looks like another item or is displayed backwards.
"""

from __future__ import annotations

import re
from functools import lru_cache

from hushcount.formats import unicode13

MOST_ITEM_BYTES = 4096
"""Most UTF-8 bytes of an item: the longest text that one cell of a table can hold, and the longest discoverable value.
"""
MOST_SPELLED_BYTES = 4 * MOST_ITEM_BYTES
"""Most UTF-8 bytes of a text that may become an item, because the canonical form of a text has more than a quarter of
the text's bytes.
"""
_FAULTS = {
    "control": "a control character",
    "surrogate": "a lone surrogate",
    "lines": "a separator of lines",
    "paragraphs": "a separator of paragraphs",
    "turn": "a control of direction",
    "unseen": "an invisible character",
}
_MARK = "\ufeff"
_OTHERS_UNSEEN = "\u2800\ufff9-\ufffb"
"""Invisible characters that no property of Unicode lists: the Braille blank, and the annotation marks."""
_SPACES = "\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SELECTORS = "\u180b-\u180d\ufe00-\ufe0d\U000e0100-\U000e01ef"
_JOINERS = "\u180e\u200c\u200d"
_FLAGS = ("gbeng", "gbsct", "gbwls")
"""The flags of Unicode's RGI_Emoji_Tag_Sequence: England, Scotland and Wales."""


def canonical(value: str) -> str:
    """Return the canonical spelling of a value: its NFC by Unicode 13.0, whatever the version of Python.

    Case, compatibility forms (NFKC) and white space are not changed, because a text that looks different is a different
    item. A value that is too long for an item is returned unchanged, because NFC sorts the value's combining marks in
    quadratic time.
    """
    return value if _is_longer(value, MOST_SPELLED_BYTES) else unicode13.nfc(value)


def may_be_item(value: str) -> bool:
    """Return whether a string may be an item."""
    return fault_of_item(value) is None


def fault_of_item(value: str) -> str | None:
    """Return why a string may not be an item, in words that do not repeat the string; None if it may be an item."""
    return f"has more than {MOST_ITEM_BYTES:,} bytes" if _is_longer(value, MOST_ITEM_BYTES) else fault_of_text(value)


def fault_of_text(value: str) -> str | None:
    """Return why a string of any length may not be an item, like `fault_of_item`, but without the limit on length."""
    if not value:
        return "is empty"
    if value.isascii() and value.isprintable():
        return None
    if value.startswith(_MARK):
        # At the beginning of a file, programs skip a byte order mark and do not read it as text.
        return "begins with a byte order mark"
    shown, unfit = _forms()
    if (found := unfit.search(shown.sub(lambda each: each[0][0], value))) is not None:
        return f"holds {_FAULTS[found.lastgroup or '']}"
    return None if canonical(value) == value else "is not in Unicode's normal form NFC"


@lru_cache(maxsize=1)
def _forms() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return two patterns: visible characters with an invisible one that is allowed after them, and unfit characters.

    Unicode's data list the invisible characters that are allowed: the tags of a flag, the selector of a keycap or of a
    picture, a variation selector, a joiner between two visible characters beyond ASCII, and a joiner after a virama, as
    in Kannada.

    Reference: Unicode Technical Standard 51, section 1.4; Unicode Standard, section 23.4; RFC 5892, appendix A.1, A.2.
    """
    of = unicode13.classes()
    unseen = of["Default_Ignorable_Code_Point"] + _OTHERS_UNSEEN
    visible = f"[^\0-\x9f\ud800-\udfff{_SPACES}{unseen}]"
    tags = "|".join("".join(chr(0xE0000 + ord(letter)) for letter in flag) for flag in _FLAGS)
    picture, shaped = f"[{of['Extended_Pictographic']}][\ufe0e\ufe0f]", f"[{of['Variation_Base']}][{_SELECTORS}]"
    shown = (
        f"\U0001f3f4(?:{tags})\U000e007f",
        "[#*0-9]\ufe0f(?=\u20e3)",
        f"(?:{picture}|{shaped}|{visible})[{_JOINERS}](?={visible})",
        picture,
        shaped,
        f"[{of['Virama']}][\u200c\u200d]",
    )
    unfit = {
        "control": "\0-\x1f\x7f-\x9f",
        "surrogate": "\ud800-\udfff",
        "lines": "\u2028",
        "paragraphs": "\u2029",
        "turn": "\u202a-\u202e\u2066-\u2069",
        "unseen": unseen,
    }
    return re.compile("|".join(shown)), re.compile("|".join(f"(?P<{name}>[{each}])" for name, each in unfit.items()))


def _is_longer(value: str, most: int) -> bool:
    # No character has more than four bytes in UTF-8, and a lone surrogate counts as three bytes.
    return len(value) > most // 4 and len(value.encode(errors="surrogatepass")) > most
