"""The interface of encoders: an encoder puts an item into a cell, by a hash function that is drawn for each report."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from hushcount.arrays import Counts, FloatArray, Reports, UInt64Array
from hushcount.maths.variance import Numbers, SupportLaw, supporting
from hushcount.oracles.decoding import DecodeCost
from hushcount.oracles.estimates import Estimate, Supports
from hushcount.oracles.groups import Groups
from hushcount.oracles.responders.base import Responder
from hushcount.oracles.tally import Tally
from hushcount.randomness import Words, uniform
from hushcount.wire.fields import Number

if TYPE_CHECKING:
    from hushcount.oracles.encoders.line import Line
    from hushcount.oracles.encoders.pool import PoolEncoder
    from hushcount.oracles.noisy_counts import MixNoise


class Encoder(Protocol):
    """A family of hash functions from items to cells: a frozen value of public parameters."""

    @property
    def cells(self) -> int:
        """The number of cells of a function."""

    @property
    def domain(self) -> int | None:
        """The number of items, which are 0..domain-1; None if an item is any 61-bit fingerprint."""

    @property
    def fields(self) -> tuple[Number, ...]:
        """The fields of a report that name its function, each uniform; empty if there is only one function."""

    @property
    def collision(self) -> Fraction:
        """The probability, over the functions, that two different items (with blocks: of one block) share a cell."""

    @property
    def by_item(self) -> bool:
        """Whether the tally has one column for each requested item, so that no other item can be estimated later."""

    @property
    def groups_differ(self) -> bool:
        """Whether `group_law` is a mean over all groups of one size, so that the law of one group may differ."""

    @property
    def pooled(self) -> PoolEncoder | None:
        """The encoder, if it has a pool of fixed functions; None if functions are fresh."""

    @property
    def line(self) -> Line | None:
        """The encoder, if clients hold its first item in part, by their position on a line; None for all others."""

    @property
    def noise(self) -> MixNoise | None:
        """The dummies that mixes add to each item; None if each report has noise of its own."""

    @property
    def scatters(self) -> bool:
        """Whether two items in different cells are in any two cells equally often, over a report's fresh randomness."""

    @property
    def least_collision(self) -> Fraction:
        """The least probability of a pair of items to share a cell, over a report's fresh randomness."""

    def law(self, p: Numbers, q: Numbers) -> SupportLaw:
        """Return the law of an item's score in one report, for the probabilities p and q of the responder."""

    def tally_shape(self, items: UInt64Array) -> tuple[int, int]:
        """Return (rows, width) of the tally that serves these items; a report counts in the row of its field `row`."""

    def draw(self, reports: Reports, words: Words) -> None:
        """Fill this encoder's fields of `reports` with fresh functions. The only random method."""

    def log_functions(self) -> float:
        """Return the natural logarithm of the number of functions, all equally likely."""

    def cell(self, reports: Reports, items: UInt64Array) -> UInt64Array:
        """Return uint64[n]: the cell of each item under the function of the report of the same row."""

    def accumulate(self, tally: Counts, responder: Responder, reports: Reports, items: UInt64Array) -> None:
        """Add the reports to `tally`, int64[rows, width], in place."""

    def near_users(self, items: UInt64Array, held: FloatArray) -> FloatArray | None:
        """Return float64[c]: the number of users of all other items in each item's block, or None without blocks.

        `items` are all items that clients hold; `held`, float64[c], is the number of users of each.
        """

    def estimate(self, scored: Scored) -> Estimate:
        """Return the estimates of scored items with their errors."""

    def group_law(self, asked: Grouped) -> SupportLaw:
        """Return the law of the sum of the scores of each group, every field float64[g]; without collisions."""

    def group_collisions(self, asked: Grouped, held: bool = True) -> FloatArray:
        """Return float64[g], users squared: each group's mean square error by collisions in a pool.

        `held` is True for the error at the estimated counts, and False for the error if nobody held an item of the
        group.
        """

    def group_lean(self, asked: Grouped) -> FloatArray:
        """Return float64[g], users cubed: the third central moment of each group's count if nobody held its items.

        The moment is given as 0 where it is not needed: for symmetric scores, and for scores with a more exact law.
        """

    def reach(self, cells: int) -> Fraction:
        """Return the greatest share of all items that one report supports, if it supports at most `cells` cells.

        In an open domain this is the share of all strings, on average over the functions of a pool.
        """

    def totals(self, responder: Responder, items: UInt64Array) -> TotalLaw:
        """Return the law of what one report adds to all counts of a tally for `items` together."""

    def decode_cost(self, responder: Responder, reports: int, items: int) -> DecodeCost:
        """Return the cost to tally this number of reports and to estimate this number of items."""

    def scores(self, tally: Counts, items: UInt64Array, wanted: UInt64Array) -> npt.NDArray[Any]:
        """Return int64[len(wanted)]: the score of each wanted item in a tally made for `items`.

        A score is the number of reports that support the item; with blocks, minus the number that oppose the item. On a
        line a score is float64, the sum of weights of reports.
        """


