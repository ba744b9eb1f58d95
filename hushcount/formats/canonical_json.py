"""Canonical JSON: each value has exactly one text, the same in every programming language (RFC 8785)."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

LARGEST_INTEGER = (1 << 53) - 1
"""The largest integer that every JSON reader keeps exact; larger integers must be sent as strings."""


def canonical_json(data: Any) -> bytes:
    """Return the canonical bytes, UTF-8: keys sorted by UTF-16 units, numbers as ECMAScript writes them, no spaces.

    Raises:
        ValueError: an integer beyond LARGEST_INTEGER, an infinite number or NaN, a lone surrogate, or a type that JSON
            lacks.
    """
    return _text(data).encode()


def _text(data: Any) -> str:
    if isinstance(data, dict):
        if not all(isinstance(key, str) for key in data):
            raise ValueError("a key of an object is not text, must be text")
        keys = sorted(data, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(f"{_text(key)}:{_text(data[key])}" for key in keys) + "}"
    if isinstance(data, list | tuple):
        return "[" + ",".join(map(_text, data)) + "]"
    if data is None or isinstance(data, bool | str):
        return json.dumps(data, ensure_ascii=False)
    if isinstance(data, int):
        if abs(data) > LARGEST_INTEGER:
            raise ValueError(f"integer is {data}, must be within +-(2**53 - 1)")
        return str(data)
    if isinstance(data, float):
        return number_text(data)
    raise ValueError(f"value is a {type(data).__name__}, must be of a type that JSON has")


def number_text(value: float) -> str:
    """Return a number as ECMAScript's Number::toString does (ECMA-262, 6.1.6.1.20): the shortest digits.

    ValueError: the number is infinite or NaN.
    """
    if not math.isfinite(value):
        raise ValueError(f"number is {value}, must be finite")
    if value == 0.0:
        return "0"
    minus, places, exponent = Decimal(repr(value)).normalize().as_tuple()
    digits, sign = "".join(map(str, places)), "-" if minus else ""
    point = len(digits) + int(exponent)
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{point - 1:+d}"
