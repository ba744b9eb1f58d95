"""Dictionary files: to their items and their digest, and values to items."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hushcount.campaigns.dictionary import Dictionary, items_of, read_dictionary
from hushcount.errors import UsageError
from hushcount.items import canonical
from hushcount.oracles.catalogue import build
from tests.vectors.subjects.script import require_refused

_FILES = (
    b"a\n", b"a", b"a\r\nb\r\n", b"b\na\n", b"\xef\xbb\xbfa\nb", "größer\nZürich\n".encode(),
    "gro\u0308ßer\n".encode(), b" \n  \n", b"a\nA\n", "日本\n".encode(), b"one\ntwo\nthree\nfour\nfive\n",
    "\U0001fae0\n".encode(),
)  # fmt: skip
_WRONG = (
    (b"", "no_items"),
    (b"\n", "empty"),
    (b"a\n\nb\n", "empty"),
    (b"a\n\n", "empty"),
    (b"a\nb\na\n", "twice"),
    ("é\ne\u0301\n".encode(), "twice"),
    (b"a\xff\n", "not_utf8"),
    (b"\xc3\n", "not_utf8"),
    (b"\xed\xa0\x80\n", "not_utf8"),
    (b"a\tb\n", "control_character"),
    (b"a\rb\n", "control_character"),
    (b"a\0\n", "control_character"),
    (b"b\n\xef\xbb\xbfa\n", "byte_order_mark"),
    ("a\u202eb\n".encode(), "direction_control"),
    ("a\u200bb\n".encode(), "invisible_character"),
    ("a\u2028b\n".encode(), "line_separator"),
)
_VALUES = ("a", "b", "größer", "gro\u0308ßer", "A", "three", "nobody's", "", "\u202e", "\ud800")


def _read(octets: bytes) -> Dictionary:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items.txt"
        path.write_bytes(octets)
        return read_dictionary(path)


def _accepted(octets: bytes) -> dict[str, Any]:
    dictionary = _read(octets)
    number = len(dictionary.items)
    listed = build("grr", 1.0, number + 1, {})
    pooled = build("rappor", 1.0, number + 1, {"k": 2, "m": 4, "seed": "0" * 64})
    values = {}
    for value in _VALUES:
        spelled = canonical(value)
        position = int(items_of(listed, dictionary, [spelled])[0])
        values[value] = [position, str(int(items_of(pooled, dictionary, [spelled])[0]))]
    return {
        "file": octets.hex(),
        "items": list(dictionary.items),
        "digest": dictionary.digest,
        "values": [{"value": value, "position": one, "pool_item": two} for value, (one, two) in values.items()],
    }


def data() -> dict[str, Any]:
    """Return the file's content."""
    for octets, _ in _WRONG:
        require_refused(UsageError, _read, octets)
    return {
        "subject": "dictionaries",
        "about": "A dictionary file's bytes to items and digest; values to positions, and to items of a pool",
        "accept": [_accepted(octets) for octets in _FILES],
        "refuse": [{"file": octets.hex(), "reason": reason} for octets, reason in _WRONG],
    }
