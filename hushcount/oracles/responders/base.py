"""What a responder is: how a cell becomes the private part of a report."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy.typing as npt

from hushcount.arrays import BoolArray, Counts, FloatArray, Reports, UInt64Array
from hushcount.oracles.costs import CountCost
from hushcount.oracles.responders.runs import Runs
from hushcount.randomness import WORD_VALUES, Words
from hushcount.wire.fields import Field


class Responder(Protocol):
    """A local randomiser over `width` cells: a frozen value of public parameters.

    Every report *supports* a set of cells: its own with probability p, each other given one with probability q.

    Attributes:
        width: m, the number of cells.
    """

    @property
    def width(self) -> int: ...
    @property
    def p(self) -> float:
        """The probability that a report supports the client's own cell, of the rounded thresholds."""
        ...

    @property
    def q(self) -> float:
        """The probability that a report supports another given cell."""
        ...

    @property
    def size_variance(self) -> float:
        """The variance of the number of cells that one report supports; 0 where it is always the same."""
        ...

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields it adds to a report."""
        ...

    @property
    def epsilon(self) -> float:
        """The exact local loss of the rounded probabilities, in nats, rounded up to a float."""
        ...

    def respond(self, reports: Reports, cells: UInt64Array, words: Words) -> None:
        """Fill this responder's fields of `reports` for the clients' true `cells`. The only random method."""
        ...

    def log_prob(self, reports: Reports, cells: UInt64Array) -> FloatArray:
        """Return the natural logarithm of the probability of each response, given the true cell of each."""
        ...

    def supports(self, reports: Reports, cells: UInt64Array) -> BoolArray:
        """Return bool[n]: whether each report supports the cell of the same row."""
        ...

    def count_cells(self, tally: Counts, reports: Reports, rows: npt.NDArray[Any] | None) -> None:
        """Add every cell that each report supports to `tally`, int64[rows, width], in the report's row (None: 0)."""
        ...

    def count_cost(self, reports: int) -> CountCost:
        """Return what `count_cells` takes for so many reports."""
        ...

    def runs(self, reports: Reports) -> Runs | None:
        """Return the cells that the reports support as cyclic runs, or None where their numbers or lengths vary."""
        ...

    def base_law(self, scattered: bool) -> BaseLaw | None:
        """Return the law of what hides a report, or None where the responder is not extremal.

        Args:
            scattered: whether the encoder puts two items that share no cell on any two cells alike.
        """
        ...


@dataclass(frozen=True)
class BaseLaw:
    """What a report supports that is drawn from the base law of an extremal responder: `privacy.blanket.BlanketLaw`.

    Attributes:
        single: the probability that it supports a given cell.
        apart: that it supports two given different cells, no more than for any two.
        excess: what is added to delta where the responder is extremal only up to rounding.
    """

    single: Fraction
    apart: Fraction
    excess: float = 0.0


def choice_law(width: int, size: int) -> BaseLaw:
    """Return the base law of reports that support `size` of `width` cells, any as likely."""
    return BaseLaw(Fraction(size, width), Fraction(size * (size - 1), width * (width - 1)))


def check_choice(width: int, size: int, keep: int) -> None:
    """Raise ValueError unless width, support size and keep threshold make a local randomiser with `p > q`."""
    if width < 2:
        raise ValueError(f"width is {width}, must be at least 2 cells")
    if not 1 <= size < width:
        raise ValueError(f"s is {size}, must be in 1..{width - 1} for {width} cells")
    p, uninformed = keep / WORD_VALUES, size / width
    if not (uninformed < p and keep < WORD_VALUES):
        raise ValueError(f"p is {p:.6g}, must be above {uninformed:.6g} (s/m, where a report says nothing) and below 1")
