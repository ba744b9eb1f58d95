"""The auditor: from what was seen of two inputs to an epsilon that the mechanism exceeds for certain.

Nothing is assumed of who made the reports: an event is searched in one half of them, and its probabilities under both
inputs are bounded by the other half (Clopper, Pearson 1934), so that the bound holds whatever was searched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

Numbers = npt.NDArray[Any]
Looks = Mapping[str, npt.NDArray[np.int64]]
"""What an attacker looks at, by name: int64[n], one label for each report."""


@dataclass(frozen=True)
class Bound:
    """What an audit found.

    Attributes:
        epsilon: the loss is at least that, but with the audit's failure probability; -inf where nothing was found.
        look: by which look.
        reports: how many were seen, of both inputs.
    """

    epsilon: float
    look: str
    reports: int


@dataclass(frozen=True, eq=False)
class _Event:
    """Labels that the first input gives rather than the second; `swapped` if it is the other way round."""

    look: str
    labels: npt.NDArray[np.int64]
    swapped: bool
    promise: float


def least_probability(successes: Numbers, draws: int, failure: float) -> Numbers:
    """Return the one-sided lower Clopper-Pearson bounds, each wrong with probability `failure` at most."""
    seen = np.asarray(successes)
    return np.where(seen > 0, stats.beta.ppf(failure, np.maximum(seen, 1), draws - seen + 1), 0.0)


def greatest_probability(successes: Numbers, draws: int, failure: float) -> Numbers:
    """Return the one-sided upper Clopper-Pearson bounds."""
    missed = draws - np.asarray(successes)
    return 1.0 - least_probability(missed, draws, failure)


def least_loss(first: Numbers, second: Numbers, draws: int, failure: float, delta: float = 0.0) -> Numbers:
    """Return `ln((P - delta) / Q)`, at least, of events seen so often in as many draws under P and under Q."""
    above = least_probability(first, draws, failure / 2.0) - delta
    below = greatest_probability(second, draws, failure / 2.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(above, 0.0) / below))


def audit(first: Looks, second: Looks, failure: float) -> Bound:
    """Return a bound on the loss between two inputs that exceeds it with probability `failure` at most.

    A quarter of the reports puts the labels of each look in order, a quarter chooses the event, half of them bound it.

    Args:
        first: the looks at reports of one input, independent of each other.
        second: as many of the other.
        failure: the probability that the bound is too high.
    """
    draws = len(next(iter(first.values())))
    early, late = slice(0, draws // 2), slice(draws // 2, draws)
    event = max(
        (_search(name, first[name][early], second[name][early], failure) for name in first),
        key=lambda found: found.promise,
    )
    seen = [int(np.isin(looks[event.look][late], event.labels).sum()) for looks in (first, second)]
    if event.swapped:
        seen.reverse()
    loss = least_loss(np.array(seen[0]), np.array(seen[1]), draws - draws // 2, failure)
    return Bound(float(loss), event.look, 2 * draws)


def _search(look: str, first: Numbers, second: Numbers, failure: float) -> _Event:
    """Return the event of one look, of either direction, that promises the highest bound."""
    labels, places = np.unique(np.concatenate([first, second]), return_inverse=True)
    draws, half = len(first), len(first) // 2
    parts = (slice(0, half), slice(half, draws), slice(draws, draws + half), slice(draws + half, 2 * draws))
    counts = [np.bincount(places.reshape(-1)[part], minlength=len(labels)) for part in parts]
    found = []
    for swapped, (one, one_later, other, other_later) in ((False, counts), (True, counts[2:] + counts[:2])):
        order = np.argsort(-(one + 0.5) / (other + 0.5), kind="stable")
        # Twice as many will be seen of the event as here.
        seen, unwanted = 2 * np.cumsum(one_later[order]), 2 * np.cumsum(other_later[order])
        promise = least_loss(seen, unwanted, 2 * (draws - half), failure)
        best = int(np.argmax(promise))
        found.append(_Event(look, labels[order[: best + 1]], swapped, float(promise[best])))
    return max(found, key=lambda event: event.promise)
