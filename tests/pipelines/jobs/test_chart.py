"""The chart of the page: a drawing that is well formed, whatever the items are, and true to its numbers."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from pipelines.jobs.chart import FAINT, PALE, bars, ticks

_SVG = "{http://www.w3.org/2000/svg}"


def row(item: str, count: float, alone: float = 10.0, together: float = 20.0, detected: bool = True) -> dict[str, Any]:
    ends = {"low": count - alone, "high": count + alone, "low_all": count - together, "high_all": count + together}
    return {"item": item, "count": count, "detected_all": detected, **ends}


def drawn(rows: list[dict[str, Any]]) -> ElementTree.Element:
    return ElementTree.fromstring(bars(rows))  # noqa: S314  # our own drawing


@pytest.mark.parametrize(
    ("least", "most", "expected"),
    [
        (0.0, 0.0, [0]),
        (0.0, 6.0, [0, 1, 2, 3, 4, 5, 6]),
        (-1500.0, 16_700.0, [0, 5000, 10_000, 15_000]),
        (-12.0, 48.0, [-10, 0, 10, 20, 30, 40]),
        (0.0, 7.3e9, [0, 2e9, 4e9, 6e9]),
    ],
)
def test_ticks_are_round_numbers(least: float, most: float, expected: list[float]) -> None:
    assert list(ticks(least, most)) == expected


def test_bars_are_as_long_as_their_counts_and_darker_if_detected() -> None:
    first, second, negative = drawn([row("a", 400.0), row("b", 100.0, detected=False), row("c", -50.0)]).iter(
        f"{_SVG}rect"
    )
    lengths = [float(bar.attrib["width"]) for bar in (first, second, negative)]
    assert lengths[0] / lengths[1] == pytest.approx(4.0, rel=0.01)
    assert lengths[0] / lengths[2] == pytest.approx(8.0, rel=0.01)
    assert [bar.attrib["fill"] for bar in (first, second, negative)] == [PALE, FAINT, PALE]
    end = float(negative.attrib["x"]) + lengths[2]
    assert end == pytest.approx(float(first.attrib["x"]), abs=0.15)


def test_items_are_text_and_stay_inside() -> None:
    items = ["<script>alert(1)</script>", "a'b\"&", "\u6f22" * 30, "x" * 31]
    root = drawn([row(item, 5.0) for item in items])
    labels = [text for text in root.iter(f"{_SVG}text") if text.attrib["text-anchor"] == "end"]
    assert [label.text for label in labels] == [*items[:3], "x" * 29 + "\u2026"]
    assert all(float(label.attrib["x"]) >= 13 * 30 for label in labels)
    assert not list(root.iter(f"{_SVG}script"))


@pytest.mark.parametrize("count", [6_000_000.0, -6_000_000.0, 10_000_000_000.0])
def test_numbers_of_ticks_stay_inside(count: float) -> None:
    numbers = [text for text in drawn([row("a", count)]).iter(f"{_SVG}text") if text.attrib["text-anchor"] != "end"]
    assert f"{count:,.0f}" in [text.text for text in numbers]
    for text in numbers:
        half = 8 * len(text.text or "") / 2
        assert half <= float(text.attrib["x"]) <= 900 - half


def test_nothing_to_draw_is_a_drawing_too() -> None:
    assert not list(drawn([]).iter(f"{_SVG}rect"))
    assert len(list(drawn([row("a", 0.0, 0.0, 0.0)]).iter(f"{_SVG}rect"))) == 1
