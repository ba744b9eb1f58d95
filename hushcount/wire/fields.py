"""The wire form of a report: one integer below the number of distinct reports, in the fewest whole bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from hushcount.arrays import BoolArray, Limbs, Octets, Reports
from hushcount.randomness import WORD_VALUES
from hushcount.wire import ranks

MOST_BYTES = 1 << 16
"""Longest report, before sealing; long reports cost a client time, memory and traffic."""
# Limbs of one chunk, which fits the processor's cache.
_CHUNK_LIMBS = 1 << 17
_TABLE_OCTETS = 64 << 20


@dataclass(frozen=True)
class Number:
    """One integer in least..bound-1, with bound at most 2**62; in memory a uint32 if bound <= 2**32, else a uint64."""

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

    @property
    def memory(self) -> tuple[str, tuple[int, ...]]:
        """The type and shape of the values in a structured array."""
        return ("<u4" if self.bound <= 1 << 32 else "<u8"), ()


@dataclass(frozen=True)
class SubsetOf:
    """`count` distinct integers below `bound`, at most 2**32, as a strictly ascending list.

    In memory uint16[count] if bound <= 65536, else uint32[count].
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
    def memory(self) -> tuple[str, tuple[int, ...]]:
        return ("<u2" if self.bound <= 1 << 16 else "<u4"), (self.count,)

    @property
    def form(self) -> Literal["rank", "list", "bitmap"]:
        """The form of the list on the wire, a part of the wire format.

        The form is the rank among all lists, which is shortest, if the table of binomials fits into 64 MiB. If the
        table does not fit, the form is the shorter of a bitmap and an ascending list with as many bits a value as
        `bound - 1` has. For example, 101 of 10,000 values take 1,414 bits as a list, 810 as a rank and 10,000 as a
        bitmap; 6,993 of 26,000 take 26,000 bits as a bitmap and 21,832 as a rank.
        """
        if ranks.table_octets(self.bound, self.count, _TABLE_OCTETS) <= _TABLE_OCTETS:
            return "rank"
        return "list" if self.count * self._value_bits < self.bound else "bitmap"

    @property
    def codes(self) -> int:
        """The bound of a list's integer: every integer is below this bound."""
        form = self.form
        return self.values if form == "rank" else 1 << (self.count * self._value_bits if form == "list" else self.bound)

    def to_limbs(self, subsets: npt.NDArray[Any]) -> Limbs:
        """Return the integers of uint[n, count] lists."""
        if self.form == "rank":
            return ranks.rank(self.bound, subsets)
        if self.form == "list":
            shifts = np.arange(self._value_bits, dtype=np.uint64)
            bits = (subsets.astype(np.uint64)[:, :, None] >> shifts & np.uint64(1)).astype(np.uint8)
            bits = bits.reshape(len(subsets), -1)
        else:
            bits = np.zeros((len(subsets), self.bound), dtype=np.uint8)
            np.put_along_axis(bits, subsets.astype(np.intp), 1, axis=1)
        return ranks.from_octets(np.packbits(bits, axis=1, bitorder="little"), ranks.limbs_below(self.codes))

    def fill(self, integers: Limbs, subsets: npt.NDArray[Any]) -> BoolArray:
        """Fill uint[n, count] lists from integers below `codes`; return bool[n]: which lists are well formed."""
        form = self.form
        if form == "rank":
            subsets[:] = ranks.unrank(self.bound, self.count, integers)
            return np.ones(len(subsets), dtype=np.bool_)
        length = self.count * self._value_bits if form == "list" else self.bound
        octets = ranks.to_octets(integers, (length + 7) // 8)
        bits = np.unpackbits(octets, axis=1, count=length, bitorder="little")
        if form == "bitmap":
            good: BoolArray = bits.sum(axis=1) == self.count
            subsets[good] = np.nonzero(bits[good])[1].reshape(-1, self.count)
            return good
        shifts = np.arange(self._value_bits, dtype=np.uint64)
        values = (bits.reshape(len(bits), self.count, -1).astype(np.uint64) << shifts).sum(axis=2, dtype=np.uint64)
        good = (values[:, -1] < np.uint64(self.bound)) & (values[:, 1:] > values[:, :-1]).all(axis=1)
        subsets[good] = values[good]
        return good

    @property
    def _value_bits(self) -> int:
        return max(1, (self.bound - 1).bit_length())


@dataclass(frozen=True)
class Bits:
    """`count` independent bits; in memory uint8[(count+7)//8], bit i in place i%8 of byte i//8, then zeros."""

    name: str
    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"count of {self.name} is {self.count}, must be at least 1 bit")

    @property
    def values(self) -> int:
        """How many values all bits together can have, `2**count`."""
        return 1 << self.count

    @property
    def memory(self) -> tuple[str, tuple[int, ...]]:
        return "u1", ((self.count + 7) // 8,)

    @property
    def codes(self) -> int:
        return self.values

    def to_limbs(self, column: Octets) -> Limbs:
        return ranks.from_octets(column, ranks.limbs_below(self.values))

    def fill(self, integers: Limbs, column: Octets) -> BoolArray:
        """Fill the bits from integers below `codes`: all are well formed."""
        column[:] = ranks.to_octets(integers, column.shape[1])
        return np.ones(len(column), dtype=np.bool_)


Field: TypeAlias = Number | SubsetOf | Bits


def report_dtype(fields: Sequence[Field]) -> np.dtype[Any]:
    """Return the structured dtype that holds these fields in memory."""
    return np.dtype([(field.name, *field.memory) for field in fields])


def report_values(fields: Sequence[Field]) -> int:
    """Return the number of distinct reports."""
    return math.prod(field.values for field in fields)


def report_bits(fields: Sequence[Field]) -> float:
    """Return the binary logarithm of the number of distinct reports; no fixed-length encoding is shorter."""
    return math.log2(report_values(fields))


def report_codes(fields: Sequence[Field]) -> int:
    """Return the bound of a report's integer: the number of distinct reports, or more for a list or a bitmap."""
    return _layout(fields).codes


def report_bytes(fields: Sequence[Field]) -> int:
    """Return the length of a report on the wire, the fewest whole bytes for its integer; ValueError as in `pack`."""
    return _layout(fields).octets


def pack(fields: Sequence[Field], reports: Reports) -> Octets:
    """Return uint8[n, report_bytes]: for each of n well-formed reports its integer, little-endian.

    Number fields are the integer's digits, the first field the least significant; a digit is the value minus the least
    value. A field with a subset or bits, at most one in a report, is the part of the integer above all digits. Every
    report has one integer, and every integer below `report_codes` belongs to one report, unless a subset is sent as a
    list or a bitmap.

    Raises:
        ValueError: more than one of the fields is a subset or bits.
    """
    layout = _layout(fields)
    octets = np.empty((len(reports), layout.octets), dtype=np.uint8)
    for start in range(0, len(reports), layout.rows):
        octets[start : start + layout.rows] = _pack(layout, reports[start : start + layout.rows])
    return octets


def unpack(fields: Sequence[Field], octets: Octets) -> tuple[Reports, BoolArray]:
    """Return the reports of uint8[n, report_bytes], and bool[n]: which are well formed. The inverse of `pack`.

    The content of malformed reports is unspecified, within the bounds of the fields.

    Raises:
        ValueError: as in `pack`, or the second axis is not `report_bytes` long.
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
    """The order of fields in the integer, which is below `codes`: numbers, the least significant first, then `big`."""

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
        return max(1, _CHUNK_LIMBS // self.limbs)


def _layout(fields: Sequence[Field]) -> _Layout:
    big = [field for field in fields if not isinstance(field, Number)]
    if len(big) > 1:
        raise ValueError(f"subsets and bits are {[field.name for field in big]}, must be one field at most")
    numbers = tuple(field for field in fields if isinstance(field, Number))
    codes = math.prod(number.values for number in numbers) * math.prod(field.codes for field in big)
    return _Layout(numbers, big[0] if big else None, codes)


def _pack(layout: _Layout, reports: Reports) -> Octets:
    integers = np.zeros((layout.limbs, len(reports)), dtype=np.uint64)
    if layout.big is not None:
        above = layout.big.to_limbs(reports[layout.big.name])
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


def _unpack(layout: _Layout, octets: Octets, reports: Reports) -> BoolArray:
    """Fill the reports, zeros so far, and return which are well formed; 0 replaces integers that are too large."""
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
        above = integers[: ranks.limbs_below(layout.big.codes)]
        valid &= layout.big.fill(above, reports[layout.big.name])
    return valid
