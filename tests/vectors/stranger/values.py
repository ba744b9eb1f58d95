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
_BLANK = {0x2800, 0xFFF9, 0xFFFA, 0xFFFB}
_TAGS = [[0xE0000 + ord(letter) for letter in name] + [0xE007F] for name in ("gbeng", "gbsct", "gbwls")]
_BY_CATEGORY = {"Cc": "control_character", "Cs": "lone_surrogate", "Zl": "line_separator", "Zp": "paragraph_separator"}


@lru_cache(maxsize=1)
def _unassigned() -> frozenset[int]:
    ranges = [line.split("..") for line in _TABLE.read_text(encoding="ascii").split()]
    return frozenset(code for first, last in ranges for code in range(int(first, 16), int(last, 16) + 1))


@lru_cache(maxsize=1)
def _properties() -> dict[str, frozenset[int]]:
    found = {}
    for line in (_TABLE.parent / "invisible-13.0.txt").read_text(encoding="ascii").splitlines()[1:]:
        name, *ranges = line.split()
        ends = [[int(code, 16) for code in one.split("..")] for one in ranges]
        found[name] = frozenset(code for end in ends for code in range(end[0], end[-1] + 1))
    return found


def _invisible(code: int) -> bool:
    return code in _BLANK or code in _properties()["Default_Ignorable_Code_Point"]


def _visible(code: int) -> bool:
    return code > 0x9F and not _invisible(code) and unicodedata.category(chr(code)) not in ("Zs", "Zl", "Zp", "Cs")


def _is_selector(code: int) -> bool:
    return 0x180B <= code <= 0x180D or 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF


def _shows(codes: list[int], place: int) -> bool:
    """Return whether an invisible character shows where it stands."""
    code, before, after = codes[place], codes[place - 1] if place else 0, (*codes, 0)[place + 1]
    if code >> 7 == 0xE0000 >> 7:
        flag = max((at for at in range(place) if codes[at] == 0x1F3F4), default=-1)
        return any(codes[flag + 1 : flag + 1 + len(tags)] == tags and place <= flag + len(tags) for tags in _TAGS)
    if code in (0xFE0E, 0xFE0F):
        keycap = code == 0xFE0F and after == 0x20E3 and chr(before) in "#*0123456789"
        return keycap or before in _properties()["Extended_Pictographic"]
    if _is_selector(code):
        return before in _properties()["Variation_Base"]
    if code in (0x200C, 0x200D) and before in _properties()["Virama"]:
        return True
    return code in (0x180E, 0x200C, 0x200D) and (_visible(before) or _is_selector(before)) and _visible(after)


def is_assigned(letter: str) -> bool:
    """Return whether Unicode 13.0 assigns a character."""
    return ord(letter) not in _unassigned()


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
        require(not _invisible(code) or _shows([*map(ord, text)], place), "invisible_character")
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
