"""Strata: a client reports an item together with a coordinate on each axis, as one cell of a product (docs/adr/0058).

The cells of all items and strata are numbered at random, because a group of cells that lie at equal distances has
another variance than a random group: .63 to 1.14 times of it in a simulation of `ais`, `olh` and `hr`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import Octets, UInt64Array
from hushcount.errors import UsageError

MOST_AXES = 8
MOST_STRATA = 4096
USUAL_STRATA = 64
"""The most public strata that a policy allows by default: they tell 6 bits of a sender."""
_SIGN = r"\x21-\x2b\x2d-\x3c\x3e-\x5a\x5c\x5e-\x7e"
COORDINATE = rf"[{_SIGN}]([ {_SIGN}]{{0,62}}[{_SIGN}])?"
"""The pattern of the texts that an axis may list."""
Where = tuple[tuple[str, str], ...]
"""Axes with a coordinate each: reports with these coordinates, and with any on the other axes."""
STRATUM_BYTES = 2
"""Of the number of a public stratum, little-endian, which is sent before a sealed report."""
COLUMN = "by."
"""What begins the name of an axis's column in a table, so that no axis has the name of another column."""
OTHER = "other"
"""The coordinate of a client that has none, or one that the axis does not list."""
_STRATUM = np.dtype(f"<u{STRATUM_BYTES}")
_NAMED = 8
_ROUNDS = 8
_WORD_BYTES = 4
_WORD = np.uint64(0xFFFFFFFF)


def stratum_octets(numbers: npt.NDArray[np.integer[Any]]) -> Octets:
    """Return uint8[n, STRATUM_BYTES], what is sent before the reports of public strata."""
    return numbers.astype(_STRATUM).view(np.uint8).reshape(len(numbers), STRATUM_BYTES)


def stratum_numbers(octets: Octets) -> npt.NDArray[np.uint16]:
    """Return uint16[n], the public strata of reports, uint8[n, STRATUM_BYTES or more]."""
    return octets[:, :STRATUM_BYTES].copy().view(_STRATUM).reshape(-1)


@dataclass(frozen=True)
class Axis:
    """What clients are broken down by, such as the version of an app.

    Attributes:
        values: the coordinates, distinct; OTHER comes after them, and is not listed.
    """

    name: str
    values: tuple[str, ...]

    @property
    def coordinates(self) -> tuple[str, ...]:
        """All coordinates, OTHER last."""
        return (*self.values, OTHER)

    def place(self, value: str | None) -> int:
        """Return the place of a coordinate; of OTHER, if the axis does not list it."""
        return self.values.index(value) if value in self.values else len(self.values)


@dataclass(frozen=True)
class Strata:
    """All combinations of coordinates, the last axis running fastest; the last stratum is OTHER on all axes."""

    axes: tuple[Axis, ...]

    def __len__(self) -> int:
        return prod(len(axis.coordinates) for axis in self.axes)

    def axis(self, name: str) -> Axis:
        """Return the axis with a name; UsageError: there is none."""
        found = next((axis for axis in self.axes if axis.name == name), None)
        if found is None:
            there = ", ".join(axis.name for axis in self.axes)
            raise UsageError(f"axis is {name!a}, must be one of the campaign: {there}")
        return found

    def place(self, by: Mapping[str, str]) -> int:
        """Return the stratum of a client, by its coordinates; a missing or unlisted one is OTHER."""
        found = 0
        for axis in self.axes:
            found = found * len(axis.coordinates) + axis.place(by.get(axis.name))
        return found

    @property
    def by_first(self) -> tuple[range, ...]:
        """The strata of each coordinate of the first axis, in list order."""
        each = len(self) // len(self.axes[0].coordinates)
        return tuple(range(start, start + each) for start in range(0, len(self), each))

    def places(self, where: Mapping[str, str]) -> UInt64Array:
        """Return uint64[k], ascending: the strata with these coordinates, of any on the other axes.

        UsageError: an axis or a coordinate is not listed.
        """
        for name, value in where.items():
            if value not in (axis := self.axis(name)).coordinates:
                there = ", ".join(axis.coordinates[-_NAMED:])
                raise UsageError(f"coordinate {value!a} is not listed by axis {name}, must be one as {there}")
        found = np.zeros(1, dtype=np.uint64)
        for axis in self.axes:
            size = len(axis.coordinates)
            chosen = np.array([axis.place(where[axis.name])] if axis.name in where else range(size), dtype=np.uint64)
            found = (found[:, np.newaxis] * np.uint64(size) + chosen).ravel()
        return found


@dataclass(frozen=True)
class Cells:
    """The numbers of cells: a random one for each item and stratum, but the last for no item in the last stratum.

    Args:
        items: number of items, at least 1; the item after them stands for all that are not listed.
        strata: number of strata.
        key: 32 bytes, public.
    """

    items: int
    strata: int
    key: bytes

    def __len__(self) -> int:
        return (self.items + 1) * self.strata

    def number(self, items: UInt64Array, strata: UInt64Array) -> UInt64Array:
        """Return uint64[n]: the number of each cell, by its item in 0..items and its stratum."""
        places = items * np.uint64(self.strata) + strata
        last = np.uint64(len(self) - 1)
        return np.where(places == last, last, self._shuffled(np.minimum(places, last - np.uint64(1))))

    def _shuffled(self, places: UInt64Array) -> UInt64Array:
        """Return a keyed permutation of 0..len - 2, by a Feistel network whose numbers out of range walk on.

        It gives a random order, not secrecy.

        Reference: Black and Rogaway 2002, "Ciphers with arbitrary finite domains".
        """
        size = len(self) - 1
        half = np.uint64(max(1, -(-(size - 1).bit_length() // 2)))
        made, walks = places.copy(), np.ones(len(places), dtype=np.bool_)
        while walks.any():
            made[walks] = self._encrypted(made[walks], half)
            walks = made >= size
        return made

    def _encrypted(self, numbers: UInt64Array, half: np.uint64) -> UInt64Array:
        mask = (np.uint64(1) << half) - np.uint64(1)
        left, right = numbers >> half, numbers & mask
        for turn in range(_ROUNDS):
            word = int.from_bytes(self.key[_WORD_BYTES * turn : _WORD_BYTES * (turn + 1)], "little")
            left, right = right, left ^ (_mixed(right + np.uint64(word)) & mask)
        return (left << half) | right


def _mixed(words: UInt64Array) -> UInt64Array:
    """Return the finaliser of MurmurHash3 of 32-bit words."""
    words = words & _WORD
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        words = ((words ^ (words >> np.uint64(shift))) * np.uint64(factor)) & _WORD
    return words ^ (words >> np.uint64(16))
