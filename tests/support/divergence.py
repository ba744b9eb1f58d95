"""How well two neighbouring sets of counts can be told apart by which bins are kept: exact, by enumeration."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations_with_replacement, groupby, product
from typing import Any

import numpy as np

Floats = np.ndarray[Any, Any]
_ROUNDING = 5e-16


def moves(cap: int, *, replace: bool) -> Iterator[tuple[int, ...]]:
    """Yield every way in which one client changes bins: the signed steps of the bins affected, equal steps together.

    Adding or removing spreads up to `cap` reports over bins; replacing does both, over different bins.
    """
    for up, down in product(_spread(cap), repeat=2):
        if (up or down) and (replace or not (up and down)):
            yield (*up, *(-step for step in down))


def worst_delta(keep: Floats, epsilon: float, steps: tuple[int, ...]) -> float:
    """Return the largest delta at epsilon over all starting counts of the bins affected.

    Counts are left out from which a bin tells the two apart no better than from another count (`frontier`).

    The hockey-stick divergence `sum over outcomes of max(0, P - e^epsilon Q)`, an outcome being the set of affected
    bins that are kept. Other bins are kept independently of these, the same before and after, and add nothing.

    Args:
        keep: float64[counts], the probability that a bin of each count is kept; the counts to be tried.
        epsilon: the claimed loss.
        steps: what is added to the count of each bin affected; equal steps next to each other.
    """
    before, after = np.ones((1, 1)), np.ones((1, 1))
    for step, bins in groupby(steps):
        group = _outcomes(keep, step, len(list(bins)))
        before, after = (_product(one, other) for one, other in zip((before, after), group, strict=True))
    excess = np.maximum(before - math.exp(epsilon) * after, 0.0).sum(axis=1)
    return float(excess.max())


def _outcomes(keep: Floats, step: int, bins: int) -> tuple[Floats, Floats]:
    """Return float64[starting counts, outcomes] before and after, for some bins that change alike.

    Bins that change alike may trade places, so unordered starting counts are enough.
    """
    starts = np.array(list(combinations_with_replacement(frontier(keep, step), bins)))
    laws = []
    for counts in (starts, starts + step):
        law = np.ones((len(starts), 1))
        for column in range(bins):
            kept = keep[counts[:, column]]
            law = (law[:, :, None] * np.stack([kept, 1.0 - kept], axis=1)[:, None, :]).reshape(len(starts), -1)
        laws.append(law)
    return laws[0], laws[1]


def frontier(keep: Floats, step: int) -> list[int]:
    """Return the starting counts that matter: from any other a bin can be simulated by the bin of one of these.

    Whoever sees a bin can guess from it which of the two it is. The rates of wrong and of right guesses fill the hull
    of (0, 0), (1, 1) and one point. A bin whose point lies in the hull of another, up to rounding, is a randomised
    function of that one (Blackwell 1953), also beside other bins.
    """
    starts = np.arange(max(0, -step), len(keep) - max(0, step))
    wrong, right = keep[starts + step], keep[starts]
    dropped = wrong > right
    wrong, right = np.where(dropped, 1.0 - wrong, wrong), np.where(dropped, 1.0 - right, right)
    chosen: list[int] = []
    for place in np.argsort(wrong - right, kind="stable"):
        one, two = wrong[place], right[place] - _ROUNDING
        under_first = two * wrong[chosen] <= right[chosen] * one
        under_second = (1.0 - two) * (1.0 - wrong[chosen]) >= (1.0 - right[chosen]) * (1.0 - one)
        if not (under_first & under_second).any():
            chosen.append(int(place))
    return [int(start) for start in starts[sorted(chosen)]]


def _product(left: Floats, right: Floats) -> Floats:
    """Return the joint law of two independent groups: every pair of starting counts, every pair of outcomes."""
    return (left[:, None, :, None] * right[None, :, None, :]).reshape(len(left) * len(right), -1)


def _spread(total: int) -> list[tuple[int, ...]]:
    """Return all ways to spread at most `total` reports over bins, order aside, most first."""
    found: list[tuple[int, ...]] = [()]
    for first in range(1, total + 1):
        found += [(first, *rest) for rest in _spread(total - first) if not rest or rest[0] <= first]
    return found
