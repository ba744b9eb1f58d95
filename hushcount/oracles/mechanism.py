"""The mechanism: an encoder and a responder behind one interface for client, analyzer and planner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import BoolArray, Counts, FloatArray, Reports, UInt64Array
from hushcount.maths.variance import Numbers, SupportLaw
from hushcount.oracles.decoding import DecodeCost
from hushcount.oracles.encoders.base import Encoder, Grouped, Scored
from hushcount.oracles.estimates import Estimate
from hushcount.oracles.group_estimates import sums
from hushcount.oracles.groups import Groups
from hushcount.oracles.responders.base import Responder
from hushcount.oracles.tally import MOST_CELLS, Tally
from hushcount.randomness import Words
from hushcount.wire import fields as wire
from hushcount.wire.fields import Field


@dataclass(frozen=True)
class Mechanism:
    """A frequency oracle: public parameters only, equal by value, small when pickled.

    A report adds a score to every item, with mean `p*` for the item that its client holds and `q*` for any other item.
    So `count = (C - n q*) / (p* - q*)` is unbiased, where C is the sum of an item's scores. All mechanisms share this
    estimator; with `q* = p/m + q(1 - 1/m)` it is equation 4 of [J]. A report's score is 1 for an item that it supports,
    else 0; with blocks of items, -1 for an item that it opposes.

    Args:
        encoder: puts an item into a cell.
        responder: turns the cell into a report; it has as many cells as the encoder.

    Privacy: `epsilon`, local, for one report, replace-one.
    """

    encoder: Encoder
    responder: Responder

    def __post_init__(self) -> None:
        if self.encoder.cells != self.responder.width:
            raise ValueError(f"encoder has {self.encoder.cells} cells, responder {self.responder.width}: must be equal")
        # A tally of several rows has its full size before the first report is added.
        rows, width = self.encoder.tally_shape(np.empty(0, dtype=np.uint64))
        if rows > 1 and rows * width > MOST_CELLS:
            raise ValueError(
                f"the tally has {rows:,} rows of {width:,} cells, {8 * rows * width / 2**30:,.1f} GiB, must be at "
                f"most {8 * MOST_CELLS >> 30} GiB: take a smaller k or m"
            )

    @property
    def epsilon(self) -> float:
        """The exact local loss of one report, computed from the rounded probabilities, in nats."""
        return self.responder.epsilon

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.encoder.fields, *self.responder.fields)

    @property
    def report(self) -> np.dtype[Any]:
        """The numpy dtype of one report in memory."""
        return wire.report_dtype(self.fields)

    @property
    def report_bits(self) -> float:
        """The binary logarithm of the number of different reports."""
        return wire.report_bits(self.fields)

    @property
    def report_bytes(self) -> int:
        """The length of every report on the wire, before sealing."""
        return wire.report_bytes(self.fields)

    @property
    def law(self) -> SupportLaw:
        """The law of one report's scores; estimates and variances follow from it."""
        return self.encoder.law(self.responder.p, self.responder.q)

    @property
    def p_star(self) -> float:
        """The mean score that a report adds to its own item; without blocks, the probability of a support."""
        return float(self.law.own)

    @property
    def q_star(self) -> float:
        """The mean score that a report adds to an item that its client does not hold, over all functions."""
        return float(self.law.other)

    def encode(self, items: UInt64Array, words: Words) -> Reports:
        """Privatise one item for each client; return report[n], independent of each other.

        Args:
            items: uint64[n], in 0..domain-1, or fingerprints if the domain is open.
            words: the source of randomness, cryptographic on every path that leaves the client.
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

    @property
    def log_greatest(self) -> float:
        """The natural logarithm of the greatest probability of a report, over all reports and items."""
        return self.responder.log_greatest - self.encoder.log_functions()

    def supports(self, reports: Reports, items: UInt64Array) -> BoolArray:
        """Return bool[n]: whether each report supports the item of the same row."""
        return self.responder.supports(reports, self.encoder.cell(reports, items))

    def pack(self, reports: Reports) -> npt.NDArray[np.uint8]:
        """Return uint8[n, report_bytes], the wire form."""
        return wire.pack(self.fields, reports)

    def unpack(self, octets: npt.NDArray[np.uint8]) -> tuple[Reports, BoolArray]:
        """Return the reports and bool[n]: whether each is well formed; see `fields.unpack`."""
        return wire.unpack(self.fields, octets)

    def new_tally(self, items: UInt64Array) -> Counts:
        """Return the zero tally, int64[rows, width], that serves these items."""
        return np.zeros(self.encoder.tally_shape(items), dtype=np.int64)

    def accumulate(self, tally: Counts, reports: Reports, items: UInt64Array) -> None:
        """Add well-formed reports to `tally` in place; integers only, so any sharding gives the identical tally."""
        self.encoder.accumulate(tally, self.responder, reports, items)

    def counts(self, tally: Tally, items: UInt64Array) -> FloatArray:
        """Return float64[c]: the counts of `estimate` without the errors."""
        return self._scored(tally, items).count

    def estimate(self, tally: Tally, items: UInt64Array) -> Estimate:
        """Estimate how many of the tally's reports hold each item.

        Args:
            tally: of at least one report.
            items: uint64[c].

        Raises:
            ValueError: the tally is empty, or was not made for an item.
        """
        return self.encoder.estimate(self._scored(tally, items))

    def sums(self, tally: Tally, groups: Sequence[UInt64Array], everything: UInt64Array | None = None) -> Estimate:
        """Estimate how many of the tally's reports hold an item of each group: one row for each group.

        The error of a sum is not computed from the errors of items, because scores of one report depend on each other
        (`hushcount.oracles.group_estimates`). The row of a group with one item equals the row of `estimate`.

        Args:
            tally: of at least one report.
            groups: uint64[size] each, distinct items, at least one.
            everything: uint64[d], all items that clients can hold, if known. If `everything` is given, the items
                outside a group are counted if they are fewer than the items of the group. None stands for 0..d-1 if the
                encoder has a domain.

        Raises:
            ValueError: in the cases of `estimate`; or a group is empty or has an item twice.
        """
        if everything is None and self.encoder.domain is not None:
            everything = np.arange(self.encoder.domain, dtype=np.uint64)
        return sums(self.encoder, partial(self._scored, tally), groups, everything)

    def group_law(self, tally: Tally, groups: Sequence[UInt64Array]) -> SupportLaw:
        """Return the law of the sum of one report's scores over each group, every field float64[g].

        Groups, and ValueError, as in `sums`; no items outside a group are counted in its place.
        """
        asked = Groups.of(groups)
        return self.encoder.group_law(Grouped.of(self._scored(tally, asked.items), asked))

    def _scored(self, tally: Tally, items: UInt64Array) -> Scored:
        if tally.reports < 1:
            raise ValueError(f"reports is {tally.reports}, must be at least 1 to estimate anything")
        law, scores = self.law, self.encoder.scores(tally.counts, tally.items, items)
        count = np.asarray((scores - tally.reports * float(law.other)) / float(law.gain), dtype=np.float64)
        if (noise := self.encoder.noise) is not None:
            count -= noise.times(tally.batches).mean
        return Scored(self.responder, law, tally, items, scores, count)

    def decode_cost(self, reports: int, items: int) -> DecodeCost:
        """Return the cost to tally and to estimate, for these numbers of reports and items."""
        return self.encoder.decode_cost(self.responder, reports, items)

    def variance(self, n: int, share: Numbers, near: Numbers | None = None) -> FloatArray:
        """Return the exact variance of an estimated count that noise causes, of clients or of mixes, in users squared.

        See `SupportLaw.noise`. Collisions in a pool are left out: see `collision_variance`. With blocks of items the
        variance depends on `near`, the share of users that hold another item of the block; None stands for the worst
        case, in which all users of other items hold items of the block.
        """
        own = self.law.noise(n, share, near)
        return own if self.encoder.noise is None else own + self.encoder.noise.variance

    def collision_variance(self, others_squared: Numbers) -> FloatArray:
        """Return the mean square error from collisions in a fixed pool, in users squared.

        `others_squared` is the sum of the squared counts of all other items. Reference: docs/mathematics.md section 5,
        last term of Var[C].
        """
        return np.asarray(np.multiply(self.law.clash, others_squared), dtype=np.float64)
