"""The probability to detect an item of a given share, and the reports for a given probability, by binomial tails."""

from __future__ import annotations

import numpy as np

from hushcount.arrays import FloatArray
from hushcount.maths.noise_sums import LEAST_TAIL
from hushcount.oracles.estimates import quantile
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.noisy_counts import MixNoise

MOST_REPORTS = 10**12
_SQUARES = 0.03
"""The sum of the squared shares of items by Zipf's law, of 1,000 items or more: it is 0.029 and less."""
_UNUSUAL = 1e-7
_ROOM = np.linspace(1.0, 1.2, 400)


def detection_power(mechanism: Mechanism, reports: FloatArray, share: float, rate: float) -> FloatArray:
    """Return the probability that an item is detected, for each number of reports, float64[c] of whole numbers.

    Each client holds the item with probability `share`. The power is `P(Bin(n, pi) >= t)`, `pi = q* + share (p* - q*)`,
    for the least t with `P(Bin(n, q*) >= t) <= rate`. If exactly `share n` clients hold the item, the count varies
    less.

    In a pool or a block the power depends on what all others hold. Then it is that of the normal law; the others are
    taken to hold items by Zipf's law in a pool, and items of the same block in a block, which is the worst case.

    With noise of the mixes the power is `P(Bin(n, share) + Z >= t)`, for the least t with `P(Z >= t) <= rate`.

    Args:
        mechanism: any.
        reports: n of each.
        share: in (0, 1].
        rate: of false detections.
    """
    from scipy.special import ndtr
    from scipy.stats import binom

    law = mechanism.law
    if law.clash or law.least < 0.0:
        collisions = mechanism.collision_variance(_SQUARES * reports**2)
        null, true = (np.sqrt(law.noise(reports, held) + collisions) for held in (0.0, share))
        return np.asarray(ndtr((reports * share - quantile(rate) * null) / true), dtype=np.float64)
    if mechanism.encoder.noise is not None:
        return _power_with(mechanism.encoder.noise, reports, share, rate)
    p, q = mechanism.p_star, mechanism.q_star
    return np.asarray(binom.sf(binom.isf(rate, reports, q), reports, q + share * (p - q)), dtype=np.float64)


def _power_with(noise: MixNoise, reports: FloatArray, share: float, rate: float) -> FloatArray:
    from scipy.stats import binom

    law = noise.error_of(1, 1).inside
    # Beyond this number of dummies the tail is said to be smaller than it is.
    values = np.append(law.values, law.values[-1] + 1.0)
    least = values[np.argmax(law.at_least(values) <= max(rate, LEAST_TAIL))]
    usual = law.chances > _UNUSUAL
    missing = least - law.values[usual] - 1.0
    return np.asarray(binom.sf(missing, reports[:, None], share) @ law.chances[usual], dtype=np.float64)


def reports_to_detect(mechanism: Mechanism, share: float, power: float, rate: float) -> int | None:
    """Return a number of reports from which on an item of this share is detected with this power, or None.

    Counts are whole, so the power sometimes falls a little with one more report. The search checks the power at 400
    numbers of reports, from the result to a fifth more; at still larger numbers these falls are far smaller than the
    rise of the power.
    """

    def enough(n: int) -> bool:
        return bool(detection_power(mechanism, np.floor(n * _ROOM), share, rate).min() >= power)

    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST_REPORTS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
