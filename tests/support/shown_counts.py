"""How well two neighbouring sets of counts can be told apart by the counts that kept bins show: by enumeration.

In a bin an outcome is told from others only by its loss, `ln P(outcome) / Q(outcome)`. The noise has two slopes, so a
bin has few losses, and all outcomes of several bins are the sums of few losses: nothing else is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product

import numpy as np

from hushcount.maths.count_laws import CountLaw
from hushcount.randomness import WORD_VALUES
from tests.support.divergence import Floats

LEAST = -2000
"""Below it the noise of every law tested has a chance below 1e-30."""
_DIGITS = 11
_Losses = tuple[Floats, Floats]
"""float64[k] losses, float64[k] probabilities of them before."""


def noise_law(law: CountLaw) -> Floats:
    """Return float64[LEAST..B], the chance of each noise, from the integers of the law alone."""
    right, left = (math.log1p(-(WORD_VALUES - ratio) / WORD_VALUES) for ratio in (law.right, law.left))
    weights = np.exp([noise * right if noise >= 0 else -noise * left for noise in range(LEAST, law.most + 1)])
    return np.asarray(weights / math.fsum(weights))


def worst_delta(noise: Floats, epsilon: float, steps: tuple[int, ...], counts: Iterable[int] | None = None) -> float:
    """Return the largest delta at epsilon over all counts before, of bins that change by these steps.

    Args:
        noise: float64[LEAST..B], as of `noise_law`.
        epsilon: the claimed loss.
        steps: what is added to the count of each bin.
        counts: those before and after; all where the bin is dropped with more than 1e-16, if None.
    """
    return max((_excess(each, epsilon) for each in _all_bins(noise, steps, counts)), default=0.0)


def worst_chance(noise: Floats, epsilon: float, steps: tuple[int, ...]) -> float:
    """Return the largest probability that odds change by more than epsilon, either way, over all counts before."""
    return max((_beyond(each, epsilon) for each in _all_bins(noise, steps, None)), default=0.0)


def _all_bins(noise: Floats, steps: tuple[int, ...], counts: Iterable[int] | None) -> Iterator[tuple[_Losses, ...]]:
    allowed = range(_first_certain(noise) + max(map(abs, steps)) + 1) if counts is None else counts
    return product(*(_different(noise, step, [c for c in allowed if c + step >= 0]) for step in steps))


def _first_certain(noise: Floats) -> int:
    most = len(noise) - 1 + LEAST
    return most + 1 - LEAST - int(np.searchsorted(np.cumsum(noise), 1e-16))


def _different(noise: Floats, step: int, counts: list[int]) -> list[_Losses]:
    """Return the losses of a bin for each count before, those that are alike once."""
    found = {}
    for count in counts:
        losses, chances = _losses(noise, count, count + step)
        found[tuple(np.round(losses, _DIGITS)), tuple(np.round(chances, 17))] = losses, chances
    return list(found.values())


def _losses(noise: Floats, before: int, after: int) -> _Losses:
    first, second = _shown(noise, before), _shown(noise, after)
    width = max(len(first), len(second))
    first, second = (np.pad(each, (0, width - len(each))) for each in (first, second))
    seen = first > 0
    with np.errstate(divide="ignore"):
        losses = np.round(np.log(first[seen] / second[seen]), _DIGITS)
    distinct, place = np.unique(losses, return_inverse=True)
    return distinct, np.bincount(place.reshape(-1), weights=first[seen])


def _shown(noise: Floats, count: int) -> Floats:
    """Return float64[1 + k], the chance that nothing is shown, and of each count shown from B + 1 on."""
    if count < 1:
        return np.ones(1)
    split = len(noise) - count
    return np.concatenate([[noise[:split].sum()], noise[split:]])


def _excess(bins: tuple[_Losses, ...], epsilon: float) -> float:
    losses, chances = _summed(bins)
    over = losses > epsilon + _rounding(bins)
    return float((chances[over] * -np.expm1(epsilon - losses[over])).sum())


def _beyond(bins: tuple[_Losses, ...], epsilon: float) -> float:
    losses, chances = _summed(bins)
    return float(chances[np.abs(losses) > epsilon + _rounding(bins)].sum())


def _summed(bins: tuple[_Losses, ...]) -> _Losses:
    losses, chances = np.zeros(1), np.ones(1)
    for more, weights in bins:
        losses, chances = np.add.outer(losses, more).reshape(-1), np.multiply.outer(chances, weights).reshape(-1)
    return losses, chances


def _rounding(bins: tuple[_Losses, ...]) -> float:
    # Rounded losses may exceed the claim by their rounding alone.
    return len(bins) * 10.0**-_DIGITS
