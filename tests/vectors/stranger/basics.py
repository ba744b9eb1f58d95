"""Hashes, refusals, JSON."""

from __future__ import annotations

import hashlib
import json
import math
import re
from itertools import pairwise
from typing import Any

LARGEST = (1 << 53) - 1


class Refused(Exception):
    """It must be refused, for this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def require(holds: bool, reason: str) -> None:
    """Refuse unless it holds."""
    if not holds:
        raise Refused(reason)


def hashed(octets: bytes, name: str = "", size: int = 32, key: bytes = b"") -> bytes:
    """Return H(octets; name)."""
    return hashlib.blake2b(octets, digest_size=size, person=name.encode(), key=key).digest()


def read_json(raw: bytes) -> Any:
    """Return the data of a JSON text."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise Refused("not_utf8") from None
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", re.sub(r'"(?:[^"\\]|\\.)*"', "", text, flags=re.DOTALL)):
        depth += 1 if bracket in "[{" else -1
        require(depth <= 32, "too_deep")
    try:
        data = json.loads(
            text, object_pairs_hook=_object, parse_int=_integer, parse_float=_real, parse_constant=_constant
        )
    except json.JSONDecodeError:
        raise Refused("not_json") from None
    canonical(data)
    return data


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    require(len(dict(pairs)) == len(pairs), "duplicate_key")
    return dict(pairs)


def _integer(digits: str) -> int:
    require(abs(int(digits)) <= LARGEST, "integer_too_large")
    return int(digits)


def _real(digits: str) -> float:
    require(math.isfinite(float(digits)), "not_finite")
    return float(digits)


def _constant(_: str) -> float:
    raise Refused("not_json")


def canonical(data: Any) -> str:
    """Return canonical JSON."""
    if isinstance(data, dict):
        keys = sorted(data, key=lambda key: key.encode("utf-16-be", errors="surrogatepass"))
        return "{" + ",".join(f"{canonical(key)}:{canonical(data[key])}" for key in keys) + "}"
    if isinstance(data, list):
        return "[" + ",".join(canonical(one) for one in data) + "]"
    if isinstance(data, str):
        return '"' + "".join(_letter(letter) for letter in data) + '"'
    if isinstance(data, bool) or data is None:
        return {True: "true", False: "false", None: "null"}[data]
    return str(data) if isinstance(data, int) else number(data)


def _letter(letter: str) -> str:
    require(not "\ud800" <= letter <= "\udfff", "lone_surrogate")
    short = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
    return short.get(letter) or (f"\\u{ord(letter):04x}" if letter < " " else letter)


def number(value: float) -> str:
    """Return Number::toString: the fewest digits that name the double, of these the nearest."""
    require(math.isfinite(value), "not_finite")
    if value < 0:
        return "-" + number(-value)
    if value == 0:
        return "0"
    digits, _, power = next(
        f"{value:.{places}e}" for places in range(17) if float(f"{value:.{places}e}") == value
    ).partition("e")
    digits, n = digits.replace(".", ""), int(power) + 1
    k = len(digits)
    if k <= n <= 21:
        return digits + "0" * (n - k)
    if 0 < n <= 21:
        return f"{digits[:n]}.{digits[n:]}"
    if -6 < n <= 0:
        return "0." + "0" * -n + digits
    sign = "+" if n > 0 else "-"
    return f"{digits[0]}{'.' * (k > 1)}{digits[1:]}e{sign}{abs(n - 1)}"


def ascending(values: list[int]) -> bool:
    """Return whether each is above the one before."""
    return all(one < two for one, two in pairwise(values))
