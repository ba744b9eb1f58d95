"""The interface of responders, which turn a cell into the private part of a report, and a base class for s cells."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from hushcount.arrays import BoolArray, Counts, FloatArray, Reports, UInt64Array
from hushcount.maths.group_spreads import Supported, spreads
from hushcount.maths.probability import epsilon_spent, spending_threshold
from hushcount.oracles.decoding import CELL_NS, CountCost
from hushcount.oracles.groups import Groups
from hushcount.randomness import WORD_VALUES, Words
from hushcount.wire.fields import Field

S = TypeVar("S", bound="Sized")


class Responder(Protocol):
    """A local randomiser over `width` cells: a frozen value of public parameters.

    Every report *supports* a set of cells: its own cell with probability p, each other cell with probability q.
    """

    @property
    def width(self) -> int:
        """m, the number of cells."""

    @property
    def p(self) -> float:
        """The probability that a report supports the client's own cell, of the rounded thresholds."""

    @property
    def q(self) -> float:
        """The probability that a report supports a fixed other cell."""

    @property
    def size_variance(self) -> float:
        """The variance of the number of cells that one report supports.

        It is 0 if that number is fixed; otherwise each cell is supported independently.
        """

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields that the responder adds to a report."""

    @property
    def epsilon(self) -> float:
        """The exact local loss of the rounded probabilities, in nats, rounded up to a float."""

    @property
    def log_greatest(self) -> float:
        """The natural logarithm of the greatest probability of a response, over all responses and own cells."""

    @property
    def most_cells(self) -> int:
        """The most cells that a well-formed report supports."""

    def respond(self, reports: Reports, cells: UInt64Array, words: Words) -> None:
        """Fill this responder's fields of `reports` for the clients' true `cells`. The only random method."""

    def log_prob(self, reports: Reports, cells: UInt64Array) -> FloatArray:
        """Return the natural logarithm of the probability of each response, given the client's true cell."""

    def supports(self, reports: Reports, cells: UInt64Array) -> BoolArray:
        """Return bool[n]: whether each report supports the cell of the same row."""

    def count_cells(self, tally: Counts, reports: Reports, rows: npt.NDArray[Any] | None) -> None:
        """Add the cells that each report supports to `tally`, int64[rows, width], in its row of `rows` (None: 0)."""

    def count_cost(self, reports: int) -> CountCost:
        """Return the cost of `count_cells` for this number of reports."""

    def group_spreads(self, groups: Groups, held: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (inside, outside), float64[g] each: the variance of the number of a group's cells that are supported.

        Args:
            groups: of cells; `inside` if the client's own cell is in the group, `outside` if it is not.
            held: float64[width], unbiased estimate of how many clients have each cell. If the variance depends on the
                client's cell, the result is the mean over clients.
        """

    def runs(self, reports: Reports) -> Runs:
        """Return the cells that the reports support as cyclic runs; ValueError if their numbers or lengths vary."""

    def base_law(self, scattered: bool) -> BaseLaw:
        """Return the base law: the part of the law of reports that hides a report among others.

        Every report has probability `base * (e if it supports the client's own cell, else 1)`; the base law is that of
        base. `scattered` is `Encoder.scatters` of the encoder.
        """


@dataclass(frozen=True)
class BaseLaw:
    """The cells that a report from the base law of an extremal responder supports: `privacy.blanket.BlanketLaw`.

    Attributes:
        single: the probability that the report supports a fixed cell.
        apart: a lower bound of the probability that the report supports both of two fixed different cells.
        excess: what must be added to delta if the responder is extremal only up to rounding, else 0.
    """

    single: Fraction
    apart: Fraction
    excess: float = 0.0


@dataclass(frozen=True)
class Sized:
    """A report supports `size` of `width` cells, the client's own among them with probability `keep / 2**64`.

    Args:
        width: m, the number of cells, at least 2.
        size: s, the number of cells that a report supports, 1..m-1.
        keep: threshold out of 2**64 of p; `spending` computes the threshold that spends epsilon.

    Privacy: `ln(p (m-s) / ((1-p) s))` for one report, replace-one, if all reports with the true cell are equally likely
    and all reports without it are equally likely.
    """

    width: int
    size: int
    keep: int
    size_variance: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if self.width < 2:
            raise ValueError(f"width is {self.width}, must be at least 2 cells")
        if not 1 <= self.size < self.width:
            raise ValueError(f"s is {self.size}, must be in 1..{self.width - 1} for {self.width} cells")
        uninformed = self.size / self.width
        if not (uninformed < self.p and self.keep < WORD_VALUES):
            raise ValueError(
                f"p is {self.p:.6g}, must be above {uninformed:.6g} (s/m, at which reports say nothing) and below 1"
            )

    @classmethod
    def spending(cls: type[S], epsilon: float, width: int, size: int = 1) -> S:
        """Return the responder with loss epsilon, rounded toward less."""
        return cls(width, size, spending_threshold(epsilon, width, size))

    @property
    def p(self) -> float:
        return self.keep / WORD_VALUES

    @property
    def q(self) -> float:
        """`(s-p)/(m-1)`, [J] eq. (3): the mean over the other cells, and the q of each if all are treated alike."""
        return (self.size - self.p) / (self.width - 1)

    @property
    def epsilon(self) -> float:
        return epsilon_spent(self.keep, self.width, self.size)

    @property
    def log_greatest(self) -> float:
        """The law of `log_prob`: s reports hold the own cell."""
        return math.log(self.keep / WORD_VALUES / self.size)

    @property
    def most_cells(self) -> int:
        return self.size

    def log_prob(self, reports: Reports, cells: UInt64Array) -> FloatArray:
        """The law if s reports support a cell and `m-s` do not, and the reports of each kind are equally likely."""
        held = math.log(self.keep / WORD_VALUES / self.size)
        absent = math.log((WORD_VALUES - self.keep) / WORD_VALUES / (self.width - self.size))
        return np.where(self.supports(reports, cells), held, absent)

    def supports(self, reports: Reports, cells: UInt64Array) -> BoolArray:
        return self.runs(reports).support(cells)

    def count_cells(self, tally: Counts, reports: Reports, rows: npt.NDArray[Any] | None) -> None:
        self.runs(reports).count(tally, rows)

    def count_cost(self, reports: int) -> CountCost:
        cells = reports * (self.p + (self.width - 1) * self.q)
        return CountCost(cells, cells * CELL_NS)

    def group_spreads(self, groups: Groups, held: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Exact if all sets of s cells with the client's cell are equally likely, and all sets without it too."""
        ways = (Supported(self.p, True, self.size - 1.0), Supported(1.0 - self.p, False, float(self.size)))
        return spreads(groups.sizes, ways, self.width - 1.0)

    @abstractmethod
    def runs(self, reports: Reports) -> Runs: ...

    def base_law(self, scattered: bool) -> BaseLaw:
        """Return the law of s of m cells if all sets of s cells are equally likely."""
        m, s = self.width, self.size
        return BaseLaw(Fraction(s, m), Fraction(s * (s - 1), m * (m - 1)))


_CHUNK_CELLS = 1 << 20


@dataclass(frozen=True, eq=False)
class Runs:
    """Cyclic runs of `length` of `width` cells; `starts`, uint64[n, runs of a report], are their first cells."""

    starts: UInt64Array
    length: int
    width: int

    def support(self, cells: UInt64Array) -> BoolArray:
        """Return bool[n]: whether each report supports the cell of the same row."""
        width = np.uint64(self.width)
        offsets = (cells[:, None] + width - self.starts) % width
        result: BoolArray = (offsets < np.uint64(self.length)).any(axis=1)
        return result

    def count(self, tally: Counts, rows: npt.NDArray[Any] | None) -> None:
        """Add every cell to `tally`, int64[rows, width], in the report's row (or 0), at one cost for any length."""
        starts = self.starts.view(np.int64)
        if self.length == 1:
            _add(tally, starts, rows, 1)
            return
        ends = starts + self.length
        steps = np.zeros((len(tally), self.width + 1), dtype=np.int64)
        _add(steps, starts, rows, 1)
        _add(steps, np.minimum(ends, self.width), rows, -1)
        # A run that passes the last cell continues at cell 0. For a run that does not pass the last cell, the +1 and
        # the -1 at cell 0 cancel.
        _add(steps, np.zeros_like(starts), rows, 1)
        _add(steps, np.maximum(ends - self.width, 0), rows, -1)
        tally += np.cumsum(steps[:, : self.width], axis=1)


def _add(tally: Counts, cells: npt.NDArray[np.int64], rows: npt.NDArray[Any] | None, number: int) -> None:
    """Add `number` to `tally[row, cell]` for every cell of every report; `cells` is [n, cells of a report]."""
    step = max(1, _CHUNK_CELLS // max(1, cells.shape[1]))
    for start in range(0, len(cells), step):
        places = cells[start : start + step]
        if rows is not None:
            places = places + rows[start : start + step].astype(np.int64)[:, None] * tally.shape[1]
        np.add.at(tally.reshape(-1), places.reshape(-1), number)
