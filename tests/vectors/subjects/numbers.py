"""Doubles to their texts, texts to the name of the bin that has the number, and to a point of a line."""

from __future__ import annotations

import struct
from itertools import product
from typing import Any

import numpy as np

from hushcount.numbers import Bins, number_of, position_of, text_of_number
from hushcount.oracles.encoders.line import Line

_DOUBLES = (
    0.0, -0.0, 1.0, -1.0, 312.0, 312.5, 0.1, 1 / 3, 2 / 3, 1e-5, 1e-6, 1e-7, 1.5e-7, 123456.789, 1e15, 1e16, 1e20, 1e21,
    1.5e21, 123456789012345680.0, 5e-324, 1.7976931348623157e308, -2.2250738585072014e-308, 2.0**53, 2.0**53 + 2, 4.35,
    float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
_BINS = (
    Bins(("2", "10.5", "300"), "ms"),
    Bins(("-1", "0", "0.25"), "°C"),
    Bins(("1", "2", "3")),
    Bins(("1",), "clicks"),
    Bins(("2", "3", "4"), "µs"),
)
_TEXTS = (
    "2", "1.9999999999999999", "1.9999999999999998", "10.5", "10.50", "010.5", "3e2", "299.99", "3e+2", "30000e-2",
    "-1e-300", "0", "-0", "0.25", "1e999", "Infinity", "-Infinity", "1" * 40,
)  # fmt: skip
_NO_NUMBERS = (
    "", " 2", "2 ", "2\n", "+2", "2.", ".5", "1e", "1E2", "0x10", "NaN", "infinity", "1_000", "1,5", "\u0663", "1" * 41,
    "ten",
)  # fmt: skip
_RANGES = (("0", "60000"), ("-1.5", "0.25"), ("1", "2"))
_PLACES = ("-1", "1", "1.3", "0.1", "30000", "NaN")


def _points() -> list[dict[str, Any]]:
    made = []
    for (low, high), points in zip(_RANGES, (2, 7, 44), strict=True):
        line = Line(points, 0, 0.5)
        for text in _PLACES:
            position = position_of(text, float(low), float(high))
            part = position * (points - 1) % 1.0
            # The first word that does not round up, and the one before it.
            edge = int(part * 2.0**53) << 11
            for drawn in sorted({edge, max(edge - 1, 0)}):
                item = line.points(np.array([position]), np.array([drawn], dtype=np.uint64))
                given = {"edges": [low, high], "points": points, "text": text, "word": f"{drawn:016x}"}
                made.append({"rule": "point", **given, "item": int(item[0])})
    return made


def data() -> dict[str, Any]:
    """Return the file's content."""
    texts = [{"rule": "text", "double": struct.pack(">d", one).hex(), "text": text_of_number(one)} for one in _DOUBLES]
    parts = [{"edges": list(one.edges), "unit": one.unit} for one in _BINS]
    names = [{"rule": "names", **part, "names": list(one.names)} for part, one in zip(parts, _BINS, strict=True)]
    bins, refused = list[dict[str, Any]](), list[dict[str, Any]]()
    for place, text in enumerate(_TEXTS):
        one = place % len(_BINS)
        bins.append({"rule": "bin", **parts[one], "text": text, "bin": _BINS[one].name_of(text)})
    for part, text in product(parts[:3], _NO_NUMBERS):
        if number_of(text) is not None:
            raise AssertionError(f"{text} is a number")
        refused.append({"rule": "bin", **part, "text": text, "reason": "no_number"})
    return {
        "subject": "numbers",
        "about": "A double to its text; edges and a unit to the names of bins, a text to its bin, else it is other; "
        "the ends of a range and a text to a point of a line, by the word that rounds",
        "accept": [*texts, *names, *bins, *_points()],
        "refuse": refused,
    }
