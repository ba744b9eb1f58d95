"""How a subset becomes a part of a report's integer: as its rank, or, where ranking takes too large a table, longer."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hushcount.arrays import Limbs
from hushcount.wire import ranks

Form = Literal["rank", "list", "bitmap"]
_TABLE_OCTETS = 64 << 20


def form_of(bound: int, count: int) -> Form:
    """Return in which form `count` distinct values below `bound` go.

    As the rank among all of them, which is the shortest there is, while its table of binomials fits 64 MiB
    (`ranks.table_octets`); else as the shorter of an ascending list, each value in the bits that bound - 1 takes, and
    a bitmap. 101 of 10,000 take 1,414 bits as a list, against 810 of the rank and 10,000 of the bitmap; 6,993 of 26,000
    take 26,000 as a bitmap against 21,832. A part of the wire format.
    """
    if ranks.table_octets(bound, count, _TABLE_OCTETS) <= _TABLE_OCTETS:
        return "rank"
    return "list" if count * _each(bound) < bound else "bitmap"


def codes_of(bound: int, count: int) -> int:
    """Return the number that the integer of a subset is below."""
    form = form_of(bound, count)
    if form == "rank":
        return ranks.subset_values(bound, count)
    return 1 << (count * _each(bound) if form == "list" else bound)


def to_limbs(bound: int, subsets: npt.NDArray[Any]) -> Limbs:
    """Return the integers of uint[n, count] subsets, each row ascending."""
    count = subsets.shape[1]
    form = form_of(bound, count)
    if form == "rank":
        return ranks.rank(bound, subsets)
    if form == "list":
        shifts = np.arange(_each(bound), dtype=np.uint64)
        bits = (subsets.astype(np.uint64)[:, :, None] >> shifts & np.uint64(1)).astype(np.uint8)
        bits = bits.reshape(len(subsets), -1)
    else:
        bits = np.zeros((len(subsets), bound), dtype=np.uint8)
        np.put_along_axis(bits, subsets.astype(np.intp), 1, axis=1)
    return ranks.from_octets(np.packbits(bits, axis=1, bitorder="little"), ranks.limbs_below(codes_of(bound, count)))


def fill(bound: int, integers: Limbs, subsets: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Fill uint[n, count] subsets from integers below `codes_of`; return bool[n], which are well formed."""
    count = subsets.shape[1]
    form = form_of(bound, count)
    if form == "rank":
        subsets[:] = ranks.unrank(bound, count, integers)
        return np.ones(len(subsets), dtype=np.bool_)
    length = count * _each(bound) if form == "list" else bound
    octets = ranks.to_octets(integers, (length + 7) // 8)
    bits = np.unpackbits(octets, axis=1, count=length, bitorder="little")
    if form == "bitmap":
        good: npt.NDArray[np.bool_] = bits.sum(axis=1) == count
        subsets[good] = np.nonzero(bits[good])[1].reshape(-1, count)
        return good
    shifts = np.arange(_each(bound), dtype=np.uint64)
    values = (bits.reshape(len(bits), count, -1).astype(np.uint64) << shifts).sum(axis=2, dtype=np.uint64)
    good = (values[:, -1] < np.uint64(bound)) & (values[:, 1:] > values[:, :-1]).all(axis=1)
    subsets[good] = values[good]
    return good


def _each(bound: int) -> int:
    """Return how many bits one value of a list takes."""
    return max(1, (bound - 1).bit_length())
