"""Hadamard: a random column of a Sylvester matrix maps every item to a sign, within its block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hushcount.arrays import Counts, FloatArray, Reports, UInt64Array
from hushcount.maths.group_spreads import independent, of_groups
from hushcount.maths.variance import Numbers, SupportLaw, opposing
from hushcount.oracles.decoding import DecodeCost, cells_cost
from hushcount.oracles.encoders.base import Grouped, Scored, Universal, require_items
from hushcount.oracles.estimates import Estimate, Signs
from hushcount.oracles.responders.base import Responder
from hushcount.wire.fields import Number


@dataclass(frozen=True)
class Hadamard(Universal):
    """Item x is row `x div B` of the matrix, in block `x mod B`; its cell is `2 (x mod B)`, plus 1 for a minus sign.

    The column is uniform over all K, so two rows agree in sign with probability exactly 1/2. With one block this
    encoder is that of Hadamard encoding and Hadamard response. With more blocks this encoder is that of Recursive
    Hadamard Response: items of different blocks never share a cell, and items of one block share a cell half of the
    time. The variance is largest if all users are in one block.

    Args:
        domain: d, the number of items, at least 2.
        blocks: B, 1..d.

    Reference: Bassily and Smith 2015; Acharya, Sun, Zhang 2019; Chen, Kairouz, Ozgur 2020; [P25] sections 4.1 to 4.3.
    The matrix is the smallest that has a row for every item of a block. The papers leave the constant row of the matrix
    unused; here an item uses the constant row, because only the law of a pair of rows matters.
    """

    domain: int
    blocks: int = 1
    collision: ClassVar[Fraction] = Fraction(1, 2)

    def __post_init__(self) -> None:
        if not 2 <= self.domain <= 1 << 31:
            raise ValueError(f"domain is {self.domain}, must be in 2..{1 << 31} items")
        if not 1 <= self.blocks <= self.domain:
            raise ValueError(f"blocks is {self.blocks}, must be in 1..{self.domain} blocks")

    @property
    def order(self) -> int:
        """K, the order of the matrix."""
        return 1 << (-(-self.domain // self.blocks) - 1).bit_length()

    @property
    def cells(self) -> int:
        return 2 * self.blocks

    @property
    def fields(self) -> tuple[Number, ...]:
        return (Number("column", self.order),)

    def tally_shape(self, items: UInt64Array) -> tuple[int, int]:
        return 1, self.order * self.cells

    def cell(self, reports: Reports, items: UInt64Array) -> UInt64Array:
        require_items(items, self.domain)
        rows, blocks = np.divmod(items, np.uint64(self.blocks))
        return np.uint64(2) * blocks + parity(reports["column"].astype(np.uint64) & rows)

    def block_of(self, items: UInt64Array) -> UInt64Array:
        return items % np.uint64(self.blocks)

    def accumulate(self, tally: Counts, responder: Responder, reports: Reports, items: UInt64Array) -> None:
        responder.count_cells(tally.reshape(self.order, self.cells), reports, reports["column"])

    def reach(self, cells: int) -> Fraction:
        """In column 0 all items of a block have the plus sign."""
        return Fraction(min(cells * -(-self.domain // self.blocks), self.domain), self.domain)

    def decode_cost(self, responder: Responder, reports: int, items: int) -> DecodeCost:
        steps = self.order * self.blocks * math.log2(max(2, self.order))
        return cells_cost(responder.count_cost(reports), items, transform=steps)

    def scores(self, tally: Counts, items: UInt64Array, wanted: UInt64Array) -> Counts:
        """One fast transform serves all items and takes `O(K B log K)` steps for any number of reports."""
        require_items(wanted, self.domain)
        signed = self.signed(tally)[np.divmod(wanted.astype(np.intp), self.blocks)]
        # A report that names the item's block supports or opposes the item; every report names an only block.
        return signed if self.blocks > 1 else (signed + tally.sum()) // 2

    def signed(self, tally: Counts) -> Counts:
        """Return int64[K, B]: for each row and block, the number of supporting minus that of opposing reports."""
        pairs = tally.reshape(self.order, self.blocks, 2)
        return walsh_hadamard((pairs[:, :, 0] - pairs[:, :, 1]).T).T

    @property
    def least_collision(self) -> Fraction:
        return Fraction(0) if self.blocks > 1 else self.collision

    def law(self, p: Numbers, q: Numbers) -> SupportLaw:
        return opposing(p, q) if self.blocks > 1 else super().law(p, q)

    def near_users(self, items: UInt64Array, held: FloatArray) -> FloatArray | None:
        if self.blocks == 1:
            return None
        block = self.block_of(items).astype(np.intp)
        return np.asarray(np.bincount(block, weights=held)[block] - held, dtype=np.float64)

    def estimate(self, scored: Scored) -> Estimate:
        if self.blocks == 1:
            return super().estimate(scored)
        n, p, q = scored.tally.reports, scored.responder.p, scored.responder.q
        named, shares = self.block_reports(scored.tally.counts, scored.items), scored.held / n
        near = np.clip((named / n - 2.0 * q) / (p - q) - shares, 0.0, 1.0 - shares)
        return Signs(scored.count, scored.noise(near), np.zeros(len(scored.count)), scored.scores, named)

    def group_law(self, asked: Grouped) -> SupportLaw:
        """Two different rows of the matrix agree in sign half of the time: all scores are uncorrelated."""
        sizes, scored = asked.groups.sizes, asked.scored
        law, n, p, q = scored.law, scored.tally.reports, scored.responder.p, scored.responder.q
        if self.blocks == 1:
            return independent(law, sizes)
        named = self.block_reports(scored.tally.counts, scored.items)
        # `near` estimates the share of users in each item's block. A report names its client's block with probability
        # p + q, and any other block with probability 2 q.
        near = asked.groups.sums(np.clip((named / n - 2.0 * q) / (p - q), 0.0, 1.0))
        spread = sizes * np.asarray(law.far_spread) + near * np.subtract(law.near_spread, law.far_spread)
        own = spread + np.subtract(law.own_spread, law.near_spread)
        return of_groups(law, sizes, own, spread)

    def block_reports(self, tally: Counts, wanted: UInt64Array) -> Counts:
        """Return int64[c]: how many reports named a cell of each wanted item's block."""
        by_block: Counts = tally.reshape(self.order, self.blocks, 2).sum(axis=(0, 2))
        return by_block[self.block_of(wanted).astype(np.intp)]


def parity(values: UInt64Array) -> UInt64Array:
    """Return 1 where an odd number of bits is set, else 0."""
    for shift in (32, 16, 8, 4, 2, 1):
        values = values ^ (values >> np.uint64(shift))
    return values & np.uint64(1)


def walsh_hadamard(values: npt.NDArray[Any]) -> Counts:
    """Return int64[..., K]: `sum_r (-1)^parity(r & j) values[..., r]` for j = 0..K-1, K a power of two."""
    result = np.ascontiguousarray(values, dtype=np.int64).copy()
    order, half = result.shape[-1], 1
    while half < order:
        pairs = result.reshape(*result.shape[:-1], order // (2 * half), 2, half)
        plus = pairs[..., 0, :] + pairs[..., 1, :]
        pairs[..., 1, :] = pairs[..., 0, :] - pairs[..., 1, :]
        pairs[..., 0, :] = plus
        half *= 2
    return result
