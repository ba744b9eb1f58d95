"""The wire form of a report: one integer below the number of distinct reports, in the fewest whole bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hushcount.arrays import Limbs, Reports
from hushcount.randomness import WORD_VALUES
from hushcount.wire import ranks, subset_codes

MOST_BYTES = 1 << 16
"""Longest report, before sealing: a client pays for it in time, memory and bytes sent."""
_CHUNK_LIMBS = 1 << 17
"""Limbs that are worked on at once, so that they stay in the processor's cache."""


@dataclass(frozen=True)
class Number:
    """One integer.

    Attributes:
        name: its name in the structured array; there a uint32 if bound is at most 2**32, else a uint64.
        bound: values are in least..bound-1; at most 2**62.
        least: the smallest value.
    """

    name: str
    bound: int
    least: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.bound <= 1 << 62:
            raise ValueError(f"bound of {self.name} is {self.bound}, must be in 1..2**62")
        if not 0 <= self.least < self.bound:
            raise ValueError(f"least of {self.name} is {self.least}, must be in 0..{self.bound - 1}")

    @property
    def values(self) -> int:
        """How many values there are."""
        return self.bound - self.least


@dataclass(frozen=True)
class SubsetOf:
    """Distinct integers, as a strictly ascending list.

    On the wire it is the list's rank among all of its length, or where ranking takes too large a table the list itself
    or a bitmap: `subset_wire.form_of`.

    Attributes:
        name: its name in the structured array; there uint16[count] if bound is at most 65536, else uint32[count].
        bound: values are in 0..bound-1; at most 2**32.
        count: how many, 1..bound.
    """

    name: str
    bound: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.bound <= 1 << 32:
            raise ValueError(f"bound of {self.name} is {self.bound}, must be in 1..2**32")
        if not 1 <= self.count <= self.bound:
            raise ValueError(f"count of {self.name} is {self.count}, must be in 1..{self.bound}")

    @property
    def values(self) -> int:
        """How many lists there are, `C(bound, count)`."""
        return ranks.subset_values(self.bound, self.count)

    @property
    def form(self) -> subset_codes.Form:
        """In which form it goes."""
        return subset_codes.form_of(self.bound, self.count)


@dataclass(frozen=True)
class Bits:
    """Independent bits.

    Attributes:
        name: its name in the structured array; there uint8[(count+7)//8], bit i in place i%8 of byte i//8, and zeros
            behind the last bit.
        count: how many, at least 1.
    """

    name: str
    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"count of {self.name} is {self.count}, must be at least 1 bit")

    @property
    def values(self) -> int:
        """How many values all bits together have, `2**count`."""
        return 1 << self.count


Field: TypeAlias = Number | SubsetOf | Bits


def report_dtype(fields: Sequence[Field]) -> np.dtype[Any]:
    """Return the structured dtype that holds these fields in memory."""
    return np.dtype([(field.name, *_in_memory(field)) for field in fields])


def report_values(fields: Sequence[Field]) -> int:
    """Return the number of distinct reports."""
    return math.prod(field.values for field in fields)


def report_bits(fields: Sequence[Field]) -> float:
    """Return the binary logarithm of the number of distinct reports: what no encoding of one length can go below."""
    return math.log2(report_values(fields))


def report_codes(fields: Sequence[Field]) -> int:
    """Return the number that the integer of a report is below.

    The number of distinct reports; more only where a subset goes as a list or a bitmap, some of which are no reports.

    Raises:
        ValueError: more than one of the fields is a subset or bits.
    """
    return _layout(fields).codes


def report_bytes(fields: Sequence[Field]) -> int:
    """Return the length of every report on the wire, the fewest whole bytes that hold its integer.

    Raises:
        ValueError: more than one of the fields is a subset or bits.
    """
    return _layout(fields).octets


def pack(fields: Sequence[Field], reports: Reports) -> npt.NDArray[np.uint8]:
    """Return the wire form of reports: for each its integer, little-endian.

    Number fields are the integer's digits, the first field the least significant, a digit being the value less the
    least value. The rank of a subset, or the bitmap of a subset or of bits, is the part above all digits. Every report
    has one integer, and every integer below the number of reports is that of one, except for bitmaps of another count.

    Args:
        fields: at most one of them a subset or bits.
        reports: well-formed ones, report[n].

    Returns:
        uint8[n, report_bytes].

    Raises:
        ValueError: more than one of the fields is a subset or bits.
    """
    layout = _layout(fields)
    octets = np.empty((len(reports), layout.octets), dtype=np.uint8)
    for start in range(0, len(reports), layout.rows):
        octets[start : start + layout.rows] = _pack(layout, reports[start : start + layout.rows])
    return octets


