"""Intervals of items hold as often as they say, and are no wider than that takes: exact, without a draw."""

from __future__ import annotations

import pytest

from benchmarks.calibration_items import ITEMS, covered

NAMED = 4
"""Items of the table that are frequent, or rare, at a high local epsilon."""


def test_intervals_hold_as_stated_at_the_width_of_the_item_itself(subtests: pytest.Subtests) -> None:
    """Intervals 1.3 times too narrow are rejected in every case, and Clopper and Pearson's of frequent items."""
    for item in ITEMS:
        with subtests.test(item=item):
            (held, width), _ = covered(item)
            # Few whole numbers of supports leave room: 3 of 2,000 clients.
            assert 0.95 <= held < 0.981
            assert width < (1.05 if item.held * item.epsilon > 500 else 1.2)
            assert next(covered(item, 1.0 / 1.3))[0] < 0.94
    for item in ITEMS[:NAMED]:
        _, (careful, wide) = covered(item)
        assert careful > 0.999
        assert wide > 3.6
