"""Unary: one bit for each cell, each bit randomised independently."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from hushcount.arrays import BoolArray, Counts, FloatArray, Reports, UInt64Array
from hushcount.maths.probability import odds_ratio, probability_threshold, spending_flip, symmetric_threshold
from hushcount.oracles.decoding import BIT_NS, CountCost
from hushcount.oracles.groups import Groups
from hushcount.oracles.responders.base import BaseLaw
from hushcount.randomness import WORD_VALUES, Words, below, event_bits
from hushcount.wire.fields import MOST_BYTES, Bits, Field

_CHUNK_BITS = 1 << 22


@dataclass(frozen=True)
class Unary:
    """The bit of the own cell is set with probability `keep / 2**64`, every other bit with `flip / 2**64`.

    Args:
        width: m, the number of cells, at least 2.
        keep: threshold out of 2**64 of p.
        flip: threshold out of 2**64 of q, below `keep`.

    Privacy: `ln(p (1-q) / (q (1-p)))` for one report, replace-one, because two items differ in two bits.
    Reference: Wang et al. 2017; docs/mathematics.md section 3. The number of supported cells varies.
    """

    width: int
    keep: int
    flip: int

    def __post_init__(self) -> None:
        if self.width < 2:
            raise ValueError(f"width is {self.width}, must be at least 2 cells")
        if self.width > 8 * MOST_BYTES:
            raise ValueError(f"width is {self.width}, must be at most {8 * MOST_BYTES} cells, a bit for each")
        if not 0 < self.flip < self.keep < WORD_VALUES:
            raise ValueError(f"p is {self.p:.6g}, must be above q, which is {self.q:.6g}, and below 1")

    @classmethod
    def symmetric(cls, epsilon: float, width: int) -> Unary:
        """Return the responder with p + q = 1 and loss epsilon, rounded toward less."""
        keep = symmetric_threshold(epsilon)
        return cls(width, keep, WORD_VALUES - keep)

    @classmethod
    def spending(cls, epsilon: float, width: int, p: float) -> Unary:
        """Return the responder with this p, in (0, 1), and loss epsilon, rounded toward less."""
        keep = probability_threshold(p, "p")
        return cls(width, keep, spending_flip(epsilon, keep))

    @property
    def p(self) -> float:
        return self.keep / WORD_VALUES

    @property
    def q(self) -> float:
        return self.flip / WORD_VALUES

    @property
    def size_variance(self) -> float:
        return self.p * (1.0 - self.p) + (self.width - 1) * self.q * (1.0 - self.q)

    @property
    def fields(self) -> tuple[Field, ...]:
        return (Bits("bits", self.width),)

    @property
    def epsilon(self) -> float:
        return odds_ratio(self.keep, self.flip)

    @property
    def log_greatest(self) -> float:
        """Each bit has its more likely value."""
        own, other = max(self.p, 1.0 - self.p), max(self.q, 1.0 - self.q)
        return math.log(own) + (self.width - 1) * math.log(other)

    @property
    def most_cells(self) -> int:
        return self.width

    def respond(self, reports: Reports, cells: UInt64Array, words: Words) -> None:
        octets = reports["bits"].shape[1]
        lanes = -(-self.width // 64)
        last = np.uint8((1 << ((self.width - 1) % 8 + 1)) - 1)
        rows = max(1, _CHUNK_BITS // self.width)
        for start in range(0, len(cells), rows):
            own = cells[start : start + rows]
            bits = event_bits(self.flip, len(own) * lanes, words).astype("<u8").view(np.uint8).reshape(len(own), -1)
            bits = bits[:, :octets].copy()
            bits[:, -1] &= last
            place = (np.arange(len(own)), (own >> np.uint64(3)).astype(np.intp))
            mask = np.left_shift(np.uint8(1), (own & np.uint64(7)).astype(np.uint8))
            kept = below(self.keep, len(own), words)
            bits[place] = np.where(kept, bits[place] | mask, bits[place] & ~mask)
            reports["bits"][start : start + rows] = bits

    def log_prob(self, reports: Reports, cells: UInt64Array) -> FloatArray:
        own = self.supports(reports, cells)
        others = np.unpackbits(reports["bits"], axis=1).sum(axis=1).astype(np.int64) - own
        p, q = self.p, self.q
        mine = np.where(own, math.log(p), math.log1p(-p))
        return mine + others * math.log(q) + (self.width - 1 - others) * math.log1p(-q)

    def supports(self, reports: Reports, cells: UInt64Array) -> BoolArray:
        octets = reports["bits"][np.arange(len(cells)), (cells >> np.uint64(3)).astype(np.intp)]
        result: BoolArray = (octets >> (cells & np.uint64(7)).astype(np.uint8) & 1).astype(np.bool_)
        return result

    def count_cells(self, tally: Counts, reports: Reports, rows: npt.NDArray[Any] | None) -> None:
        bits = reports["bits"]
        order = None if rows is None else np.argsort(rows, kind="stable")
        step = max(1, _CHUNK_BITS // self.width)
        for start in range(0, len(bits), step):
            chosen = slice(start, start + step) if order is None else order[start : start + step]
            cells = np.unpackbits(bits[chosen], axis=1, count=self.width, bitorder="little")
            if rows is None:
                tally[0] += cells.sum(axis=0, dtype=np.int64)
                continue
            here, firsts = np.unique(rows[chosen], return_index=True)
            tally[here] += np.add.reduceat(cells, firsts, axis=0, dtype=np.int64)

    def count_cost(self, reports: int) -> CountCost:
        bits = float(reports * self.width)
        return CountCost(bits, bits * BIT_NS)

    def group_spreads(self, groups: Groups, held: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bits are independent."""
        flipped = self.q * (1.0 - self.q)
        return self.p * (1.0 - self.p) + (groups.sizes - 1.0) * flipped, groups.sizes * flipped

    def runs(self, reports: Reports) -> NoReturn:
        raise ValueError("reports of bits are no runs of cells, as the affine encoder reads them: take another encoder")

    def base_law(self, scattered: bool) -> BaseLaw:
        """Return the law of bits that are all set with probability q; base is `(1-p)/(1-q)` times this law.

        The bits of the two items alone give no bound of delta: if all other clients hold a third item, the bit of the
        third item distinguishes their reports from the report of the one client.
        """
        single = Fraction(self.flip, WORD_VALUES)
        return BaseLaw(single, single**2)
