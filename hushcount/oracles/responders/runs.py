"""Runs: the cells that reports support as cyclic runs, as many and as long in each report, and how to count them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import BoolArray, Counts, UInt64Array

_CHUNK_CELLS = 1 << 22


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
        """Add every cell to `tally`, int64[rows, width], in the report's row (None: 0); two steps for any length."""
        starts = self.starts.astype(np.int64)
        if self.length == 1:
            add_ones(tally, starts, rows)
            return
        ends = starts + self.length
        steps = np.zeros((len(tally), self.width + 1), dtype=np.int64)
        add_ones(steps, starts, rows)
        wrapped = ends > self.width
        steps -= _ones(steps.shape, np.minimum(ends, self.width), rows)
        # A run that passes the last cell goes on at cell 0 and ends where it wraps to.
        turned = _ones(steps.shape, np.where(wrapped, ends - self.width, 0), rows)
        steps -= turned
        steps[:, 0] += turned.sum(axis=1)
        tally += np.cumsum(steps[:, : self.width], axis=1)


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
