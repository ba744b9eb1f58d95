"""Subset selection: s distinct cells, with the true cell among them with probability p; the others are uniform."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import FloatArray, Reports, UInt64Array
from hushcount.oracles.responders.base import Runs, Sized
from hushcount.randomness import WORD_VALUES, Words, below, uniform
from hushcount.wire.fields import MOST_BYTES, Field, SubsetOf

LARGEST_SIZE = 1 << 16
"""Most cells of a report."""
LARGEST_DRAW = 1 << 34
"""Most cells of a report times cells of the mechanism. A draw of s of m cells begins anew with a probability of at most
1 - exp(-s m / 2**32), so it begins at most e**4 = 55 times; with 16,000 of 16,000,000 cells no draw would ever end."""


@dataclass(frozen=True)
class Subset(Sized):
    """With probability `keep / 2**64` a uniform s-subset with the true cell, else a uniform s-subset without it.

    Privacy: `ln(p (m-s) / ((1-p) s))` for one report, replace-one.
    Reference: [J] Algorithm 1 and eq. (3), (5); docs/mathematics.md section 3.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        # The size as a list or as a bitmap, whichever is shorter; as a rank a report is even shorter.
        octets = min(self.size * (self.width - 1).bit_length(), self.width) / 8
        if octets > MOST_BYTES or self.size > LARGEST_SIZE or self.size * self.width > LARGEST_DRAW:
            raise ValueError(
                f"{self.size} of {self.width} cells in a report are too many: at most {LARGEST_SIZE} in at most "
                f"{MOST_BYTES} bytes, and the product of both at most {LARGEST_DRAW}; mechanism ais has short reports"
            )

    @property
    def fields(self) -> tuple[Field, ...]:
        return (SubsetOf("cells", self.width, self.size),)

    @property
    def log_greatest(self) -> float:
        return math.log(self.keep / WORD_VALUES) - _log_choose(self.width - 1, self.size - 1)

    def respond(self, reports: Reports, cells: UInt64Array, words: Words) -> None:
        kept = below(self.keep, len(cells), words)
        # A uniform s-subset of the other cells minus a uniform member is a uniform (s-1)-subset.
        dropped = np.where(kept, uniform(self.size, len(cells), words), np.uint64(self.size))
        draw_subsets(reports["cells"], self.width, cells, dropped, words)

    def log_prob(self, reports: Reports, cells: UInt64Array) -> FloatArray:
        held = math.log(self.keep / WORD_VALUES) - _log_choose(self.width - 1, self.size - 1)
        absent = math.log((WORD_VALUES - self.keep) / WORD_VALUES) - _log_choose(self.width - 1, self.size)
        return np.where(self.supports(reports, cells), held, absent)

    def runs(self, reports: Reports) -> Runs:
        return Runs(reports["cells"].astype(np.uint64), 1, self.width)


def _log_choose(population: int, size: int) -> float:
    return math.lgamma(population + 1) - math.lgamma(size + 1) - math.lgamma(population - size + 1)


Cells = npt.NDArray[Any]
_FEW = 16
"""For fewer subsets, loading a compiled loop costs more than it saves."""
_CHUNK_MEMBERS = 1 << 16


def draw_subsets(out: Cells, width: int, own: UInt64Array, dropped: UInt64Array, words: Words) -> None:
    """Draw for each client a uniform subset of the cells other than its own; optionally replace one member by it.

    Step j of Floyd's method draws t from the first width-size+j other cells; if the subset already has t, it takes the
    last of these cells, which no earlier step could draw. A draw is the high half of a 32-bit word times the bound. If
    the low half would favour some cells (Lemire 2019), the whole subset is drawn anew. So subsets are exactly uniform.

    Args:
        out: unsigned[n, size], filled: each row strictly ascending.
        width: m, the number of cells, above size and at most 2**32.
        own: uint64[n], each client's own cell, below width.
        dropped: uint64[n], the member (by the order of drawing, 0..size-1) to swap for the own cell; `size` for none.
        words: the source; half a word for each member, and more for subsets that are drawn anew.
    """
    size = out.shape[1]
    rows = max(_FEW, _CHUNK_MEMBERS // size)
    for start in range(0, len(own), rows):
        part = slice(start, start + rows)
        pending = np.arange(start, start + len(own[part]))[_draw(out[part], width, own[part], dropped[part], words)]
        while pending.size:
            anew = np.empty((pending.size, size), dtype=out.dtype)
            again = _draw(anew, width, own[pending], dropped[pending], words)
            out[pending] = anew
            pending = pending[again]


def _draw(out: Cells, width: int, own: UInt64Array, dropped: UInt64Array, words: Words) -> npt.NDArray[np.bool_]:
    """Draw every subset once; return bool[n]: the subsets that must be drawn anew."""
    drawn = words.words((out.size + 1) // 2).view("<u4")[: out.size].reshape(out.shape)
    if len(out) >= _FEW and find_spec("numba") is not None:
        # A client draws one subset and has no numba; simulators and `hushcount job encode` draw many.
        from hushcount.kernels.subsets import floyd

        return floyd(drawn, own, dropped, width, out)
    return floyd_numpy(drawn, own, dropped, width, out)


def floyd_numpy(
    drawn: npt.NDArray[np.uint32], own: UInt64Array, dropped: UInt64Array, width: int, out: Cells
) -> npt.NDArray[np.bool_]:
    """Draw subsets as `kernels.subsets.floyd` does, for the few subsets of a client."""
    size = drawn.shape[1]
    first = width - 1 - size
    bounds = np.arange(first + 1, width, dtype=np.uint64)
    product = drawn * bounds
    again: npt.NDArray[np.bool_] = np.any(product.astype(np.uint32) < ((1 << 32) % bounds).astype(np.uint32), axis=1)
    chosen = (product >> np.uint64(32)).astype(np.uint32)
    for row, cells in enumerate(chosen.tolist()):
        held: dict[int, None] = {}
        for column, cell in enumerate(cells):
            held[first + column if cell in held else cell] = None
        chosen[row] = list(held)
    # The other cells are numbered 0..m-2. Each number from the own cell on becomes 1 larger, so no other cell gets the
    # number of the own cell.
    chosen += chosen >= own[:, None]
    holders = np.flatnonzero(dropped < np.uint64(size))
    chosen[holders, dropped[holders].astype(np.intp)] = own[holders]
    chosen.sort(axis=1)
    out[:] = chosen
    return again
