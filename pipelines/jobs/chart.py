"""The chart of the largest estimates: bars with both intervals, as inline SVG that a browser scales.

Written by hand: matplotlib takes 0.6 s to import and draw it.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from unicodedata import east_asian_width

INK, PALE, FAINT = "#1d4e5f", "#8fb8c6", "#dde7ea"
_WIDTH, _ROW, _BAR, _EDGE = 900, 24, 16, 12
_FONT, _LETTER = 13, 8
"""A wide character is as wide as the font is high."""
_TICKS = 6
_INTERVALS = (("low_all", "high_all", 0.8, 2), ("low", "high", 2.2, 4))
"""The names of its ends, the width of its line, half of the height of its caps."""


def bars(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows of a table of counts as horizontal bars, each with the intervals that it has.

    Bars are darker for items that are detected among all, and for found values, of which no row says it.
    """
    ends = ("count", *(name for low, high, _, _ in _INTERVALS for name in (low, high)))
    shown: list[float] = [0.0, *(row[name] for row in rows for name in ends if name in row)]
    least, most = min(shown), max(shown)
    labels = [_short(row["item"]) for row in rows]
    numbers = {count: f"{count:,.0f}" for count in ticks(least, most)}
    # The number of a tick is written on both sides of it.
    beside = max(map(_text_width, numbers.values())) // 2
    axis = max(beside, _EDGE + max(map(_text_width, labels), default=0))
    unit = (_WIDTH - axis - 2 * _EDGE - beside) / ((most - least) or 1.0)

    def x(count: float) -> float:
        return round(axis + _EDGE + (count - least) * unit, 1)

    foot = _ROW * len(rows) + 4
    parts = []
    for place, (row, label) in enumerate(zip(rows, labels, strict=True)):
        y = _ROW * place + _ROW // 2
        text = f"<text x='{axis}' y='{y + 4}' text-anchor='end'>{html.escape(label)}</text>"
        parts.append(_bar(row, y, x) + text)
    parts.append(f"<path d='M{x(0.0)} 0V{foot}' stroke='{INK}'/>")
    parts.append(f"<path d='M{axis + _EDGE // 2} {foot}H{_WIDTH}' stroke='#000'/>")
    for count, number in numbers.items():
        parts.append(f"<path d='M{x(count)} {foot}v4' stroke='#000'/>")
        parts.append(f"<text x='{x(count)}' y='{foot + 18}' text-anchor='middle'>{number}</text>")
    parts.append(f"<text x='{(axis + _WIDTH) // 2}' y='{foot + 38}' text-anchor='middle'>reports</text>")
    size = f"viewBox='0 0 {_WIDTH} {foot + 44}' font-family='sans-serif' font-size='{_FONT}'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' role='img' {size}>{''.join(parts)}</svg>"


def ticks(least: float, most: float) -> Iterator[float]:
    """Yield at most seven multiples of 1, 2 or 5 times a power of ten, whole numbers from `least` to `most`."""
    between = max(most - least, _TICKS) / _TICKS
    power = 10.0 ** math.floor(math.log10(between))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= between)
    yield from (step * number for number in range(math.ceil(least / step), math.floor(most / step) + 1))


def _bar(row: Mapping[str, Any], y: int, x: Callable[[float], float]) -> str:
    zero, end = x(0.0), x(row["count"])
    colour = PALE if row.get("detected_all", True) else FAINT
    width = round(abs(end - zero), 1)
    drawn = f"<rect x='{min(zero, end)}' y='{y - _BAR // 2}' width='{width}' height='{_BAR}' fill='{colour}'/>"
    for low, high, line, cap in (interval for interval in _INTERVALS if interval[0] in row):
        left, right = x(row[low]), x(row[high])
        path = f"M{left} {y}H{right}M{left} {y - cap}v{2 * cap}M{right} {y - cap}v{2 * cap}"
        drawn += f"<path d='{path}' stroke='{INK}' stroke-width='{line}' fill='none'/>"
    return drawn


def _short(item: str) -> str:
    return item if len(item) <= 30 else item[:29] + "\u2026"


def _text_width(text: str) -> int:
    return sum(_FONT if east_asian_width(letter) in "WF" else _LETTER for letter in text)
