"""Identity: an item is its own cell."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from hushcount.arrays import Counts, Reports, UInt64Array
from hushcount.maths.group_spreads import of_groups
from hushcount.maths.variance import SupportLaw
from hushcount.oracles.decoding import DecodeCost, cells_cost
from hushcount.oracles.encoders.base import Grouped, Universal, require_items
from hushcount.oracles.responders.base import Responder
from hushcount.wire.fields import Number


@dataclass(frozen=True)
class Identity(Universal):
    """The only function is `h(x) = x`, over a dictionary of `domain` items; no two items collide.

    Args:
        domain: d, at least 2.
        cells: m, at least d; the cells above the last item belong to no item. 0 stands for d.
    """

    domain: int
    cells: int = 0
    fields: ClassVar[tuple[Number, ...]] = ()
    collision: ClassVar[Fraction] = Fraction(0)

    def __post_init__(self) -> None:
        if self.domain < 2:
            raise ValueError(f"domain is {self.domain}, must be at least 2 items")
        if not self.cells:
            object.__setattr__(self, "cells", self.domain)
        if self.cells < self.domain:
            raise ValueError(f"cells is {self.cells}, must be at least the domain's {self.domain} items")

    def tally_shape(self, items: UInt64Array) -> tuple[int, int]:
        return 1, self.cells

    def cell(self, reports: Reports, items: UInt64Array) -> UInt64Array:
        require_items(items, self.domain)
        return items

    def accumulate(self, tally: Counts, responder: Responder, reports: Reports, items: UInt64Array) -> None:
        responder.count_cells(tally, reports, None)

    def group_law(self, asked: Grouped) -> SupportLaw:
        scored = asked.scored
        p, q = scored.responder.p, scored.responder.q
        held = (scored.tally.counts[0] - scored.tally.reports * q) / (p - q)
        return of_groups(scored.law, asked.groups.sizes, *scored.responder.group_spreads(asked.groups, held))

    def reach(self, cells: int) -> Fraction:
        return Fraction(min(cells, self.domain), self.domain)

    def decode_cost(self, responder: Responder, reports: int, items: int) -> DecodeCost:
        return cells_cost(responder.count_cost(reports), items)

    def scores(self, tally: Counts, items: UInt64Array, wanted: UInt64Array) -> Counts:
        require_items(wanted, self.domain)
        return tally[0, wanted]
