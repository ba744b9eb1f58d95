"""Uniform subsets of the cells of many clients at once, by Floyd's method."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import UInt64Array
from hushcount.randomness import Words

Cells = npt.NDArray[Any]
_FEW = 16
"""For fewer subsets, loading a compiled loop costs more than it saves."""
_CHUNK_MEMBERS = 1 << 16


def draw_subsets(out: Cells, width: int, own: UInt64Array, dropped: UInt64Array, words: Words) -> None:
    """Draw for each client a uniform subset of the cells other than its own; on request swap one member for its own.

    Step j of Floyd's method draws t from the first width-size+j other cells; if the subset already has t, it takes the
    last of these, which no earlier step could draw. A draw is the high half of a 32-bit word times the bound; after a
    low half that would favour some cells (Lemire 2019) the whole subset is drawn anew. Exact.

    Args:
        out: unsigned[n, size], filled: each row strictly ascending.
        width: m, the number of cells, above size and at most 2**32.
        own: uint64[n], each client's own cell, below width.
        dropped: uint64[n], the member (by the order of drawing, 0..size-1) to swap for the own cell; `size` for none.
        words: the source; half a word a member, and more for subsets that are drawn anew.
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
    """Draw every subset once; return bool[n], which must be drawn anew."""
    drawn = words.words((out.size + 1) // 2).view("<u4")[: out.size].reshape(out.shape)
    if len(out) >= _FEW and find_spec("numba") is not None:
        # A client draws one subset and has no numba; simulators and `hushcount encode` draw many.
        from hushcount.kernels.subsets import floyd

        return floyd(drawn, own, dropped, width, out)
    return floyd_numpy(drawn, own, dropped, width, out)


def floyd_numpy(
    drawn: npt.NDArray[np.uint32], own: UInt64Array, dropped: UInt64Array, width: int, out: Cells
) -> npt.NDArray[np.bool_]:
    """Do what `kernels.subsets.floyd` does, for the few subsets of a client."""
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
    # The others are 0..m-2: step over the own cell, so that no subset has it by accident.
    chosen += chosen >= own[:, None]
    holders = np.flatnonzero(dropped < np.uint64(size))
    chosen[holders, dropped[holders].astype(np.intp)] = own[holders]
    chosen.sort(axis=1)
    out[:] = chosen
    return again
