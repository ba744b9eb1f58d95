"""The benchmark of passes takes each of them."""

from __future__ import annotations

from benchmarks.taking_passes import lines


def test_each_line_has_a_figure() -> None:
    figures = [float(text.split()[-2]) for text in lines(20)]
    assert len(figures) == 3
    assert 0.0 < figures[2] < figures[1]
