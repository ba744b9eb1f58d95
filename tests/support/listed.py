"""A source that gives out listed words, to force what chance hardly ever does."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hushcount.arrays import UInt64Array


class ListedWords:
    """Gives out the listed words in order and counts them; asking for more than there are is a test's mistake."""

    def __init__(self, listed: Iterable[int]) -> None:
        self._listed = list(listed)
        self.used = 0

    def words(self, count: int) -> UInt64Array:
        taken = self._listed[self.used : self.used + count]
        assert len(taken) == count, "the list of words is exhausted"
        self.used += count
        return np.array(taken, dtype=np.uint64)
