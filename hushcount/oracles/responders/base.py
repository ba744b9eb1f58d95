"""What a responder is: how a cell becomes the private part of a report."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from hushcount.arrays import Counts, Reports, UInt64Array
from hushcount.oracles.costs import CountCost
from hushcount.randomness import WORD_VALUES, Words
from hushcount.wire.fields import Field

_CHUNK_CELLS = 1 << 22


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

    def log_prob(self, reports: Reports, cells: UInt64Array) -> npt.NDArray[np.float64]:
        """Return the natural logarithm of the probability of each response, given the true cell of each."""
        ...

    def supports(self, reports: Reports, cells: UInt64Array) -> npt.NDArray[np.bool_]:
        """Return bool[n]: whether each report supports the cell of the same row."""
        ...

    def count_cells(self, tally: Counts, reports: Reports, rows: npt.NDArray[Any] | None) -> None:
        """Add every cell that each report supports to `tally`, int64[rows, width], in the report's row (None: 0)."""
        ...

    def count_cost(self, reports: int) -> CountCost:
        """Return what `count_cells` takes for so many reports."""
        ...


@runtime_checkable
class RunResponder(Responder, Protocol):
    """A responder whose reports support cyclic runs of cells, always as many and as long: what affine decoding needs.

    Attributes:
        run_length: cells in one run.
    """

    @property
    def run_length(self) -> int: ...

    def run_starts(self, reports: Reports) -> UInt64Array:
        """Return uint64[n, run_count]: the first cell of every run that each report supports."""
        ...


def runs_support(responder: RunResponder, reports: Reports, cells: UInt64Array) -> npt.NDArray[np.bool_]:
    """`supports` of a responder of runs."""
    width = np.uint64(responder.width)
    offsets = (cells[:, None] + width - responder.run_starts(reports)) % width
    result: npt.NDArray[np.bool_] = (offsets < np.uint64(responder.run_length)).any(axis=1)
    return result


def count_runs(responder: RunResponder, tally: Counts, reports: Reports, rows: npt.NDArray[Any] | None) -> None:
    """`count_cells` of a responder of runs: a difference array, so that a run costs two steps whatever its length."""
    width = responder.width
    starts = responder.run_starts(reports).astype(np.int64)
    if responder.run_length == 1:
        add_ones(tally, starts, rows)
        return
    ends = starts + responder.run_length
    steps = np.zeros((len(tally), width + 1), dtype=np.int64)
    add_ones(steps, starts, rows)
    wrapped = ends > width
    steps -= _ones(steps.shape, np.minimum(ends, width), rows)
    # A run that passes the last cell goes on at cell 0 and ends where it wraps to.
    turned = _ones(steps.shape, np.where(wrapped, ends - width, 0), rows)
    steps -= turned
    steps[:, 0] += turned.sum(axis=1)
    tally += np.cumsum(steps[:, :width], axis=1)


def add_ones(tally: Counts, cells: npt.NDArray[Any], rows: npt.NDArray[Any] | None) -> None:
    """Add 1 to `tally[row, cell]` for every cell of every report; `cells` is [n, cells of a report]."""
    step = max(1, _CHUNK_CELLS // max(1, cells.shape[1]))
    for start in range(0, len(cells), step):
        part = cells[start : start + step]
        chosen = None if rows is None else rows[start : start + step]
        if part.size * 8 < tally.size:
            places = part.astype(np.intp) + _offsets(tally.shape, chosen)
            np.add.at(tally.reshape(-1), places.reshape(-1), 1)
        else:
            tally += _ones(tally.shape, part, chosen)


def _ones(shape: tuple[int, ...], cells: npt.NDArray[Any], rows: npt.NDArray[Any] | None) -> Counts:
    places = cells.astype(np.intp) + _offsets(shape, rows)
    return np.bincount(places.reshape(-1), minlength=shape[0] * shape[1]).reshape(shape)


def _offsets(shape: tuple[int, ...], rows: npt.NDArray[Any] | None) -> npt.NDArray[np.intp] | int:
    return 0 if rows is None else rows.astype(np.intp)[:, None] * shape[1]


def check_choice(width: int, size: int, keep: int) -> None:
    """Raise ValueError unless width, support size and keep threshold make a local randomiser with `p > q`."""
    if width < 2:
        raise ValueError(f"width is {width}, must be at least 2 cells")
    if not 1 <= size < width:
        raise ValueError(f"s is {size}, must be in 1..{width - 1} for {width} cells")
    p, uninformed = keep / WORD_VALUES, size / width
    if not (uninformed < p and keep < WORD_VALUES):
        raise ValueError(f"p is {p:.6g}, must be above {uninformed:.6g} (s/m, where a report says nothing) and below 1")
