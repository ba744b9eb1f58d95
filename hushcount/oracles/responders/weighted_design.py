"""Weighted design: a row of a balanced design; the report is the row's number."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import Counts, FloatArray, IntArray, Reports, UInt64Array
from hushcount.designs.balanced import Design
from hushcount.designs.sources import load_design
from hushcount.maths.probability import epsilon_spent, spending_threshold
from hushcount.oracles.groups import Groups
from hushcount.oracles.responders.base import BaseLaw, Runs, Sized
from hushcount.randomness import WORD_VALUES, Words, below, uniform
from hushcount.wire.fields import Field, Number

_CHUNK_CELLS = 1 << 22


@dataclass(frozen=True)
class WeightedDesign(Sized):
    """With probability `keep / 2**64` a row of the design with the true cell, else a row without the true cell.

    Rows are drawn by weight: a row of weight w has probability `p w / R_x` if it has cell x, else
    `(1-p) w / (T - R_x)`. T is the weight of all rows, R_x the weight of the rows with cell x. Weights are integers, so
    the draws are exact.

    Args:
        digest: of a design that `designs.load_design` knows; width and size must be those of the design.

    Privacy: the logarithm of the greatest ratio of these probabilities over all rows and cells, replace-one. The ratio
    is `odds p / (1-p)` unless the design is badly balanced; with `odds = (m-s)/s` it equals the ratio of subset
    selection.

    Precision: `q` is the same for every pair of cells if the design is exactly balanced. An imbalance of i (at most
    1e-9; about 1e-13 after a search) changes the probability that a report supports another cell by at most `5 i p`,
    and a count of n reports by at most `5 i n p / (p-q)`.

    Reference: [P26] sections 2.4, the law, and 5.3; Theorem 4.1 gives the communication cost.
    """

    digest: str

    def __post_init__(self) -> None:
        super().__post_init__()
        self._design  # noqa: B018  # a missing design fails here, not in a worker

    @classmethod
    def of_design(cls, epsilon: float, design: Design) -> WeightedDesign:
        """Return the responder with loss epsilon, rounded toward less."""
        odds = design.odds
        keep = spending_threshold(epsilon, odds.numerator + odds.denominator, odds.denominator)
        return cls(design.width, design.size, keep, design.digest)

    @property
    def fields(self) -> tuple[Field, ...]:
        return (Number("block", self._design.rows),)

    @property
    def epsilon(self) -> float:
        worst = _worst_ratio(self._design, Fraction(self.keep, WORD_VALUES - self.keep))
        # The threshold of half of all words has odds 1, so `epsilon_spent` returns the logarithm of the ratio alone.
        return epsilon_spent(WORD_VALUES // 2, worst.numerator + worst.denominator, worst.denominator)

    @property
    def log_greatest(self) -> float:
        """A row of a block, given its cell in the fewest rows by weight."""
        design = self._design
        rarest = np.array(design.cell_weights, dtype=np.float64)[design.cells].min(axis=1)
        return math.log(self.keep / WORD_VALUES * float((np.array(design.weights) / rarest).max()))

    def respond(self, reports: Reports, cells: UInt64Array, words: Words) -> None:
        turns, draws = self._design.turns, _draws(self._name)
        own = cells.astype(np.int64)
        kept = below(self.keep, len(own), words)
        # If the rows with cell 0 are turned by the number of a moving cell, the result is the rows with this moving
        # cell.
        table = np.maximum(own - turns + 1, 0)
        drawn = np.empty(len(own), dtype=np.int64)
        for number in np.unique(table):
            chosen = np.flatnonzero(table == number)
            held, missing = (_rows_by_weight(rows, steps, len(chosen), words) for rows, steps in draws[number])
            drawn[chosen] = np.where(kept[chosen], held, missing)
        block, turn = np.divmod(drawn, turns)
        reports["block"] = block * turns + (turn + np.where(own < turns, own, 0)) % turns

    def log_prob(self, reports: Reports, cells: UInt64Array) -> FloatArray:
        design = self._design
        holding = np.array(design.cell_weights, dtype=np.float64)[cells.astype(np.intp)]
        weight = np.array(design.weights, dtype=np.float64)[reports["block"] // design.turns]
        held = math.log(self.keep / WORD_VALUES) - np.log(holding)
        absent = math.log((WORD_VALUES - self.keep) / WORD_VALUES) - np.log(design.total - holding)
        return np.asarray(np.log(weight) + np.where(self.supports(reports, cells), held, absent), dtype=np.float64)

    def count_cells(self, tally: Counts, reports: Reports, rows: npt.NDArray[Any] | None) -> None:
        # Equal reports are counted first, then their cells, because there are often fewer rows than reports.
        number = self._design.rows
        named = reports["block"].astype(np.int64)
        places, counts = np.unique(named if rows is None else rows * number + named, return_counts=True)
        step = _CHUNK_CELLS // self.size
        for start in range(0, len(places), step):
            line, row = np.divmod(places[start : start + step], number)
            np.add.at(tally, (line[:, None], self._cells(row)), counts[start : start + step, None])

    def group_spreads(self, groups: Groups, held: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The variance is exact for every cell of a client; the result is the mean of this variance over clients.

        A row has T cells of a group; `log_prob` gives the row's probability for a client's cell. Some sets of three
        cells are in more rows than others, so the variance depends on the group and on the client's cell.
        """
        p, sizes = self.p, groups.sizes
        weights = np.array(self._design.cell_weights, dtype=np.float64)
        total = float(self._design.total)
        inside, outside = np.empty(len(groups)), np.empty(len(groups))
        for number, cells in enumerate(groups.each()):
            member = np.zeros(self.width, dtype=np.bool_)
            member[cells.astype(np.intp)] = True
            holding, everywhere = _squares(self._name, member)
            square = p * holding / weights + (1.0 - p) * (everywhere - holding) / (total - weights)
            spread = square - (sizes[number] * self.q + (self.p - self.q) * member) ** 2
            inside[number], outside[number] = _mean(spread[member], held[member]), _mean(spread[~member], held[~member])
        return inside, outside

    def runs(self, reports: Reports) -> Runs:
        return Runs(self._cells(reports["block"].astype(np.int64)).astype(np.uint64), 1, self.width)

    def base_law(self, scattered: bool) -> BaseLaw:
        """An imbalance i of the design adds at most `32 i (1 + e) m / (m - s)` to delta.

        `E[(sum W)_+] / n` differs by at most the mean of |W - W'|, where W' is the W of a perfectly balanced design.
        The mean is at most 16 i E from the probabilities of W plus 8 i (1 + E) from the values of W, both divided by
        `1 - s/m`.
        """
        excess = 32.0 * self._design.imbalance * (1.0 + math.exp(self.epsilon)) * self.width
        return replace(super().base_law(scattered), excess=excess / (self.width - self.size))

    def _cells(self, rows: IntArray) -> IntArray:
        """Return int64[n, s]: the cells of each row."""
        turns = self._design.turns
        block, turn = np.divmod(rows, turns)
        cells = self._design.cells[block]
        return np.where(cells < turns, (cells + turn[:, None]) % turns, cells)

    @property
    def _name(self) -> str:
        return f"{self.width}-{self.size}-{self.digest}"

    @property
    def _design(self) -> Design:
        return _loaded(self._name)


