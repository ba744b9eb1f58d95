"""Count along arithmetic progressions in a prime field: the inner loop of decoding reports with affine functions."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from hushcount.encoders.base import Counts
from hushcount.randomness import UInt64Array


def walk(counts: Counts, begins: UInt64Array, steps: UInt64Array, lengths: UInt64Array) -> None:
    """Add 1 to `counts[(begin + j step) mod P]` for j = 0..length-1 of every walk; P is the length of `counts`.

    Args:
        counts: int64[P], changed in place.
        begins: uint64[n], below P.
        steps: uint64[n], below P.
        lengths: uint64[n].
    """
    _walk(counts, begins.astype(np.int64), steps.astype(np.int64), lengths.astype(np.int64))


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]  # numba ships no types for its decorators
def _walk(
    counts: npt.NDArray[np.int64],
    begins: npt.NDArray[np.int64],
    steps: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
) -> None:
    modulus = counts.shape[0]
    for index in range(begins.shape[0]):
        place = begins[index]
        step = steps[index]
        for _ in range(lengths[index]):
            counts[place] += 1
            place += step
            if place >= modulus:
                place -= modulus


def walk_numpy(counts: Counts, begins: UInt64Array, steps: UInt64Array, lengths: UInt64Array) -> None:
    """The plain twin of `walk`, its oracle in the tests."""
    modulus = np.uint64(len(counts))
    for begin, step, length in zip(begins, steps, lengths, strict=True):
        places = (begin + step * np.arange(length, dtype=np.uint64)) % modulus
        np.add.at(counts, places, 1)
