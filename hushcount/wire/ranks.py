"""Long integers as arrays of limbs, and the rank of a subset among all subsets of its size."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from importlib.util import find_spec
from math import comb, perm
from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import Limbs, UInt64Array

_LIMB_BITS = 32
_LOW = np.uint64((1 << _LIMB_BITS) - 1)
_LIMB = np.uint64(_LIMB_BITS)
# For fewer subsets a table of binomials costs more time than it saves.
_FEW = 64
_CHUNK_LIMBS = 1 << 16


def limbs_below(values: int) -> int:
    """Return how many limbs hold every integer below `values`, at least one."""
    return max(1, -(-(values - 1).bit_length() // _LIMB_BITS))


def from_octets(octets: npt.NDArray[np.uint8], limbs: int) -> Limbs:
    """Return the integers in uint8[n, L], little-endian; L is at most four times the limbs."""
    padded = np.zeros((len(octets), 4 * limbs), dtype=np.uint8)
    padded[:, : octets.shape[1]] = octets
    return np.ascontiguousarray(padded.view("<u4").T, dtype=np.uint64)


def to_octets(integers: Limbs, length: int) -> npt.NDArray[np.uint8]:
    """Return uint8[n, length]: the lowest bytes of the integers, little-endian."""
    return np.ascontiguousarray(integers.T, dtype="<u4").view(np.uint8)[:, :length]


def from_words(words: UInt64Array, limbs: int) -> Limbs:
    """Return uint64[n] as one limb, which must hold all words, or as two."""
    return np.stack([words & _LOW, words >> _LIMB][:limbs])


def to_words(integers: Limbs) -> UInt64Array:
    """Return integers of one or two limbs as uint64[n]."""
    return integers[0] if len(integers) == 1 else integers[0] | (integers[1] << _LIMB)


def from_integers(integers: Iterable[int], limbs: int) -> Limbs:
    """Return Python integers, each below `2**(32 limbs)`, as limbs."""
    octets = b"".join(integer.to_bytes(4 * limbs, "little") for integer in integers)
    return from_octets(np.frombuffer(octets, dtype=np.uint8).reshape(-1, 4 * limbs), limbs)


def carry(integers: Limbs) -> None:
    """Reduce limbs of any size below 2**32 in place; the last one keeps the overflow."""
    for place in range(len(integers) - 1):
        integers[place + 1] += integers[place] >> _LIMB
        integers[place] &= _LOW


def multiply_add(integers: Limbs, factor: int, addends: UInt64Array) -> None:
    """Replace each x by `factor x + addend` in place, for a factor in 1..2**62 and addends below it; drop overflow."""
    # The carry is always below the factor, so no sum in this loop reaches 2**64.
    low, high = np.uint64(factor) & _LOW, np.uint64(factor) >> _LIMB
    over = addends
    for limb in integers:
        total = limb * low + (over & _LOW)
        over = (over >> _LIMB) + (total >> _LIMB)
        if high:
            over += limb * high
        np.bitwise_and(total, _LOW, out=limb)


def divide(integers: Limbs, divisor: int) -> UInt64Array:
    """Replace each x by `x // divisor` in place and return uint64[n], the remainders; the divisor is 1..2**62.

    Long division: each step brings down as many bits as fit into 64 bits beside the remainder.
    """
    step = max(bits for bits in (32, 16, 8, 4, 2) if divisor <= 1 << (64 - bits))
    remainder = np.zeros(integers.shape[1], dtype=np.uint64)
    mask = np.uint64((1 << step) - 1)
    for limb in integers[::-1]:
        quotient = np.zeros_like(remainder)
        for shift in range(_LIMB_BITS - step, -1, -step):
            remainder = (remainder << np.uint64(step)) | ((limb >> np.uint64(shift)) & mask)
            digit = remainder // np.uint64(divisor)
            remainder -= digit * np.uint64(divisor)
            quotient = (quotient << np.uint64(step)) | digit
        limb[:] = quotient
    return remainder


def are_below(integers: Limbs, bound: int) -> npt.NDArray[np.bool_]:
    """Return bool[n]: which integers are less than `bound`."""
    if bound.bit_length() > _LIMB_BITS * len(integers):
        return np.ones(integers.shape[1], dtype=np.bool_)
    less = np.zeros(integers.shape[1], dtype=np.bool_)
    for limb, edge in zip(integers, from_integers([bound], len(integers))[:, 0], strict=True):
        less = (limb < edge) | ((limb == edge) & less)
    return less


@lru_cache(maxsize=64)
def subset_values(bound: int, count: int) -> int:
    """Return `C(bound, count)`, the number of subsets with `count` elements."""
    return comb(bound, count)


@lru_cache(maxsize=64)
def table_octets(bound: int, count: int, limit: int) -> int:
    """Return the size in bytes of the table of `binomials`, or some number above `limit` if the size exceeds it."""
    binomials = 4 * count * (bound - count + 1)
    return binomials if binomials > limit else binomials * limbs_below(subset_values(bound, count))


@lru_cache(maxsize=64)
def row_limbs(bound: int, count: int) -> tuple[int, ...]:
    """Return for i = 0..count-1 how many limbs hold any rank of the lowest i + 1 elements."""
    spare, values, limbs = bound - count, 1, []
    for chosen in range(1, count + 1):
        values = values * (spare + chosen) // chosen
        limbs.append(limbs_below(values))
    return tuple(limbs)


@lru_cache(maxsize=4)
def binomials(bound: int, count: int) -> npt.NDArray[np.uint32]:
    """Return uint32[count, bound-count+1, limbs]: `C(i+w, i+1)` at [i, w], the least significant limb first.

    Element i of an ascending list is i + w for some w in 0..bound-count. `C(i+1+w, i+2)` is the sum of `C(i+v, i+1)`
    over v = 0..w: each row is the running sum of the row before.
    """
    sizes = row_limbs(bound, count)
    row = np.zeros((sizes[-1], bound - count + 1), dtype=np.uint64)
    row[0] = np.arange(bound - count + 1)
    table = np.empty((count, bound - count + 1, sizes[-1]), dtype=np.uint32)
    table[0] = row.T
    for index in range(1, count):
        reached = row[: sizes[index]]
        np.cumsum(reached, axis=1, out=reached)
        carry(reached)
        table[index] = row.T
    table.setflags(write=False)
    return table


def rank(bound: int, elements: npt.NDArray[Any]) -> Limbs:
    """Return the colexicographic ranks of subsets, `sum_i C(c_i, i+1)` for elements `c_0 < c_1 < ...` below `bound`.

    `elements` are unsigned integers [n, count], each row strictly ascending; ranks are below C(bound, count).

    Reference: Knuth, The Art of Computer Programming, volume 4A, section 7.2.1.3, Theorem L.
    """
    count = elements.shape[1]
    sizes = row_limbs(bound, count)
    if len(elements) < _FEW or find_spec("numba") is None:
        return from_integers(map(rank_integer, elements.tolist()), sizes[-1])
    sums = np.zeros((len(elements), sizes[-1]), dtype=np.uint64)
    rows = max(_FEW, _CHUNK_LIMBS // sizes[-1])
    from hushcount.kernels.ranks import sum_binomials

    for start in range(0, len(elements), rows):
        sum_binomials(sums[start : start + rows], elements[start : start + rows], binomials(bound, count), sizes)
    integers = np.ascontiguousarray(sums.T)
    carry(integers)
    return integers


def unrank(bound: int, count: int, ranks: Limbs) -> npt.NDArray[np.uint32]:
    """Return uint32[n, count]: the subsets of these ranks, each row strictly ascending; the inverse of `rank`.

    The loop is compiled if numba is installed, as on every server; if not, it handles one Python integer after another.
    """
    if find_spec("numba") is None:
        return unrank_integers(bound, count, ranks)
    from hushcount.kernels.ranks import unrank as compiled

    return compiled(binomials(bound, count), row_limbs(bound, count), ranks)


def unrank_integers(bound: int, count: int, ranks: Limbs) -> npt.NDArray[np.uint32]:
    """The plain twin of `kernels.ranks.unrank`; the tests compare both functions."""
    octets = to_octets(ranks, 4 * len(ranks))
    rows = [unrank_integer(bound, count, int.from_bytes(row.tobytes(), "little")) for row in octets]
    return np.array(rows, dtype=np.uint32).reshape(-1, count)


def rank_integer(elements: Sequence[int]) -> int:
    """Return the rank of one strictly ascending list, without a table."""
    total, before, paths = 0, -1, 1
    for index, element in enumerate(elements):
        # `paths` is C(element, index). A short step computes `paths` from the former `paths`, a long step from scratch.
        step = element - before
        if step > index:
            paths = comb(element, index)
        else:
            paths = paths * perm(element, step) // (index * perm(element - index, step - 1))
        total += paths * (element - index) // (index + 1)
        before = element
    return total


def unrank_integer(bound: int, count: int, rank: int) -> list[int]:
    """Return the strictly ascending list of `count` elements below `bound` that has this rank."""
    elements, left, above = [], rank, bound
    for size in range(count, 0, -1):
        # The greatest c with C(c, size) <= left; the least possible c, size - 1, has C = 0.
        above = bisect_right(range(above), left, lo=size, key=partial(_subsets_below, size)) - 1
        left -= comb(above, size)
        elements.append(above)
    return elements[::-1]


def _subsets_below(size: int, bound: int) -> int:
    return comb(bound, size)
