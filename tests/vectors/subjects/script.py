"""Given words, and words that are the same at every run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from hushcount.arrays import UInt64Array


def word(*name: object) -> int:
    """Return the 64-bit word of a name."""
    return int.from_bytes(octets(8, *name), "little")


def octets(length: int, *name: object) -> bytes:
    """Return the bytes of a name, at most 64."""
    return hashlib.blake2b(repr(name).encode(), digest_size=length).digest()


def require_refused(
    error: type[Exception] | tuple[type[Exception], ...], call: Callable[..., object], *given: object
) -> None:
    """Raise AssertionError unless a call with these arguments is refused by this error."""
    with suppress(error):
        call(*given)
        raise AssertionError(f"{given} is not refused")


class ExhaustedError(Exception):
    """More words are asked for than there are."""


class Script:
    """The words of a list, in order, each once."""

    def __init__(self, words: Sequence[int]) -> None:
        self._words = np.array(words, dtype=np.uint64)
        self._taken = 0

    def words(self, count: int) -> UInt64Array:
        self._taken += count
        if self._taken > len(self._words):
            raise ExhaustedError
        return self._words[self._taken - count : self._taken].copy()

    @property
    def left(self) -> int:
        """How many words nobody has taken."""
        return len(self._words) - self._taken


class Recorder:
    """The words of a name, without end, and a record of those that were taken."""

    def __init__(self, *name: object) -> None:
        self._name = name
        self.taken: list[int] = []

    def words(self, count: int) -> UInt64Array:
        first = len(self.taken)
        self.taken += [word(*self._name, place) for place in range(first, first + count)]
        return np.array(self.taken[first:], dtype=np.uint64)
