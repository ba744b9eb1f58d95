"""Axes: a client's item and private coordinates become one cell, its public ones a stratum."""

from __future__ import annotations

import re
from math import prod
from typing import Any

from tests.vectors.stranger.basics import require

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_KEY = re.compile(r"[0-9a-f]{64}")
_PLAIN = {chr(code) for code in range(0x20, 0x7F)} - set(",=[]")


def check(part: Any) -> None:
    """Refuse a section `axes` of a campaign file."""
    require(isinstance(part, dict) and set(part) == {"listed", "key"}, "axes")
    require(isinstance(part["key"], str) and _KEY.fullmatch(part["key"]) is not None, "axes")
    listed = part["listed"]
    require(isinstance(listed, list) and 1 <= len(listed) <= 8, "axes")
    for axis in listed:
        require(isinstance(axis, dict) and set(axis) == {"name", "public", "values"}, "axes")
        require(isinstance(axis["public"], bool), "axes")
        require(isinstance(axis["name"], str) and _NAME.fullmatch(axis["name"]) is not None, "axes")
        values = axis["values"]
        require(isinstance(values, list) and len(values) >= 1 and all(isinstance(one, str) for one in values), "axes")
        require(len(set(values)) == len(values) and "other" not in values, "axes")
        for one in values:
            require(1 <= len(one) <= 64 and set(one) <= _PLAIN and one == one.strip(" "), "axes")
    require(len({axis["name"] for axis in listed}) == len(listed) and strata(part) <= 4096, "axes")


def strata(part: dict[str, Any], *which: bool) -> int:
    """Return the number of strata of the axes that are public or not, by default of all."""
    return prod(len(axis["values"]) + 1 for axis in part["listed"] if axis["public"] in (which or (False, True)))


def stratum(part: dict[str, Any], by: dict[str, str]) -> int:
    """Return the number of a client's public stratum."""
    return _placed(part, True, 0, by)


def _placed(part: dict[str, Any], public: bool, place: int, by: dict[str, str]) -> int:
    for axis in part["listed"]:
        if axis["public"] == public:
            values, one = axis["values"], by.get(axis["name"])
            place = place * (len(values) + 1) + (values.index(one) if one in values else len(values))
    return place


def cell(part: dict[str, Any], items: int, item: int, by: dict[str, str]) -> int:
    """Return the number of a client's cell."""
    if all(axis["public"] for axis in part["listed"]):
        return item
    place, last = _placed(part, False, item, by), (items + 1) * strata(part, False) - 1
    if place == last:
        return last
    bits = max(1, ((last - 1).bit_length() + 1) // 2)
    key = bytes.fromhex(part["key"])
    while True:
        place = _mixed(place, bits, key)
        if place < last:
            return place


def _mixed(place: int, bits: int, key: bytes) -> int:
    left, right = place >> bits, place % (1 << bits)
    for turn in range(8):
        word = (right + int.from_bytes(key[4 * turn : 4 * turn + 4], "little")) % (1 << 32)
        word = (word ^ (word >> 16)) * 0x85EBCA6B % (1 << 32)
        word = (word ^ (word >> 13)) * 0xC2B2AE35 % (1 << 32)
        word ^= word >> 16
        left, right = right, left ^ (word % (1 << bits))
    return (left << bits) | right
