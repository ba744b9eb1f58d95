"""Limits for the number of clients that hold an item of a group, by inverting the law of the count of supports.

F clients hold an item of the group; a single item is a group of one. T, the number of the group's items that a report
supports, has one law for the reports of these F clients, and another law for all other reports. K, the sum of T over
all reports, is treated as a sum of two binomial numbers. As F grows, the upper tail of K rises and the lower tail
falls. So each limit is the F at which a tail has the stated probability; a root search finds it for all rows together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hushcount.arrays import BoolArray, FloatArray, IntArray

EXACT_BELOW = 100.0
"""If T is 0 or 1, tails are summed exactly where K, or the variance of K at the estimate, is below this number.

Where neither is below this number, a saddle-point approximation is used, which errs by 0.3 % of a tail at most.
"""
LEAST_CHANCE = 1e-9
_STEPS = 120
_CLOSE = 1e-6
"""The tolerance of a limit, in standard deviations of K."""
_REACH = 10.0
"""The exact sum is over the binomial that varies less, up to this many standard deviations plus 12 from its mean."""
_AT_ONCE = 1 << 20
_LEAST = 1e-300
_WHOLE = 1e-9
"""The most by which rounding may move a whole number."""
_Tails = Callable[[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, bool], FloatArray]


@dataclass(frozen=True, eq=False)
class SupportCounts:
    """The law of K, row by row; every field is float64[g].

    T of one report has mean `own` and variance `own_spread` if its client holds an item of the group, else mean `other`
    and variance `other_spread`. A sum of such T, with mean m and variance v, is treated as binomial with chance
    `1 - v/m`; the binomial law is exact if T is 0 or 1. If a variance exceeds its mean, K is counted in units of
    `each`, the largest ratio of a variance to its mean.

    Attributes:
        reports: n.
        drawn: whether the clients are a random sample of a population. If they are, K is one binomial number with the
            mean and variance that a client drawn at random gives, and the limits are n times the limits of the
            population's share. If they are not, the limits are for these clients only.
    """

    reports: FloatArray
    own: FloatArray
    other: FloatArray
    own_spread: FloatArray
    other_spread: FloatArray
    drawn: bool = field(default=False, kw_only=True)

    @classmethod
    def of_items(cls, reports: float, own: float, other: float) -> SupportCounts:
        """Return the law of reports that support an item or do not: one row, which serves any number of rows."""
        n, p, q = (np.array([value], dtype=np.float64) for value in (reports, own, other))
        return cls(n, p, q, p * (1.0 - p), q * (1.0 - q))

    @property
    def gain(self) -> FloatArray:
        """By how much the mean of T is larger if the client holds an item of the group: `p* - q*`."""
        return self.own - self.other

    @property
    def binary(self) -> BoolArray:
        """bool[g]: whether T is 0 or 1."""
        own, other = (np.isclose(v, m * (1.0 - m), 1e-9, 0.0) for m, v in self._moments)
        return np.asarray(own & other)

    @property
    def each(self) -> FloatArray:
        """float64[g]: h, the largest Var(T)/E(T) of clients with an item, without, and half of each; at least 1."""
        ratios = [spread / np.maximum(mean, _LEAST) for mean, spread in (*self._moments, self.mixed(np.float64(0.5)))]
        return np.asarray(np.maximum.reduce([np.ones_like(self.own), *ratios]))

    def mixed(self, share: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of T, float64[g] each, if clients hold one of the items with this probability."""
        spread = share * self.own_spread + (1.0 - share) * self.other_spread
        return self.other + share * self.gain, spread + share * (1.0 - share) * self.gain**2

    def limits(self, supports: FloatArray, tail: float) -> tuple[FloatArray, FloatArray]:
        """Return (low, high), float64[g] each, in clients: each misses F with probability `tail`.

        `low` misses F if `low` is above F, and `high` misses F if `high` is below F. Where K has exactly the law of
        this class, the probability is `tail` at most, up to the error that `EXACT_BELOW` states. The estimate
        `(K - n q*)/(p* - q*)` is between low and high. `low`, `high` and the estimate may lie outside 0..n. For F below
        0, K has the law of fewer than n reports, all from clients without the item; for F above n, K has the law of
        more than n reports, all from clients with the item.
        """
        each = self.each
        moments = self.own / each, self.other / each, self.own_spread / each**2, self.other_spread / each**2
        asked = np.stack(np.broadcast_arrays(supports / each, self.reports, *moments))
        # One law for all leaves one row that differs, and numbers are sorted much faster than columns.
        differ = asked[(asked != asked[:, :1]).any(axis=1)]
        _, first, places = np.unique(
            differ[0] if len(differ) == 1 else asked, axis=None if len(differ) == 1 else 1,
            return_index=True, return_inverse=True,
        )  # fmt: skip
        k, n, *means = asked[:, first]
        law = SupportCounts(n, *means, drawn=self.drawn)
        # If clients repeat answers, or `each` is not 1, K need not be whole. K is rounded outward for each limit.
        whole = np.floor(k + _WHOLE), np.ceil(k - _WHOLE)
        found = [law._limit(seen, tail, above) for seen, above in zip(whole, (True, False), strict=True)]
        low, high = (((side - n * law.other) / law.gain)[places.reshape(-1)] for side in found)
        return low, high

    def _limit(self, k: FloatArray, tail: float, above: bool) -> FloatArray:
        """Return the mean of K at which K is k or more (`above`), or k or less, with probability `tail`."""
        # The root lies between k and Chernoff's bound. If T is 0 or 1, K is also at most the number of reports.
        log, most = -math.log(tail), np.where(self.binary, self.reports, np.inf)
        k = np.minimum(k, most)
        near, far = k.copy(), k - np.sqrt(2.0 * k * log) if above else k + log + np.sqrt(log**2 + 2.0 * k * log)
        far = np.clip(far, 0.0, most)
        exact = self.binary & (np.minimum(self._variance(k), k) < EXACT_BELOW)
        every = np.ones_like(exact)
        for tails, chosen in ((_one, every),) if self.drawn else ((_whole, exact), (_saddle_point, ~exact)):
            law = self.chosen(rows := np.flatnonzero(chosen & (near != far)))
            far[rows] = law._root(tails, k[rows], near[rows], far[rows], tail, above)
        return far

    def _root(
        self, tails: _Tails, k: FloatArray, near: FloatArray, far: FloatArray, tail: float, above: bool
    ) -> FloatArray:
        """Return the mean of K with this tail; the tail is larger at `near` and smaller at `far`.

        Newton's steps take the tail as a normal quantile, which changes by about 1 for each standard deviation of K.
        Every third step halves the bracket instead.
        """
        from scipy.special import ndtri

        target, mean, rows, ends = ndtri(tail), (near + far) / 2.0, np.arange(len(k)), np.stack([near, far])
        for step in range(_STEPS):
            if not len(rows):
                break
            law, at = self.chosen(rows), mean[rows]
            z, spread = ndtri(tails(k[rows], *law._parts(at), above)), np.sqrt(np.maximum(law._variance(at), _LEAST))
            ends[np.where(z > target, 0, 1), rows] = at
            least, most = np.sort(ends[:, rows], axis=0)
            guess = at + (-1.0 if above else 1.0) * (z - target) * spread
            guess = np.where((least < guess) & (guess < most) & (step % 3 < 2), guess, (least + most) / 2.0)
            left = (np.abs(z - target) > _CLOSE) & (most - least > _CLOSE * spread)
            mean[rows[left]], rows = guess[left], rows[left]
        return mean

    def _variance(self, mean: FloatArray) -> FloatArray:
        """Return the variance of K if K has this mean."""
        trials, chance, others, other = self._parts(mean)
        return trials * chance * (1.0 - chance) + others * other * (1.0 - other)

    def _parts(self, mean: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return trials and chance of both binomial numbers that add up to K, if K has this mean."""
        share = (mean / self.reports - self.other) / self.gain
        if self.drawn:
            chance = _chance(*self.mixed(np.clip(share, 0.0, 1.0)))
            return mean / chance, chance, np.zeros_like(mean), chance
        own = np.where(share >= 1.0, mean, self.reports * self.own * np.clip(share, 0.0, 1.0))
        chance, other = (_chance(*moments) for moments in self._moments)
        return own / chance, chance, np.maximum(mean - own, 0.0) / other, other

    @property
    def _moments(self) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        return (self.own, self.own_spread), (self.other, self.other_spread)

    def chosen(self, rows: IntArray) -> SupportCounts:
        """Return the law of the chosen rows."""
        columns = self.reports, self.own, self.other, self.own_spread, self.other_spread
        return SupportCounts(*(column[rows] for column in columns), drawn=self.drawn)


def _chance(mean: FloatArray, spread: FloatArray) -> FloatArray:
    return np.clip(1.0 - spread / np.maximum(mean, _LEAST), LEAST_CHANCE, 1.0 - LEAST_CHANCE)


def _one(
    k: FloatArray, trials: FloatArray, chance: FloatArray, _none: FloatArray, _chance: FloatArray, above: bool
) -> FloatArray:
    """Return the tail of the first binomial number alone."""
    return (at_least if above else _at_most)(k, trials, chance)


def _whole(
    k: FloatArray, trials: FloatArray, chance: FloatArray, others: FloatArray, other: FloatArray, above: bool
) -> FloatArray:
    """Return the tail: exact at whole numbers of clients that hold the item, and interpolated linearly between them."""
    part = np.where(others > 0.0, trials % 1.0, 0.0)
    more = np.minimum(1.0 - part, others)
    low = _summed(k, trials - part, chance, others + part, other, above)
    high = _summed(k, trials + more, chance, others - more, other, above)
    return low + part / np.maximum(part + more, _LEAST) * (high - low)


def _summed(
    k: FloatArray, trials: FloatArray, chance: FloatArray, others: FloatArray, other: FloatArray, above: bool
) -> FloatArray:
    """Return the probability of k or more (`above`), or of k or less, summed over the binomial that varies less."""
    swap = trials * chance * (1.0 - chance) > others * other * (1.0 - other)
    fewer, more = np.where(swap, [others, trials], [trials, others])
    least, most = np.where(swap, [other, chance], [chance, other])
    mean = fewer * least
    reach = np.where(mean > 0.0, np.ceil(_REACH * np.sqrt(mean * (1.0 - least)) + 12.0), 0.0)
    first = np.maximum(np.floor(mean - reach), 0.0)
    width = int((np.minimum(np.ceil(mean) + reach, np.ceil(fewer)) - first).max()) + 1
    found = np.empty(len(k))
    step = max(1, _AT_ONCE // width)
    for start in range(0, len(k), step):
        rows = slice(start, start + step)
        number = first[rows, None] + np.arange(-1.0, width)
        weights = np.diff(_at_most(number, fewer[rows, None], least[rows, None]), axis=1)
        rest = k[rows, None] - number[:, 1:]
        tail = at_least if above else _at_most
        found[rows] = (weights * tail(rest, more[rows, None], most[rows, None])).sum(axis=1)
    return found


def _at_most(k: FloatArray, trials: FloatArray, chance: FloatArray) -> FloatArray:
    """Return `P(Bin(trials, chance) <= k)`; trials and k need not be whole."""
    from scipy.special import betainc

    found = betainc(np.maximum(trials - k, _LEAST), np.maximum(k + 1.0, _LEAST), 1.0 - chance)
    return np.asarray(np.where(k <= -1.0, 0.0, np.where(k >= trials, 1.0, found)), dtype=np.float64)


def at_least(k: FloatArray, trials: FloatArray, chance: FloatArray | float) -> FloatArray:
    """Return `P(Bin(trials, chance) >= k)`; trials and k need not be whole."""
    from scipy.special import betainc

    found = betainc(np.maximum(k, _LEAST), np.maximum(trials - k + 1.0, _LEAST), chance)
    return np.asarray(np.where(k <= 0.0, 1.0, np.where(k >= trials + 1.0, 0.0, found)), dtype=np.float64)


def _saddle_point(
    k: FloatArray, trials: FloatArray, chance: FloatArray, others: FloatArray, other: FloatArray, above: bool
) -> FloatArray:
    """Return the tail by a saddle-point approximation for whole numbers; two binomials have a closed saddle point.

    Reference: Lugannani and Rice 1980, with Daniels' first continuity correction (1987).
    """
    from scipy.special import ndtr

    # The equation of the saddle point s is quadratic in exp(s).
    seen, k = k, np.maximum(k, 0.5)
    room = np.maximum(trials + others - k, 1e-9)
    a, c = chance * other * room, k * (1.0 - chance) * (1.0 - other)
    b = trials * chance * (1.0 - other) + others * other * (1.0 - chance)
    b -= k * (chance * (1.0 - other) + other * (1.0 - chance))
    root = np.sqrt(b**2 + 4.0 * a * c)
    tilt = np.where(b >= 0.0, 2.0 * c / np.maximum(b + root, _LEAST), (root - b) / (2.0 * a))
    s, more = np.log(tilt), tilt - 1.0
    variance, log = np.zeros_like(k), s * k
    for number, each in ((trials, chance), (others, other)):
        tilted = each * tilt / (1.0 + each * more)
        variance += number * tilted * (1.0 - tilted)
        log -= number * np.log1p(each * more)
    sign = 1.0 if above else -1.0
    w = sign * np.sign(s) * np.sqrt(2.0 * np.maximum(log, 0.0))
    flat = np.abs(s) < 1e-5
    u = -np.expm1(-sign * s) * np.sqrt(variance)
    # At the mean u and w are both 0, but the difference of their reciprocals is finite.
    u, safe = (np.where(flat, 1.0, value) for value in (u, w))
    correction = np.where(flat, 0.5 / np.sqrt(variance), 1.0 / u - 1.0 / safe)
    found = ndtr(-w) + np.exp(-(w**2) / 2.0) / math.sqrt(2.0 * math.pi) * correction
    # At the least and the largest K there is no saddle point.
    nothing = np.exp(trials * np.log1p(-chance) + others * np.log1p(-other))
    found = np.where(seen > 0.0, found, nothing)
    return np.asarray(np.where(trials + others <= seen, 0.0 if above else 1.0, found), dtype=np.float64)
