"""Identity: an item is its own cell."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from hushcount.arrays import Counts, Reports, UInt64Array
from hushcount.maths.group_spreads import of_groups
from hushcount.maths.variance import SupportLaw
from hushcount.oracles.decoding import DecodeCost, cells_cost
from hushcount.oracles.encoders.base import Grouped, Universal, require_items, squared_sum
from hushcount.oracles.groups import Groups
from hushcount.oracles.responders.base import Responder
from hushcount.wire.fields import Number

_CHUNK_CELLS = 1 << 22


@dataclass(frozen=True)
class Identity(Universal):
    """One function, `h(x) = x`, over a dictionary of `domain` items; nothing collides.

    Args:
        domain: d, at least 2.
        cells: m, at least d; nobody has the cells above the last item. d, if not given.
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

    def squares(self, responder: Responder, reports: Reports, groups: Groups) -> list[int]:
        """Look the cells of distinct reports up: responders that need squares have fewer reports than clients send."""
        require_items(groups.items, self.domain)
        distinct, times = np.unique(reports, return_counts=True)
        runs, ends = responder.runs(distinct), np.append(groups.starts, len(groups.items))[1:]
        if runs is None or runs.length > 1:
            return super().squares(responder, reports, groups)
        sums, step = [], max(1, _CHUNK_CELLS // runs.starts.shape[1])
        for start, end in zip(groups.starts, ends, strict=True):
            there = np.zeros(self.cells, dtype=np.int64)
            there[groups.items[start:end]] = 1
            parts = [there[runs.starts[row : row + step]].sum(axis=1) for row in range(0, len(distinct), step)]
            sums.append(squared_sum(np.concatenate(parts), times) if parts else 0)
        return sums

    def group_law(self, asked: Grouped) -> SupportLaw:
        scored = asked.scored
        p, q = scored.responder.p, scored.responder.q
        held = (scored.tally.counts[0] - scored.tally.reports * q) / (p - q)
        return of_groups(scored.law, asked.groups.sizes, *scored.responder.group_spreads(asked.groups, held))

    def decode_cost(self, responder: Responder, reports: int, items: int) -> DecodeCost:
        return cells_cost(responder.count_cost(reports), items)

    def scores(self, tally: Counts, items: UInt64Array, wanted: UInt64Array) -> Counts:
        require_items(wanted, self.domain)
        return tally[0, wanted]
