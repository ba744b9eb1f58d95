"""Affine: a fresh function of a prime field for each report, used directly or folded into buckets."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hushcount.arrays import Counts, FloatArray, Reports, UInt64Array
from hushcount.kernels.progressions import Progressions
from hushcount.maths import field61
from hushcount.maths.group_spreads import Supported, of_groups, spreads
from hushcount.maths.primes import is_prime
from hushcount.maths.variance import SupportLaw
from hushcount.oracles import decoding
from hushcount.oracles.encoders.base import Grouped, TotalLaw, Universal, require_items
from hushcount.oracles.responders.base import Responder, Runs
from hushcount.wire.fields import Number, report_dtype


@dataclass(frozen=True)
class Affine(Universal):
    """`h(x) = (a x + b) mod P mod B`, a fresh `a` in 1..(P-1)/2 (and `b` in 0..P-1) for each report.

    `a = 0` is excluded, so that two items never share a residue: up to sign, the family is sharply 2-transitive. Slopes
    above P/2 would add nothing: `y -> P-1-y` maps the residues under a to the residues under -a, windows to windows,
    and buckets to buckets. So half of the slopes give every supported set the same probability as all slopes (the tests
    verify it by enumeration), and a report is one bit shorter. Without folding (B = P) no `b` is drawn, because the
    responder's answer is uniform over the circle of cells and absorbs any shift.

    Args:
        domain: d, the number of items, 2..P; None for an open domain of 61-bit fingerprints.
        prime: P, below 2**31; 2**61-1 for an open domain.
        buckets: B, 2..P; P leaves the residues unfolded.

    Reference: [P26] section 5.2 ([P25] section 3.6 allows `a = 0`); docs/mathematics.md sections 3, 4 and 5.
    """

    domain: int | None
    prime: int
    buckets: int
    by_item = True
    groups_differ = True

    def __post_init__(self) -> None:
        if self.domain is None:
            if self.prime != field61.PRIME:
                raise ValueError(f"prime is {self.prime}, must be 2**61-1 for an open domain")
        elif not (is_prime(self.prime) and self.prime < 1 << 31):
            raise ValueError(f"prime is {self.prime}, must be a prime below 2**31")
        elif not 2 <= self.domain <= self.prime:
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
    def slopes(self) -> int:
        """The number of slopes to draw from: half of all, because -a has the same effect as a."""
        return max(1, (self.prime - 1) // 2)

    @property
    def fields(self) -> tuple[Number, ...]:
        slope = Number("slope", self.slopes + 1, least=1)
        return (slope, Number("shift", self.prime)) if self.folded else (slope,)

    @property
    def collision(self) -> Fraction:
        """Exact: if P = l B + r, r buckets have l+1 residues and B-r have l; the tests verify it by enumeration."""
        least, larger = divmod(self.prime, self.buckets)
        pairs = larger * (least + 1) * least + (self.buckets - larger) * least * (least - 1)
        return Fraction(pairs, self.prime * (self.prime - 1))

    @property
    def scatters(self) -> bool:
        return not self.folded

    def tally_shape(self, items: UInt64Array) -> tuple[int, int]:
        return 1, len(items)

    def cell(self, reports: Reports, items: UInt64Array) -> UInt64Array:
        require_items(items, self.domain or self.prime)
        slopes, prime = reports["slope"].astype(np.uint64), np.uint64(self.prime)
        residues = field61.multiply(slopes, items) if self.domain is None else slopes * items % prime
        if self.folded:
            residues = (residues + reports["shift"]) % prime
        return residues % np.uint64(self.buckets)

    def accumulate(self, tally: Counts, responder: Responder, reports: Reports, items: UInt64Array) -> None:
        """Count by the cheapest of three exact methods, in integers (docs/mathematics.md section 4).

        All three read a report as arithmetic progressions.
        """
        require_items(items, self.domain or self.prime)
        step = max(1, decoding.AT_ONCE // self._progressions_each(_no_runs(responder)))
        for start in range(0, len(reports), step):
            part = reports[start : start + step]
            decoding.decode(tally[0], self.progressions(responder.runs(part), part), items)

    def _progressions_each(self, runs: Runs) -> int:
        """Return the number of progressions of one report."""
        return runs.starts.shape[1] * (runs.length if self.folded else 1)

    def progressions(self, runs: Runs, reports: Reports) -> Progressions:
        """Return the reports as progressions, the form that decoding reads.

        A window of the unfolded circle is one progression of stride 1. Each cell of a folded circle is a progression of
        stride B: the residues `z, z + B, ...` below P, moved back by the shift.
        """
        slopes, firsts = reports["slope"].astype(np.uint64), runs.starts
        if not self.folded:
            lengths = np.full(firsts.size, runs.length, dtype=np.uint64)
            return Progressions(self.prime, 1, np.repeat(slopes, firsts.shape[1]), firsts.reshape(-1), lengths)
        prime, buckets = np.uint64(self.prime), np.uint64(self.buckets)
        offsets = np.arange(runs.length, dtype=np.uint64)
        cells = ((firsts[:, :, None] + offsets) % buckets).reshape(len(reports), -1)
        begins = (cells + prime - reports["shift"].astype(np.uint64)[:, None]) % prime
        lengths = (prime - cells + buckets - np.uint64(1)) // buckets
        spread = np.repeat(slopes, cells.shape[1])
        return Progressions(self.prime, self.buckets, spread, begins.reshape(-1), lengths.reshape(-1))

    def _load(self, runs: Runs, reports: int, items: int) -> decoding.DecodeLoad:
        """Return the amount to decode for this number of reports, each with runs like `runs`."""
        length, stride = (self.prime / self.buckets, self.buckets) if self.folded else (float(runs.length), 1)
        return decoding.DecodeLoad(reports * self._progressions_each(runs), self.prime, length, items, stride)

    def group_law(self, asked: Grouped) -> SupportLaw:
        """The law is exact on average over groups of one size, as if the dictionary were in random order."""
        return of_groups(asked.scored.law, asked.groups.sizes, *self._group_spreads(asked))

    def _group_spreads(self, asked: Grouped) -> tuple[FloatArray, FloatArray]:
        """Items other than the client's own have a random set of the other `P - 1` residues.

        A report supports s residues, or the residues of one bucket; some buckets have one residue more.
        """
        responder, sizes = asked.scored.responder, asked.groups.sizes
        if not self.folded:
            return responder.group_spreads(asked.groups, np.zeros(self.prime if self.domain else 0))
        p, (least, larger) = responder.p, divmod(self.prime, self.buckets)
        # The client's bucket has least + 1 residues with probability `own`, a random other one with `other`.
        own = larger * (least + 1) / self.prime
        other = (larger - own) / (self.buckets - 1)
        ways = (
            Supported(p * own, True, float(least)),
            Supported(p * (1.0 - own), True, least - 1.0),
            Supported((1.0 - p) * other, False, least + 1.0),
            Supported((1.0 - p) * (1.0 - other), False, float(least)),
        )
        return spreads(sizes, ways, self.prime - 1.0)

    def reach(self, cells: int) -> Fraction:
        """Slope 1, or slope B if folded, puts consecutive items into one window or one bucket: the bound is reached.

        With several buckets of a folded circle it is an upper bound.
        """
        most = self._most(cells)
        return Fraction(most, self.prime) if self.domain is None else Fraction(min(most, self.domain), self.domain)

    def _most(self, cells: int) -> int:
        """Return the most residues in this number of cells."""
        least, larger = divmod(self.prime, self.buckets)
        return cells * least + min(cells, larger)

    def totals(self, responder: Responder, items: UInt64Array) -> TotalLaw:
        """The law of the number of the tally's items that a report supports.

        A report is at most `r = p / single` times as likely as under the base law, which has no item, so its variance
        is at most r times that of the base law. The latter follows from pairs of items, because they are all alike. A
        client may hold an item without a column.
        """
        number, law = len(items), self.law(responder.p, responder.q)
        base = responder.base_law(self.scatters)
        together = self.collision * base.single + (1 - self.collision) * base.apart
        spread = number * base.single + number * (number - 1) * together - (number * base.single) ** 2
        low = number * float(law.other)
        high = low + float(law.gain) if number else 0.0
        variance = max(float(spread), 0.0) * responder.p / float(base.single)
        most = float(min(self._most(responder.most_cells), number))
        return TotalLaw(high if number == self.domain else low, high, variance, most, most)

    def decode_cost(self, responder: Responder, reports: int, items: int) -> decoding.DecodeCost:
        """Return the cost of the method that `accumulate` chooses for all reports in one call."""
        runs = _no_runs(responder)
        each = self._progressions_each(runs)
        at_once = min(reports, max(1, decoding.AT_ONCE // each))
        cost = decoding.cheapest(self._load(runs, at_once, items))
        calls = reports / max(1, at_once)
        return decoding.DecodeCost(cost.way, calls * cost.operations, calls * cost.seconds)

    def scores(self, tally: Counts, items: UInt64Array, wanted: UInt64Array) -> Counts:
        if not len(items):
            raise ValueError("the tally was made for no items")
        order = np.argsort(items)
        place = np.searchsorted(items, wanted, sorter=order)
        found = order[np.minimum(place, len(items) - 1)]
        if not np.array_equal(items[found], wanted):
            raise ValueError("wanted holds an item that the tally was not made for")
        return tally[0, found]


def _no_runs(responder: Responder) -> Runs:
    """Return the runs of an empty array of reports: its shape shows the number and the length of a report's runs."""
    return responder.runs(np.zeros(0, dtype=report_dtype(responder.fields)))
