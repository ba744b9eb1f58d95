"""Groups of items, one after the other in one array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import FloatArray, IntArray, UInt64Array


@dataclass(frozen=True, eq=False)
class Groups:
    """Non-empty groups of distinct items.

    Attributes:
        items: uint64[sum of all sizes], the groups one after the other.
        starts: int64[g], where each group begins.
    """

    items: UInt64Array
    starts: IntArray

    @classmethod
    def of(cls, groups: Sequence[UInt64Array]) -> Groups:
        """Return the groups of these items, uint64[size] each.

        Raises:
            ValueError: a group is empty, or has an item twice.
        """
        sizes = np.fromiter(map(len, groups), dtype=np.int64, count=len(groups))
        if (sizes < 1).any():
            raise ValueError(f"group {int(np.argmin(sizes))} is empty, must hold at least 1 item")
        items = np.concatenate(groups).astype(np.uint64) if len(groups) else np.empty(0, dtype=np.uint64)
        found = cls(items, np.cumsum(sizes) - sizes)
        order = np.lexsort((items, found.of_items))
        twice = (items[order][1:] == items[order][:-1]) & (found.of_items[1:] == found.of_items[:-1])
        if twice.any():
            raise ValueError(f"group {int(found.of_items[1:][twice][0])} has an item twice, must have each once")
        return found

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def sizes(self) -> FloatArray:
        """float64[g], the number of items of each group."""
        return np.diff(np.append(self.starts, len(self.items))).astype(np.float64)

    @cached_property
    def of_items(self) -> IntArray:
        """int64[items]: the index of each item's group."""
        return np.repeat(np.arange(len(self.starts)), self.sizes.astype(np.int64))

    def each(self) -> list[UInt64Array]:
        """Return the items of each group."""
        return np.split(self.items, self.starts[1:]) if len(self.starts) else []

    def sums(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the sum of values over each group; `values` has one value for each of `items`."""
        if not len(self.starts):
            return np.zeros(0, dtype=values.dtype)
        found: npt.NDArray[Any] = np.add.reduceat(values, self.starts)
        return found

    def chosen(self, places: IntArray) -> Groups:
        """Return the groups at these places, int64[c]."""
        sizes = self.sizes[places].astype(np.int64)
        starts = np.cumsum(sizes) - sizes
        within = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
        return Groups(self.items[np.repeat(self.starts[places], sizes) + within], starts)
