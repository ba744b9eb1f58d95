"""Requests and passes of one slot fit in all pairs, and no client takes a mark."""

from __future__ import annotations

import numpy as np

from experiments.linking import fitting, lines, linked_by_time, marked, seen


def test_all_pairs_fit_and_no_mark_is_taken() -> None:
    of = seen(3)
    assert fitting(of) == 9
    assert marked(of) == 0
    assert len({token.nonce for token in of.tokens}) == 3


def test_the_nearest_time_links_equal_times_and_not_shuffled_ones() -> None:
    times = np.arange(10.0)
    assert linked_by_time(times, times) == 1.0
    assert linked_by_time(times, times[::-1].copy()) == 0.0


def test_the_table_has_each_attempt() -> None:
    assert [text.partition(":")[0].partition(",")[0] for text in lines(3, 1)][1:] == [
        "algebra", "own keys and wrong signatures", "sizes", "times of 1", "time", "habits", "first day",
        "equal addresses",
    ]  # fmt: skip