def unpack(fields: Sequence[Field], octets: npt.NDArray[np.uint8]) -> tuple[Reports, npt.NDArray[np.bool_]]:
    """Return the reports of uint8[n, report_bytes] and bool[n], which of them are well formed: the inverse of `pack`.

    What a report that is not well formed holds is unspecified, but within the bounds of its fields.

    Raises:
        ValueError: the second axis is not the length that these fields have, or more than one of the fields is a
            subset or bits.
    """
    layout = _layout(fields)
    if octets.ndim != 2 or octets.shape[1] != layout.octets:
        raise ValueError(f"octets have shape {octets.shape}, must be (n, {layout.octets})")
    reports = np.zeros(len(octets), dtype=report_dtype(fields))
    valid = np.empty(len(octets), dtype=np.bool_)
    for start in range(0, len(octets), layout.rows):
        part = slice(start, start + layout.rows)
        valid[part] = _unpack(layout, octets[part], reports[part])
    return reports, valid


@dataclass(frozen=True)
class _Layout:
    """Where the fields are in the integer.

    Attributes:
        numbers: from the least significant on.
        big: the subset or the bits above them, if there is one.
        codes: the integer is below it.
    """

    numbers: tuple[Number, ...]
    big: SubsetOf | Bits | None
    codes: int

    @property
    def octets(self) -> int:
        return ((self.codes - 1).bit_length() + 7) // 8

    @property
    def limbs(self) -> int:
        return ranks.limbs_below(self.codes)

    @property
    def rows(self) -> int:
        """How many reports to take at once."""
        return max(1, _CHUNK_LIMBS // self.limbs)


def _layout(fields: Sequence[Field]) -> _Layout:
    big = [field for field in fields if not isinstance(field, Number)]
    if len(big) > 1:
        raise ValueError(f"subsets and bits are {[field.name for field in big]}, must be one field at most")
    numbers = tuple(field for field in fields if isinstance(field, Number))
    codes = math.prod(number.values for number in numbers) * math.prod(_codes(field) for field in big)
    return _Layout(numbers, big[0] if big else None, codes)


def _codes(field: SubsetOf | Bits) -> int:
    return field.values if isinstance(field, Bits) else subset_codes.codes_of(field.bound, field.count)


def _in_memory(field: Field) -> tuple[str, tuple[int, ...]]:
    if isinstance(field, Number):
        return ("<u4" if field.bound <= 1 << 32 else "<u8"), ()
    if isinstance(field, SubsetOf):
        return ("<u2" if field.bound <= 1 << 16 else "<u4"), (field.count,)
    return "u1", ((field.count + 7) // 8,)


def _pack(layout: _Layout, reports: Reports) -> npt.NDArray[np.uint8]:
    integers = np.zeros((layout.limbs, len(reports)), dtype=np.uint64)
    if layout.big is not None:
        above = _big_part(layout.big, reports[layout.big.name])
        integers[: len(above)] = above
    digits = {number: reports[number.name].astype(np.uint64) - np.uint64(number.least) for number in layout.numbers}
    if layout.codes > WORD_VALUES:
        for number in reversed(layout.numbers):
            ranks.multiply_add(integers, number.values, digits[number])
    else:
        words = ranks.to_words(integers)
        for number in reversed(layout.numbers):
            words = words * np.uint64(number.values) + digits[number]
        integers = ranks.from_words(words, layout.limbs)
    return ranks.to_octets(integers, layout.octets)


def _unpack(layout: _Layout, octets: npt.NDArray[np.uint8], reports: Reports) -> npt.NDArray[np.bool_]:
    """Fill in the reports, zeros so far, and return which are well formed; the others' integers are taken for 0."""
    integers = ranks.from_octets(octets, layout.limbs)
    valid = ranks.are_below(integers, layout.codes)
    integers[:, ~valid] = 0
    if layout.codes > WORD_VALUES:
        for number in layout.numbers:
            reports[number.name] = ranks.divide(integers, number.values) + np.uint64(number.least)
    else:
        words = ranks.to_words(integers)
        for number in layout.numbers:
            above = words // np.uint64(number.values)
            reports[number.name] = words - above * np.uint64(number.values) + np.uint64(number.least)
            words = above
        integers = ranks.from_words(words, layout.limbs)
    if layout.big is not None:
        above = integers[: ranks.limbs_below(_codes(layout.big))]
        valid &= _fill_big(layout.big, above, reports[layout.big.name])
    return valid


def _big_part(field: SubsetOf | Bits, column: npt.NDArray[Any]) -> Limbs:
    if isinstance(field, Bits):
        return ranks.from_octets(column, ranks.limbs_below(_codes(field)))
    return subset_codes.to_limbs(field.bound, column)


def _fill_big(field: SubsetOf | Bits, integers: Limbs, column: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    if isinstance(field, SubsetOf):
        return subset_codes.fill(field.bound, integers, column)
    column[:] = ranks.to_octets(integers, column.shape[1])
    return np.ones(len(column), dtype=np.bool_)
