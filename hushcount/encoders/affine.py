"""Affine: a fresh function of a prime field for each report, as it is or folded into buckets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from hushcount.encoders.base import Counts, require_items
from hushcount.fields import Field, Reports
from hushcount.primes import is_prime
from hushcount.randomness import UInt64Array, Words, uniform
from hushcount.responders.base import Responder

_CHUNK_WALKS = 1 << 20


@dataclass(frozen=True)
class Affine:
    """`h(x) = (a x + b) mod P mod B`, a fresh `a` in 1..P-1 (and `b` in 0..P-1) for each report.

    `a = 0` is excluded, so that two items never share a residue: the family is sharply 2-transitive. Unfolded (B = P)
    no `b` is drawn: the responder's own answer is uniform over the circle of cells and absorbs any shift.

    Args:
        domain: d, the number of items, 2..P.
        prime: P, below 2**31.
        buckets: B, 2..P; P leaves the residues unfolded.

    Reference: [P26] section 5.2 ([P25] section 3.6 allows `a = 0`); docs/mathematics.md sections 3, 4 and 5.
    """

    domain: int
    prime: int
    buckets: int
    pool: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        if not (is_prime(self.prime) and self.prime < 1 << 31):
            raise ValueError(f"prime is {self.prime}, must be a prime below 2**31")
        if not 2 <= self.domain <= self.prime:
            raise ValueError(f"domain is {self.domain}, must be in 2..{self.prime} items")
        if not 2 <= self.buckets <= self.prime:
            raise ValueError(f"B is {self.buckets}, must be in 2..{self.prime} buckets")

    @property
    def folded(self) -> bool:
        """Whether residues are folded into fewer buckets."""
        return self.buckets < self.prime

    @property
    def cells(self) -> int:
        return self.buckets

    @property
    def fields(self) -> tuple[Field, ...]:
        slope = Field("slope", self.prime, least=1)
        return (slope, Field("shift", self.prime)) if self.folded else (slope,)

    @property
    def collision(self) -> Fraction:
        """Exact: P = l B + r has r buckets of l+1 residues and B-r of l (enumerated in the tests)."""
        least, larger = divmod(self.prime, self.buckets)
        pairs = larger * (least + 1) * least + (self.buckets - larger) * least * (least - 1)
        return Fraction(pairs, self.prime * (self.prime - 1))

    def tally_shape(self, items: UInt64Array) -> tuple[int, int]:
        return 1, len(items)

    def draw(self, reports: Reports, words: Words) -> None:
        reports["slope"] = uniform(self.prime - 1, len(reports), words) + np.uint64(1)
        if self.folded:
            reports["shift"] = uniform(self.prime, len(reports), words)

    def log_functions(self) -> float:
        return math.log(self.prime - 1) + (math.log(self.prime) if self.folded else 0.0)

    def cell(self, reports: Reports, items: UInt64Array) -> UInt64Array:
        require_items(items, self.domain)
        residues = reports["slope"].astype(np.uint64) * items
        if self.folded:
            residues = (residues + reports["shift"]) % np.uint64(self.prime)
        return residues % np.uint64(self.buckets)

    def accumulate(self, tally: Counts, responder: Responder, reports: Reports, items: UInt64Array) -> None:
        """Walk the items that each report supports, `O(n d / (e+1))`, integers throughout (docs/mathematics.md 4).

        The items of one run are an arithmetic progression: `x = a^-1 (v - b)` with v stepping by 1 through a window,
        or by B through the residues of a bucket.
        """
        # Imported here: clients encode without numba, only servers accumulate.
        from hushcount.kernels.walk import walk

        counts = np.zeros(self.prime, dtype=np.int64)
        prime = np.uint64(self.prime)
        for start in range(0, len(reports), _CHUNK_WALKS):
            chunk = reports[start : start + _CHUNK_WALKS]
            inverse = _inverses(chunk["slope"].astype(np.uint64), self.prime)[:, None]
            firsts = responder.run_starts(chunk)
            if self.folded:
                cells = _run_cells(firsts, responder.run_length, self.buckets)
                lengths = (prime - cells + np.uint64(self.buckets - 1)) // np.uint64(self.buckets)
                shift = chunk["shift"].astype(np.uint64)[:, None]
                begins = inverse * ((cells + prime - shift) % prime) % prime
                steps = inverse * np.uint64(self.buckets) % prime
            else:
                begins = inverse * firsts % prime
                lengths = np.full(firsts.shape, responder.run_length, dtype=np.uint64)
                steps = inverse
            walk(counts, begins.reshape(-1), np.broadcast_to(steps, begins.shape).reshape(-1), lengths.reshape(-1))
        tally[0] += counts[items]

    def support_counts(self, tally: Counts, items: UInt64Array, wanted: UInt64Array) -> Counts:
        if not len(items):
            raise ValueError("the tally was made for no items")
        order = np.argsort(items)
        place = np.searchsorted(items, wanted, sorter=order)
        found = order[np.minimum(place, len(items) - 1)]
        if not np.array_equal(items[found], wanted):
            raise ValueError("wanted holds an item that the tally was not made for")
        return tally[0, found]


def _run_cells(firsts: UInt64Array, run_length: int, buckets: int) -> UInt64Array:
    """Return uint64[n, runs * run_length]: every supported cell."""
    offsets = np.arange(run_length, dtype=np.uint64)
    return ((firsts[:, :, None] + offsets) % np.uint64(buckets)).reshape(len(firsts), -1)


def _inverses(values: UInt64Array, prime: int) -> UInt64Array:
    """Return the inverses modulo the prime, by Fermat: `a^(P-2)`."""
    modulus = np.uint64(prime)
    result = np.ones_like(values)
    power = values % modulus
    exponent = prime - 2
    while exponent:
        if exponent & 1:
            result = result * power % modulus
        power = power * power % modulus
        exponent >>= 1
    return result
