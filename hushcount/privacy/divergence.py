"""How well shuffled reports tell two values of one client apart: the hockey-stick divergence, bounded from above."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hushcount.arrays import FloatArray
from hushcount.privacy.blanket import BlanketLaw
from hushcount.privacy.convex_order import FairTails, Others, Spread, binomial_window, fair_tails, reach

LARGEST_REPORTS = 10**10
"""More reports hide one report no worse, so a larger number of reports counts as this number."""
_BLOCK = 1e-4
_LEVEL = 1e-2
_UNIT = 2.0**-53
_SLACK = 2.0**-44


@dataclass(frozen=True, eq=False)
class Divergence:
    """An upper bound, at any epsilon, of the divergence of n shuffled reports between two items of the first client.

    With E = exp(epsilon) and W independent for each report, `delta = E[(W_1 + ... + W_n)_+] / n`, where

        W   e - E    1 - E e    e (1 - E)   1 - E     0
            one      one        both        neither   else

    Let M be the number of reports that support exactly one of the two items, D the number that support only the first
    minus the number that support only the second, and U the sum of e for each report that supports both and of 1 for
    each that supports neither (cases of the table, so without "else"):

        sum W = (e-1)(E+1)/2 D - (E-1) G,   G = (e+1)/2 M + U,

    Given M, D is a sum of M fair signs, so delta is a sum over (M, U) of binomial tails. For large n, neighbouring M
    share a block and U is put on a grid. Blocks and grid make the law wider in the convex order, so delta can only
    grow. The mass that is cut and the rounding errors are added to delta. No field depends on epsilon.

    Attributes:
        cut: a bound of `Pr[M outside its window]`, also given that the first report supports exactly one item.
        weights: float64[k], the probability of each term.
        coins: float64[k], M of each term: the largest M of its block.
        sums: float64[k], G of each term.
        starts: int64[k], where the tails of Bin(M, 1/2) begin in `moments` and `tails`.
        room: float64[k], how many tails follow the first one.
        moments, tails: float64, those of `convex_order.FairTails` for all M, one M after the other.
        error: a bound of the rounding error of each of the two parts of a term, relative to that part.

    Reference: Balle, Bell, Gascon, Nissim 2019, section 5: `delta = E[(gamma/N) (V_1 + ... + V_N)_+]` with N - 1 ~
    Bin(n-1, gamma) is the same; N is the number of W that are not "else". docs/mathematics.md section 7.
    """

    law: BlanketLaw
    reports: int
    cut: float
    weights: FloatArray
    coins: FloatArray
    sums: FloatArray
    starts: npt.NDArray[np.int64]
    room: FloatArray
    moments: FloatArray
    tails: FloatArray
    error: float

    def delta(self, epsilon: float) -> float:
        """Return a delta such that the reports are (epsilon, delta)-private, replace-one, for one report; in [0, 1]."""
        if not (math.isfinite(epsilon) and epsilon >= 0.0):
            raise ValueError(f"epsilon is {epsilon}, must be at least 0 and finite")
        if epsilon >= self.law.epsilon:
            return 0.0
        gain = math.expm1(self.law.epsilon) * (math.exp(epsilon) + 1.0) / 2.0
        short = math.expm1(epsilon) * self.sums
        place = np.floor((short / gain + self.coins) / 2.0) - np.floor(self.coins / 2.0)
        index = self.starts + np.clip(place, 0.0, self.room).astype(np.int64)
        won = gain * self.moments[index]
        paid = short * np.where(short < 0.0, 1.0, self.tails[index])
        terms = np.maximum(won - paid, 0.0) + self.error * (won + np.abs(paid))
        inside = float(self.weights @ terms) * (1.0 + self.error) / self.reports
        # Outside the window of M, sum W <= (e - E) times the number of reports of the first item only, and e one <= 1.
        return min(1.0, inside + 2.0 * self.cut + self.law.excess)


@dataclass(frozen=True, eq=False)
class _Block:
    """A block of neighbouring M.

    D uses the largest M of the block, `coins`. G uses the one or two ends of the block, weighted to keep the mean of M.

    U is the sum over `rest` reports; `rest` is at least n - M.
    """

    coins: int
    ends: FloatArray
    weights: FloatArray
    rest: int


def divergence(law: BlanketLaw, reports: int, cut: float) -> Divergence:
    """Return the divergence of n shuffled reports of one campaign; the other clients may hold any values.

    The mass that is cut adds about `cut`, in (0, 1), to delta. The time grows with the logarithm of 1/cut.
    """
    if reports < 1:
        raise ValueError(f"reports is {reports}, must be at least 1")
    reports = min(reports, LARGEST_REPORTS)
    blocks = list(_blocks(law, reports, cut))
    tails = [fair_tails(block.coins, cut) for block in blocks]
    lengths = np.array([len(part.tails) for part in tails])
    starts = np.cumsum(lengths) - lengths
    others = Others(math.exp(law.epsilon), law.both, law.neither, law.nothing)
    spreads = {rest: others.total(rest, cut) for rest in {block.rest for block in blocks}}
    terms = [_terms(others, reports, block, spreads[block.rest]) for block in blocks]
    sizes = [len(weights) for weights, _ in terms]
    return Divergence(
        law=law,
        reports=reports,
        cut=cut,
        weights=np.concatenate([weights for weights, _ in terms]),
        coins=np.repeat([float(block.coins) for block in blocks], sizes),
        sums=np.concatenate([sums for _, sums in terms]),
        starts=np.repeat(starts, sizes),
        room=np.repeat(lengths - 1.0, sizes),
        moments=np.concatenate([part.moments for part in tails]),
        tails=np.concatenate([part.tails for part in tails]),
        error=_error(blocks, tails, 4.0 * reach(reports / 4.0, 1.0, cut), sum(sizes)),
    )


def _blocks(law: BlanketLaw, reports: int, cut: float) -> Iterator[_Block]:
    chance = 2.0 * law.one
    window = binomial_window(reports, chance, law.both + law.neither + law.nothing, cut)
    size = max(1, int(_BLOCK * reports * chance))
    level = max(1, int(_LEVEL * (reports - window.first)))
    for low in range(window.first, window.last + 1, size):
        weights = window.weights[low - window.first : low - window.first + size]
        high = low + len(weights) - 1
        whole = float(weights.sum())
        rest = reports - window.first - (low - window.first) // level * level
        if high == low or not whole > 0.0:
            yield _Block(high, np.array([float(low)]), np.array([whole]), rest)
            continue
        upper = float(weights @ np.arange(len(weights))) / (high - low)
        yield _Block(high, np.array([float(low), float(high)]), np.array([whole - upper, upper]), rest)


def _terms(others: Others, reports: int, block: _Block, spread: Spread) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities of the terms of a block, and the G of each term."""
    # U minus its mean is no wider than the sum over `rest` reports minus its mean. Every figure is moved by more than
    # its rounding error toward a lower G, and so toward a larger delta.
    surplus = others.mean * (block.rest - (reports - block.ends))
    means = (others.value + 1.0) / 2.0 * block.ends * (1.0 - _SLACK) - surplus * (1.0 + _SLACK)
    sums = np.add.outer(means, spread.points * (1.0 - _SLACK))
    return np.multiply.outer(block.weights, spread.weights).reshape(-1), sums.reshape(-1)


def _error(blocks: list[_Block], tails: list[FairTails], longest: float, terms: int) -> float:
    """Return a bound of the relative rounding error of a sum of terms, with windows of at most `longest` counts.

    A step from a mode adds less than 3 units of rounding, and an addition adds 1 unit.
    """
    steps = max(len(part.tails) for part in tails) + blocks[-1].coins - blocks[0].coins + longest
    return _UNIT * (8.0 * (steps + 2.0**12) + terms)
