"""Line: items are points of a line, and the count of the highest point is the sum of all clients' positions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hushcount.arrays import Counts, FloatArray, Reports, UInt64Array
from hushcount.maths.line import Weights, require_points, weights
from hushcount.maths.variance import Numbers, SupportLaw
from hushcount.oracles.decoding import CELL_NS, CountCost, DecodeCost, cells_cost
from hushcount.oracles.encoders.base import Family, Grouped, Scored, TotalLaw, require_items
from hushcount.oracles.estimates import Estimate
from hushcount.oracles.group_estimates import Sums
from hushcount.oracles.responders.base import Responder
from hushcount.wire.fields import Number

_WORD_BITS, _DOUBLE_BITS = 64, 53


@dataclass(frozen=True)
class Line(Family):
    """Item x of m is the point at position `1 - x/(m-1)`; a client between two points takes one of them at random.

    A client at position t counts as t users of item 0, and as 1-t users of the last item, which is "other". So the
    count of item 0 is the sum of all positions, and it has an exact error. Other points have no counts.

    The responder's windows around a point's cell never wrap, because there are b spare cells at both ends.

    Args:
        domain: m, from 2 to `MOST_POINTS`.
        spare: b, from 0 to m: a window has 2 b + 1 cells.
        inside: p, the probability that a report is in its client's window.
    """

    domain: int
    spare: int
    inside: float
    fields: ClassVar[tuple[Number, ...]] = ()
    collision: ClassVar[Fraction] = Fraction(0)
    least_collision: ClassVar[Fraction] = Fraction(0)

    def __post_init__(self) -> None:
        require_points(self.domain)
        if not 0 <= self.spare <= self.domain:
            raise ValueError(f"b is {self.spare}, must be from 0 to {self.domain} for {self.domain} points")

    @property
    def cells(self) -> int:
        return self.domain + 2 * self.spare

    @property
    def line(self) -> Line:
        return self

    def points(self, positions: FloatArray, words: UInt64Array) -> UInt64Array:
        """Return uint64[n]: the item of each client, its position rounded at random without bias.

        Args:
            positions: float64[n], in 0..1.
            words: uint64[n], random.
        """
        places = positions * (self.domain - 1)
        below = np.minimum(np.floor(places), self.domain - 2.0)
        # Both sides of the comparison are exact in a double.
        drawn = (words >> np.uint64(_WORD_BITS - _DOUBLE_BITS)).astype(np.float64)
        above = drawn < (places - below) * 2.0**_DOUBLE_BITS
        return (self.domain - 1.0 - below - above).astype(np.uint64)

    def tally_shape(self, items: UInt64Array) -> tuple[int, int]:
        return 1, self.cells

    def cell(self, reports: Reports, items: UInt64Array) -> UInt64Array:
        require_items(items, self.domain)
        return np.uint64(self.cells - 1) - items

    def accumulate(self, tally: Counts, responder: Responder, reports: Reports, items: UInt64Array) -> None:
        """Count windows by their first cell."""
        starts = responder.runs(reports).starts[:, 0].astype(np.int64)
        tally[0] += np.bincount(starts, minlength=self.cells)

    def totals(self, responder: Responder, items: UInt64Array) -> TotalLaw:
        return TotalLaw(low=1.0, high=1.0, variance=0.0, most=1.0, step=1.0)

    def law(self, p: Numbers, q: Numbers) -> SupportLaw:
        """Scores are weights of reports as parts of the largest weight."""
        found = self.weights
        most, least = float(found.mean.max()), float(found.mean.min())
        top, bottom = float(found.at[-1]) / most**2, float(found.at[0]) / most**2
        return SupportLaw(1.0 / most, 0.0, top, bottom, bottom, least=least / most)

    @property
    def weights(self) -> Weights:
        """The weights of reports for item 0."""
        return weights(self.domain, self.spare, self.inside)

    def scores(self, tally: Counts, items: UInt64Array, wanted: UInt64Array) -> npt.NDArray[Any]:
        """Return float64[len(wanted)]; ValueError: an item is neither the highest nor the lowest point."""
        require_items(wanted, self.domain)
        if not np.isin(wanted, (0, self.domain - 1)).all():
            raise ValueError("only the highest and the lowest point of a line have counts")
        most = float(self.weights.mean.max())
        top, everybody = float(tally[0] @ self.weights.mean), float(tally.sum())
        return np.where(wanted == 0, top, everybody - top) / most

    def estimate(self, scored: Scored) -> Estimate:
        """The variance is that of the positions which clients have, estimated without bias from the tally.

        It contains the greatest variance of rounding, so it is at most a few per cent too large.
        """
        found, n, tally = self.weights, scored.tally.reports, scored.tally.counts[0]
        variance = max(float(tally @ found.noise), n * float(found.at.min())) + n * found.rounding
        every, none = np.ones(len(scored.count)), np.zeros(len(scored.count))
        # If nobody holds the highest point, all are at the lowest; the line is the same from both ends.
        null = np.sqrt(n * found.at[0]) * every
        return Sums(scored.count, np.sqrt(variance) * every, none, null, none)

    def group_law(self, asked: Grouped) -> SupportLaw:
        raise ValueError("points of a line have no sum: ask for the highest point alone")

    def reach(self, cells: int) -> Fraction:
        return Fraction(1, self.domain)

    def decode_cost(self, responder: Responder, reports: int, items: int) -> DecodeCost:
        return cells_cost(CountCost(float(reports), reports * CELL_NS), items)
