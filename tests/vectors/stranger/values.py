"""Normal form, items, dictionaries."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from tests.vectors.stranger.basics import hashed, require

OTHER = (1 << 61) - 2
_TABLE = Path(__file__).parents[3] / "hushcount" / "formats" / "unassigned-13.0.txt"
_DIRECTION = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}
_BLANK = {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
_BY_CATEGORY = {"Cc": "control_character", "Cs": "lone_surrogate", "Zl": "line_separator", "Zp": "paragraph_separator"}


@lru_cache(maxsize=1)
def _unassigned() -> frozenset[int]:
    ranges = [line.split("..") for line in _TABLE.read_text(encoding="ascii").split()]
    return frozenset(code for first, last in ranges for code in range(int(first, 16), int(last, 16) + 1))


def length(text: str) -> int:
    """Return the bytes in UTF-8, a lone surrogate as three."""
    return len(text.encode(errors="surrogatepass"))


def normal(text: str) -> str:
    """Return the one spelling of a value."""
    if length(text) > 16_384:
        return text
    pieces = groupby(text, lambda letter: ord(letter) in _unassigned())
    return "".join("".join(piece) if free else unicodedata.normalize("NFC", "".join(piece)) for free, piece in pieces)


def require_item(text: str) -> None:
    """Refuse a string that may not be an item."""
    require(length(text) <= 4096, "too_long")
    require(text != "", "empty")
    require(text[0] != "\ufeff", "byte_order_mark")
    for place, letter in enumerate(text):
        code = ord(letter)
        category = "Cn" if code in _unassigned() else unicodedata.category(letter)
        require(category not in _BY_CATEGORY, _BY_CATEGORY.get(category, ""))
        require(code not in _DIRECTION, "direction_control")
        joins = (
            code in (0x200C, 0x200D) and 0 < place < len(text) - 1 and min(text[place - 1], text[place + 1]) > "\x7f"
        )
        require(code not in _BLANK and (category != "Cf" or joins), "invisible_character")
    require(normal(text) == text, "not_normal_form")


def fingerprint(text: str) -> int:
    """Return the item of a string in the open domain."""
    return int.from_bytes(hashed(text.encode(), "fingerprint", 16), "little") % OTHER


def read_dictionary(raw: bytes) -> list[str]:
    """Return the items of a dictionary file."""
    lines = raw.removesuffix(b"\n").split(b"\n") if raw else []
    require(lines != [], "no_items")
    items = []
    for place, line in enumerate(lines):
        bare = (line.removeprefix(b"\xef\xbb\xbf") if place == 0 else line).rstrip(b"\r")
        try:
            items.append(normal(bare.decode()))
        except UnicodeDecodeError:
            require(False, "not_utf8")
        require_item(items[-1])
    require(len(set(items)) == len(items), "twice")
    return items


def digest(items: list[str]) -> str:
    """Return the digest of a dictionary."""
    return hashed("".join(f"{item}\n" for item in items).encode()).hex()
