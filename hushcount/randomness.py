"""The one door to randomness: unsigned 64-bit words, and the exact draws made from them.

Everything random that touches a report, a batch or a release takes its words from a `Words` source given as an
argument. `SystemWords`, the operating system's cryptographic generator, is the only source in the product; seeded
sources exist in the tests, where a golden vector needs one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

UInt64Array = npt.NDArray[np.uint64]
WORD_VALUES = 1 << 64
"""How many values a random word has; probabilities are thresholds out of this number."""


class Words(Protocol):
    """A source of independent, uniformly distributed 64-bit words."""

    def words(self, count: int) -> UInt64Array:
        """Return uint64[count], fresh at every call and writable."""
        ...


@dataclass(frozen=True)
class SystemWords:
    """Words from the operating system's cryptographic generator (`os.urandom`)."""

    def words(self, count: int) -> UInt64Array:
        """Return uint64[count]."""
        return np.frombuffer(bytearray(os.urandom(8 * count)), dtype="<u8").astype(np.uint64, copy=False)


def below(threshold: int, count: int, words: Words) -> npt.NDArray[np.bool_]:
    """Draw `count` independent events, each of probability exactly `threshold / 2**64`.

    Args:
        threshold: 0..2**64.
        count: how many events.
        words: the source; one word an event.
    """
    if not 0 <= threshold <= WORD_VALUES:
        raise ValueError(f"threshold is {threshold}, must be in 0..2**64")
    drawn = words.words(count)
    if threshold == WORD_VALUES:
        return np.ones(count, dtype=np.bool_)
    return drawn < np.uint64(threshold)


def uniform(bound: int, count: int, words: Words) -> UInt64Array:
    """Draw uint64[count], each exactly uniform on 0..bound-1, by rejection.

    A plain `word % bound` favours small values; words in the incomplete last stretch are drawn again instead.

    Args:
        bound: 1..2**64.
        count: how many draws.
        words: the source; one word a draw, and one more for each rejected word.
    """
    if not 1 <= bound <= WORD_VALUES:
        raise ValueError(f"bound is {bound}, must be in 1..2**64")
    drawn = words.words(count)
    if bound == WORD_VALUES:
        return drawn
    limit = WORD_VALUES - WORD_VALUES % bound
    if limit < WORD_VALUES:
        rejected = np.flatnonzero(drawn >= np.uint64(limit))
        while rejected.size:
            drawn[rejected] = words.words(rejected.size)
            rejected = rejected[drawn[rejected] >= np.uint64(limit)]
    return drawn % np.uint64(bound)


def distinct_words(count: int, words: Words) -> UInt64Array:
    """Draw uint64[count] that are uniform given that no two are equal: keys whose sorted order is a fair shuffle."""
    while True:
        drawn = words.words(count)
        if np.unique(drawn).size == count:
            return drawn


def permutation(count: int, words: Words) -> npt.NDArray[np.intp]:
    """Draw a uniformly random order of 0..count-1: every one of the `count!` orders is equally likely.

    Ranks of distinct uniform keys are exchangeable, so no order is favoured; keys with a tie are drawn anew as a whole,
    because breaking the tie by position would favour the order of arrival.
    """
    return np.argsort(distinct_words(count, words), kind="stable")