_loaded = lru_cache(maxsize=4)(load_design)


@lru_cache(maxsize=4)
def _draws(name: str) -> list[list[tuple[IntArray, UInt64Array]]]:
    """Return the rows with a cell and the rows without it, both with the running sums of their weights.

    The first pair is for cell 0, which represents all moving cells. Then one pair follows for each staying cell.
    """
    design = _loaded(name)
    turns, members = design.turns, design.members
    holding = [members[:, -np.arange(turns) % turns]]
    holding += [np.repeat(members[:, [cell]], turns, axis=1) for cell in range(turns, design.width)]
    weights = np.repeat(np.array(design.weights, dtype=np.uint64), turns)
    chosen = [[np.flatnonzero(held), np.flatnonzero(~held)] for held in holding]
    return [[(rows, np.cumsum(weights[rows], dtype=np.uint64)) for rows in both] for both in chosen]


def _rows_by_weight(rows: IntArray, steps: UInt64Array, count: int, words: Words) -> IntArray:
    """Draw int64[count] rows; exactly w values of a uniform draw select a row of weight w."""
    return rows[np.searchsorted(steps, uniform(int(steps[-1]), count, words), side="right")]


def _worst_ratio(design: Design, kept: Fraction) -> Fraction:
    """Return the greatest ratio of the probabilities of one row for two true cells; `kept` is `p / (1-p)`."""
    low, high, total = min(design.cell_weights), max(design.cell_weights), design.total
    return max(
        kept * design.odds,  # the row has the first cell only
        Fraction(high, low),  # both
        Fraction(total - low, total - high),  # neither
        Fraction(high, total - high) / kept,  # the second only
    )


@lru_cache(maxsize=4)
def _transformed(name: str) -> npt.NDArray[np.complex128]:
    """Return the Fourier transform of the moving cells of every block."""
    design = _loaded(name)
    return np.fft.rfft(design.members[:, : design.turns], axis=1)


def _squares(name: str, member: npt.NDArray[np.bool_]) -> tuple[FloatArray, float]:
    """Return the sum of `weight T^2` over the rows with each cell, float64[width], and over all rows.

    T, the number of a row's cells that are members, is a cyclic correlation over the turns of a block.
    """
    design, transformed = _loaded(name), _transformed(name)
    turns, weights = design.turns, np.array(design.weights, dtype=np.float64)
    moving = np.fft.irfft(transformed.conj() * np.fft.rfft(member[:turns]), turns, axis=1)
    staying = design.members[:, turns:] @ member[turns:].astype(np.float64)
    squares = weights[:, None] * (np.rint(moving) + staying[:, None]) ** 2
    of_blocks = squares.sum(axis=1)
    moved = np.fft.irfft((np.fft.rfft(squares, axis=1) * transformed).sum(axis=0), turns)
    return np.concatenate([moved, of_blocks @ design.members[:, turns:]]), float(of_blocks.sum())


def _mean(values: FloatArray, weights: FloatArray) -> float:
    """Return the weighted mean of values, between the least and the largest; if all weights are 0, the plain mean."""
    if not len(values):
        return 0.0
    total = float(weights.sum())
    mean = float(values @ weights) / total if total > 0.0 else float(values.mean())
    return min(max(mean, float(values.min())), float(values.max()))