@dataclass(frozen=True)
class TotalLaw:
    """What one honest report adds to all counts of a tally together: bounds that hold for every item of its client.

    Attributes:
        low, high: the mean is in low..high.
        variance: at least the variance; 0 if all well-formed reports add the same.
        most: the most that a well-formed report can add.
        step: the report adds a sum of independent parts, and each part is within `step` of its mean.
    """

    low: float
    high: float
    variance: float
    most: float
    step: float


@dataclass(frozen=True, eq=False)
class Scored:
    """Items, uint64[c], their scores, [c], and their unbiased counts, float64[c] users, in one tally."""

    responder: Responder
    law: SupportLaw
    tally: Tally
    items: UInt64Array
    scores: npt.NDArray[Any]
    count: FloatArray

    @property
    def held(self) -> FloatArray:
        """float64[c], users: the estimates, clipped to 0..n."""
        return np.clip(self.count, 0.0, self.tally.reports)

    def noise(self, near: FloatArray | None = None) -> FloatArray:
        """Return float64[c], users: the standard errors at these counts; for `near` see `SupportLaw.noise`."""
        n = self.tally.reports
        return np.sqrt(self.law.noise(n, self.held / n, near))


@dataclass(frozen=True, eq=False)
class Grouped:
    """Groups of items, the scores of all their items, and unbiased counts of the groups, float64[g] users."""

    scored: Scored
    groups: Groups
    count: FloatArray

    @classmethod
    def of(cls, scored: Scored, groups: Groups) -> Grouped:
        """Return the groups of the items that were scored, one group after the other."""
        return cls(scored, groups, groups.sums(scored.count))

    @property
    def held(self) -> FloatArray:
        """float64[g], users: the counts, clipped to 0..n."""
        return np.clip(self.count, 0.0, self.scored.tally.reports)

    @property
    def scores(self) -> FloatArray:
        """float64[g]: the scores of all items of a group together."""
        return np.asarray(self.groups.sums(self.scored.scores), dtype=np.float64)


class Family:
    """The base of all encoders: their functions are uniform, and special properties are off by default."""

    by_item = False
    groups_differ = False
    noise: MixNoise | None = None

    @property
    def pooled(self) -> PoolEncoder | None:
        return None

    @property
    def line(self) -> Line | None:
        return None

    @property
    def scatters(self) -> bool:
        return False

    def draw(self: Encoder, reports: Reports, words: Words) -> None:
        for field in self.fields:
            reports[field.name] = uniform(field.values, len(reports), words) + np.uint64(field.least)

    def log_functions(self: Encoder) -> float:
        return math.fsum(math.log(field.values) for field in self.fields)

    def near_users(self, items: UInt64Array, held: FloatArray) -> FloatArray | None:
        return None

    def totals(self, responder: Responder, items: UInt64Array) -> TotalLaw:
        """The law of a tally by cell: the number of cells that a report supports, whatever the item."""
        mean = responder.p + (responder.width - 1) * responder.q
        return TotalLaw(mean, mean, responder.size_variance, float(responder.most_cells), 1.0)

    def group_lean(self, asked: Grouped) -> FloatArray:
        return np.zeros(len(asked.groups))

    def group_collisions(self, asked: Grouped, held: bool = True) -> FloatArray:
        return np.zeros(len(asked.groups))


class Universal(Family):
    """The base of encoders that put any two items into one cell with probability `collision`, afresh in each report."""

    @property
    def least_collision(self: Encoder) -> Fraction:
        return self.collision

    def law(self: Encoder, p: Numbers, q: Numbers) -> SupportLaw:
        return supporting(p, q, float(self.collision))

    def estimate(self, scored: Scored) -> Estimate:
        n, own, other = scored.tally.reports, float(scored.law.own), float(scored.law.other)
        return Supports(scored.count, scored.noise(), np.zeros(len(scored.count)), scored.scores, n, own, other)


def require_items(items: UInt64Array, domain: int) -> None:
    """Raise ValueError unless every item is in 0..domain-1."""
    if items.size and int(items.max()) >= domain:
        # The position of an item would reveal the item, so the message does not contain the position.
        raise ValueError(f"an item is outside of the domain, 0..{domain - 1}")
