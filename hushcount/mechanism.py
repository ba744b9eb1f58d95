"""The mechanism: an encoder and a responder behind the one interface that client, analyzer and planner call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount import fields as wire
from hushcount.encoders.base import Counts, Encoder
from hushcount.estimates import Estimate, FloatArray
from hushcount.fields import Field, Reports
from hushcount.randomness import WORD_VALUES, UInt64Array, Words
from hushcount.responders.base import Responder
from hushcount.tally import Tally
from hushcount.variance import Numbers, SupportLaw


@dataclass(frozen=True)
class Mechanism:
    """A frequency oracle: public parameters only, equal by value, small when pickled.

    `p*` and `q*` are the probabilities that a report supports its own and another item. For each of them
    `share = (C/n - q*) / (p* - q*)` is unbiased, C the number of reports that support the item: one estimator for the
    whole grid ([J] eq. (4) is this with `q* = p/m + q(1 - 1/m)`).

    Args:
        encoder: in which cell an item falls.
        responder: how the cell becomes a report; over as many cells as the encoder has.

    Privacy: `epsilon`, local, for one report, replace-one.
    """

    encoder: Encoder
    responder: Responder

    def __post_init__(self) -> None:
        if self.encoder.cells != self.responder.width:
            raise ValueError(f"encoder has {self.encoder.cells} cells, responder {self.responder.width}: must be equal")

    @property
    def epsilon(self) -> float:
        """The exact local loss of one report, of the rounded probabilities, in nats."""
        return self.responder.epsilon

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.encoder.fields, *self.responder.fields)

    @property
    def report(self) -> np.dtype[Any]:
        """The numpy dtype of one report in memory."""
        return wire.report_dtype(self.fields)

    @property
    def report_bytes(self) -> int:
        """The length of every report on the wire, before sealing."""
        return sum(field.wire_bytes for field in self.fields)

    @property
    def p(self) -> float:
        """The probability that a report supports its own cell."""
        return self.responder.keep / WORD_VALUES

    @property
    def q(self) -> float:
        """The probability that a report supports another given cell: `(s-p)/(m-1)`, [J] eq. (3)."""
        return (self.responder.support_size - self.p) / (self.responder.width - 1)

    @property
    def law(self) -> SupportLaw:
        """The probabilities that estimates and variances follow from."""
        pool = self.encoder.pool
        return SupportLaw(self.p, self.q, float(self.encoder.collision), np.inf if pool is None else pool)

    @property
    def p_star(self) -> float:
        """The probability that a report supports its own item."""
        return self.p

    @property
    def q_star(self) -> float:
        """The probability that a report supports another given item, over the function drawn as well."""
        return float(self.law.q_star)

    def encode(self, items: UInt64Array, words: Words) -> Reports:
        """Privatise one item for each client.

        Args:
            items: uint64[n], in 0..domain-1, or fingerprints where the domain is open.
            words: the source of randomness, cryptographic on every path that leaves the client.

        Returns:
            report[n], independent of each other.
        """
        reports = np.zeros(len(items), dtype=self.report)
        self.encoder.draw(reports, words)
        self.responder.respond(reports, self.encoder.cell(reports, items), words)
        return reports

    def log_prob(self, reports: Reports, item: int) -> FloatArray:
        """Return float64[n]: the exact logarithm of the probability of each well-formed report, given the item."""
        items = np.full(len(reports), item, dtype=np.uint64)
        cells = self.encoder.cell(reports, items)
        return self.responder.log_prob(reports, cells) - self.encoder.log_functions()

    def pack(self, reports: Reports) -> npt.NDArray[np.uint8]:
        """Return uint8[n, report_bytes], the wire form."""
        return wire.pack(self.fields, reports)

    def unpack(self, octets: npt.NDArray[np.uint8]) -> tuple[Reports, npt.NDArray[np.bool_]]:
        """Return the reports and bool[n], which of them are well formed; see `fields.unpack`."""
        return wire.unpack(self.fields, octets)

    def new_tally(self, items: UInt64Array) -> Counts:
        """Return the zero tally, int64[rows, width], that serves these items."""
        return np.zeros(self.encoder.tally_shape(items), dtype=np.int64)

    def accumulate(self, tally: Counts, reports: Reports, items: UInt64Array) -> None:
        """Add well-formed reports to `tally` in place; integers only, so any sharding gives the identical tally."""
        self.encoder.accumulate(tally, self.responder, reports, items)

    def estimate(self, tally: Tally, items: UInt64Array) -> Estimate:
        """Estimate how many of the tally's reports hold each item.

        Args:
            tally: of at least one report.
            items: uint64[c].

        Raises:
            ValueError: the tally is empty, or an item is outside what it was made for.
        """
        n = tally.reports
        if n < 1:
            raise ValueError(f"reports is {n}, must be at least 1 to estimate anything")
        support = self.encoder.support_counts(tally.counts, tally.items, items)
        count = np.asarray((support - n * self.q_star) / (self.p_star - self.q_star), dtype=np.float64)
        held = np.clip(count, 0.0, n)
        noise = np.sqrt(self.variance(n, held / n))
        if self.encoder.pool is None:
            return Estimate(count, noise, np.zeros(len(items)))
        # Others hold at least one report each, so their squares add up to no less than their number.
        others = np.maximum(self.sum_of_squares(tally) - held**2, n - held)
        return Estimate(count, noise, np.sqrt(self.collision_variance(others)))

    def variance(self, n: int, share: Numbers) -> FloatArray:
        """Return the variance of an estimated count by randomisation, in users squared, exact: `SupportLaw.noise`.

        Collisions in a pool are no noise and not part of it, see `collision_variance`.
        """
        return self.law.noise(n, share)

    def collision_variance(self, others_squared: Numbers) -> FloatArray:
        """Return the mean square error by collisions in a fixed pool, in users squared.

        Args:
            others_squared: the sum of the squared counts of all other items.

        Reference: docs/mathematics.md section 5, last term of Var[C].
        """
        law = self.law
        return np.asarray(law.collision_unit * others_squared / law.gain**2, dtype=np.float64)

    def sum_of_squares(self, tally: Tally) -> float:
        """Estimate the sum over all items of their squared counts from a pool's tally alone, no dictionary needed.

        In row j, `sum_c (M_jc - q n_j)^2` has mean `n_j v + (p-q)^2 sum_c N_jc^2`, v the variance of one report over
        the cells and N_jc the clients of the row whose own cell is c; over rows and functions the N_jc^2 add up to
        `n(1 - 1/k) + S/k + (n^2 - S)/(mk)`. Solved for S. Derived here; simulated in the tests.

        Raises:
            ValueError: the encoder is not a pool.
        """
        k, m = self.encoder.pool, self.responder.width
        if k is None:
            raise ValueError("sum_of_squares needs a pool encoder; the others have no collision error")
        n, p, q = tally.reports, self.p, self.q
        in_row = tally.counts.sum(axis=1, keepdims=True) / self.responder.support_size
        spread = float(((tally.counts - q * in_row) ** 2).sum())
        squares = (spread - n * (p * (1.0 - p) + (m - 1) * q * (1.0 - q))) / (p - q) ** 2
        return (squares - n * (1.0 - 1.0 / k) - n * n / (m * k)) * k / (1.0 - 1.0 / m)
