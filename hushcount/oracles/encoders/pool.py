"""Pool: k hash functions fixed for the campaign; a report names the one that it used, its row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from nacl.bindings import randombytes_buf_deterministic

from hushcount.arrays import Counts, Reports, UInt64Array
from hushcount.maths import field61
from hushcount.oracles.costs import DecodeCost, cells_cost
from hushcount.oracles.encoders.pooled import Pooled
from hushcount.oracles.responders.base import Responder
from hushcount.randomness import Words, uniform
from hushcount.threads import available_threads
from hushcount.wire.fields import Field, Number

_CHUNK_HASHES = 1 << 20

MOST_FUNCTIONS = 1 << 18
"""Most functions of a pool: every client expands them all from the seed, 24 bytes each."""


@dataclass(frozen=True)
class Pool(Pooled):
    """`h_j(x) = (c0_j + c1_j x + c2_j x^2 mod 2**61-1) mod m`, j = 0..k-1, over 61-bit fingerprints of strings.

    Polynomials of degree two are three-wise independent, which the collision term of the variance needs; a pool of
    affine functions exceeds it by 10 % on average and 50 % for some items (docs/mathematics.md section 5).

    Args:
        rows: k, the number of functions, at least 1.
        cells: m, at least 2.
        seed: 64 hexadecimal digits from which every party expands the same coefficients. Public.

    Reference: [J] section 4.1; docs/mathematics.md section 5.
    """

    rows: int
    cells: int
    seed: str
    domain: ClassVar[int | None] = None
    by_item: ClassVar[bool] = False
    least_collision: ClassVar[Fraction] = Fraction(0)

    def __post_init__(self) -> None:
        if not 1 <= self.rows <= MOST_FUNCTIONS:
            raise ValueError(f"k is {self.rows}, must be in 1..{MOST_FUNCTIONS} hash functions")
        if not 2 <= self.cells <= 1 << 24:
            raise ValueError(f"m is {self.cells}, must be in 2..{1 << 24} cells")
        if len(self.seed) != 64 or set(self.seed) - set("0123456789abcdef"):
            raise ValueError(f"seed is {self.seed!r}, must be 64 lower-case hexadecimal digits")

    @property
    def fields(self) -> tuple[Field, ...]:
        return (Number("row", self.rows),)

    @property
    def collision(self) -> Fraction:
        return Fraction(1, self.cells)

    def tally_shape(self, items: UInt64Array) -> tuple[int, int]:
        return self.rows, self.cells

    def draw(self, reports: Reports, words: Words) -> None:
        reports["row"] = uniform(self.rows, len(reports), words)

    def log_functions(self) -> float:
        return math.log(self.rows)

    def cell(self, reports: Reports, items: UInt64Array) -> UInt64Array:
        return self._hash(coefficients(self.rows, self.seed)[:, reports["row"]], items)

    def accumulate(self, tally: Counts, responder: Responder, reports: Reports, items: UInt64Array) -> None:
        responder.count_cells(tally, reports, reports["row"])

    def decode_cost(self, responder: Responder, reports: int, items: int) -> DecodeCost:
        return cells_cost(responder.count_cost(reports), items, hashes=float(items * self.rows))

    def scores(self, tally: Counts, items: UInt64Array, wanted: UInt64Array) -> Counts:
        return self.sum_of_cells(tally, wanted)

    def sum_of_cells(self, matrix: Counts, wanted: UInt64Array) -> Counts:
        """Return int64[c]: the sum over all rows of `matrix`, int64[rows, >= cells], at each wanted item's cells."""
        # Imported here: clients encode without numba, only servers ask a tally.
        from hushcount.kernels.cells import sum_of_cells

        table = coefficients(self.rows, self.seed)
        return sum_of_cells(matrix, table, self.cells, wanted, available_threads())

    @property
    def pool_cells(self) -> int:
        return self.cells

    def cell_scores(self, tally: Counts) -> Counts:
        return tally

    def cells_of(self, item: int) -> UInt64Array:
        return self._hash(coefficients(self.rows, self.seed), np.full(self.rows, item, dtype=np.uint64))

    def cell_squares(self, tally: Counts, reports: int, responder: Responder) -> float:
        """In row j with n_j reports, `sum_c (M_jc - q n_j)^2` has mean `n_j v + (p-q)^2 sum_c N_jc^2`.

        `v` is the variance of one report over the cells. Where reports support a varying number of cells, n_j is not
        known but estimated by the row's sum over the mean size S, which takes `(2q/S - m q^2/S^2) size_variance` from
        v. Derived here; simulated in the tests.
        """
        p, q, m, varying = responder.p, responder.q, self.cells, responder.size_variance
        size = p + (m - 1) * q
        step, spread = max(1, _CHUNK_HASHES // m), 0.0
        for start in range(0, len(tally), step):
            rows = tally[start : start + step]
            spread += float(((rows - (q / size) * rows.sum(axis=1, keepdims=True)) ** 2).sum())
        variance = p * (1.0 - p) + (m - 1) * q * (1.0 - q) - varying * (2.0 * q / size - m * (q / size) ** 2)
        return (spread - reports * variance) / (p - q) ** 2

    def _hash(self, table: UInt64Array, items: UInt64Array) -> UInt64Array:
        value = field61.add(field61.multiply(table[2], items), table[1])
        return field61.add(field61.multiply(value, items), table[0]) % np.uint64(self.cells)


@lru_cache(maxsize=8)
def coefficients(rows: int, seed: str) -> UInt64Array:
    """Return uint64[3, rows] below 2**61-1: the coefficients c0, c1, c2 of every function, expanded by ChaCha20.

    A word is reduced modulo the prime; the bias of that is below 2**-58.
    """
    stream = randombytes_buf_deterministic(24 * rows, bytes.fromhex(seed))
    table = field61.reduce(np.frombuffer(stream, dtype="<u8").astype(np.uint64)).reshape(3, rows)
    table.setflags(write=False)
    return table
