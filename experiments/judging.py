"""Verdicts: whether measured values agree with predicted ones, computed from the numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy import stats

from experiments.rows import Row

FAILURE = 1e-6
"""The largest probability that the verdict on a figure is "no" although all predictions are right."""
TOLERANCE = 0.02
"""How far a ratio may always be from 1: predictions of variances are exact, but those of l1 assume normal errors."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that can be checked.

    Attributes:
        text: the sentence.
        holds: whether the numbers confirm it.
        needed: whether it must hold for the figure to count as reproduced; false if the paper is known to be wrong.
    """

    text: str
    holds: bool
    needed: bool = True


@dataclass(frozen=True)
class Verdict:
    """What came out.

    Attributes:
        reproduced: every measured value is in its range about the prediction, corrected where the paper is wrong, and
            every needed claim holds.
        as_printed: the same with the printed formulas, and every claim holds.
        inside, tested: how many measured values are in their range, and how many were tested.
        least, most: of measured over predicted, except for values that are the largest of many items.
    """

    reproduced: bool
    as_printed: bool
    inside: int
    tested: int
    least: float
    most: float

    @property
    def sentence(self) -> str:
        return (
            f"{self.inside} of {self.tested} measured values are in their range around the prediction "
            f"(measured divided by predicted: {self.least:.4g} to {self.most:.4g})."
        )


def judge(rows: Sequence[Row], claims: Sequence[Claim]) -> Verdict:
    """Judge claims, and rows that have their ranges (`bounded`).

    Raises:
        ValueError: nothing is tested.
    """
    tested = [row for row in rows if row.tested]
    if not tested:
        raise ValueError("rows must hold at least one value that is measured and predicted")
    # The largest of many values usually exceeds its prediction.
    ratios = [row.ratio for row in tested if row.law != "largest"] or [row.ratio for row in tested]
    inside = sum(row.holds for row in tested)
    return Verdict(
        reproduced=inside == len(tested) and all(claim.holds for claim in claims if claim.needed),
        as_printed=all(row.holds_as_printed for row in tested) and all(claim.holds for claim in claims),
        inside=inside,
        tested=len(tested),
        least=min(ratios),
        most=max(ratios),
    )


def bounded(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with the range of measured over predicted filled in.

    If the predictions are right, any row of a figure leaves its range with probability FAILURE at most: each side of
    each row gets an equal share of FAILURE. No range is narrower than TOLERANCE on either side.
    """
    side = FAILURE / (2 * max(1, sum(row.tested for row in rows)))
    return [_bounded(row, rows, side) if row.tested and row.law != "within" else row for row in rows]


def _bounded(row: Row, rows: Sequence[Row], side: float) -> Row:
    if row.law == "exact":
        return replace(row, low=1.0 - _ROUNDING, high=1.0 + _ROUNDING)
    if row.law == "largest":
        low, high = _largest(row, side)
    elif row.law == "known":
        low, high = _normal(row, side)
    else:
        low, high = _mean_of_squares(row, _pooled(row, rows), side)
        if row.law == "root":
            low, high = math.sqrt(low), math.sqrt(high)
    return replace(row, low=min(low, 1.0 - TOLERANCE), high=max(high, 1.0 + TOLERANCE))


def _normal(row: Row, side: float) -> tuple[float, float]:
    reach = float(stats.norm.isf(side)) * (row.spread or 0.0) / math.sqrt(row.runs)
    return 1.0 - reach, 1.0 + reach


def _largest(row: Row, side: float) -> tuple[float, float]:
    """The largest mean square is at least that of the worst item; [P25] Theorem K.1 bounds it from above."""
    return float(stats.chi2.ppf(side, row.runs)) / row.runs, laurent_massart(row.runs, row.items / side)


def laurent_massart(runs: int, odds: float) -> float:
    """Return `1 + 2 (sqrt(t L) + L)/t`, `L = ln(odds)`: a bound for the mean of t squared errors of variance 1.

    Normal errors exceed it with probability `1/odds` at most.

    Reference: [P25] appendix K, where odds are 20 times the number of items, for 5 %.
    """
    level = math.log(odds)
    return 1.0 + 2.0 / runs * (math.sqrt(runs * level) + level)


def _pooled(row: Row, rows: Sequence[Row]) -> tuple[float, int]:
    """Return the mean squared spread of the curve that the row is on, and its degrees of freedom."""
    alike = [
        (other.spread, other.runs - 1)
        for other in rows
        if (other.panel, other.series, other.law) == (row.panel, row.series, row.law) and other.spread is not None
    ]
    freedom = sum(weight for _, weight in alike)
    if freedom < 1:
        raise ValueError(f"runs is {row.runs}, must be at least 2 to know the spread of {row.series}")
    return sum(spread**2 * weight for spread, weight in alike) / freedom, freedom


def _mean_of_squares(row: Row, pooled: tuple[float, int], side: float) -> tuple[float, float]:
    """A sum of squares is about chi-square with `2/spread^2` degrees of freedom (Satterthwaite).

    The spread is itself measured, so its upper confidence limit is used, at the error probability `side`.
    """
    square, freedom = pooled
    largest = square * freedom / float(stats.chi2.ppf(side, freedom))
    degrees = 2.0 * row.runs / largest
    return float(stats.chi2.ppf(side, degrees)) / degrees, float(stats.chi2.isf(side, degrees)) / degrees
