"""Numbers: texts of doubles, bins and their names."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import pairwise
from typing import Any

from tests.vectors.stranger.basics import hashed, number, require

_EDGE = re.compile(r"0|-?[1-9][0-9]{0,20}|-?(?:0|[1-9][0-9]{0,14})\.[0-9]{0,19}[1-9]")
_UNIT = re.compile(r"[!-~\u00b0\u00b5\u03a9\u20ac]{0,16}")
_TEXT = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?|Infinity)", re.ASCII)


def text_of(double: float) -> str:
    """Return the text of a double; canonical JSON has the finite ones."""
    if math.isnan(double):
        return "NaN"
    if math.isinf(double):
        return "Infinity" if double > 0 else "-Infinity"
    return number(double)


def names(edges: list[str], unit: str) -> list[str]:
    """Return the bins' names, the lowest first."""
    end = f" {unit}" if unit else ""
    made = [f"{edges[-1]}{end} or more"]
    if edges == [str(place + 1) for place in range(len(edges))]:
        return [f"{place}{end}" for place in range(len(edges))] + made
    return [f"below {edges[0]}{end}"] + [f"{a} to {b}{end}" for a, b in pairwise(edges)] + made


def bin_of(edges: list[str], unit: str, text: str) -> str:
    """Return the bin that has a number."""
    require(len(text) <= 40 and _TEXT.fullmatch(text) is not None, "no_number")
    return names(edges, unit)[sum(float(edge) <= float(text) for edge in edges)]


def point_of(edges: list[str], points: int, text: str, word: int) -> int:
    """Return the point beside a number that a word chooses; the highest is 0."""
    low, high = map(float, edges)
    place = (
        (min(max(float(text), low), high) - low) / (high - low) * (points - 1)
        if len(text) <= 40 and _TEXT.fullmatch(text) is not None
        else 0.0
    )
    below = min(math.floor(place), points - 2)
    return points - 1 - below - (word >> 11 < Fraction(place - below) * 2**53)


def check(part: Any, file: dict[str, Any]) -> None:
    """Refuse a section `number` of a campaign file."""
    require(isinstance(part, dict) and set(part) == {"edges", "unit", "mean"}, "number")
    edges, unit, mean = part["edges"], part["unit"], part["mean"]
    require(isinstance(mean, bool) and (file.get("mechanism", {}).get("name") == "line") is mean, "number")
    require(isinstance(edges, list) and 1 <= len(edges) <= 1023, "number")
    require(all(isinstance(edge, str) and _EDGE.fullmatch(edge) is not None for edge in edges), "number")
    require(all(float(a) < float(b) for a, b in pairwise(edges)), "number")
    require(isinstance(unit, str) and _UNIT.fullmatch(unit) is not None, "number")
    require("mechanism" in file and "dictionary" in file and "discovery" not in file, "number")
    require(not mean or len(edges) == 2, "number")
    items = [f"{edges[1]} {unit}".rstrip()] if mean else names(edges, unit)
    listed = sorted(items, key=lambda name: hashed(name.encode(), "hushcount order", 16))
    digest = hashed("".join(f"{name}\n" for name in listed).encode(), "", 32).hex()
    require((file["dictionary"]["items"], file["dictionary"]["digest"]) == (len(listed), digest), "number")
