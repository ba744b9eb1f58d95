"""The only source of randomness: unsigned 64-bit words, and the exact draws made from them.

Every random choice about a report, a batch or a release takes its words from an argument, a `Words` source. On every
privacy path that is `SystemWords`. Seeded sources exist in `hushcount/oracles/simulation.py`, which no party imports,
and in the tests.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from nacl._sodium import ffi, lib
from nacl.bindings import randombytes_buf_deterministic

from hushcount.arrays import Octets, UInt64Array

WORD_VALUES = 1 << 64
"""How many values a word can have; a probability is a threshold divided by this number."""
_DIGITS = 8
_EXPANDED_WORDS = 128
_MOST_EXPANDED_WORDS = 1 << 15


class Words(Protocol):
    """A source of independent, uniformly distributed 64-bit words."""

    def words(self, count: int) -> UInt64Array:
        """Return uint64[count], fresh at every call and writable."""
        ...


@dataclass(frozen=True)
class SystemWords:
    """Words from the operating system's cryptographic generator (`os.urandom`).

    A large request is a ChaCha20 stream under a 256-bit key that the system draws for this request alone: three times
    as fast, and no state remains from which an earlier or a later request could be computed.
    """

    def words(self, count: int) -> UInt64Array:
        """Return uint64[count]."""
        if count < _EXPANDED_WORDS:
            return np.frombuffer(bytearray(os.urandom(8 * count)), dtype="<u8").astype(np.uint64, copy=False)
        result = np.empty(count, dtype="<u8")
        for start in range(0, count, _MOST_EXPANDED_WORDS):
            part = result[start : start + _MOST_EXPANDED_WORDS]
            part[:] = np.frombuffer(randombytes_buf_deterministic(8 * len(part), os.urandom(32)), dtype="<u8")
        return result.astype(np.uint64, copy=False)


def drawn_secrets(count: int, size: int) -> Octets:
    """Draw uint8[count, size] from the operating system's generator.

    The array is the only copy: wiping it wipes the secrets.
    """
    rows = np.empty((count, size), dtype=np.uint8)
    lib.randombytes(ffi.from_buffer("unsigned char[]", rows), rows.nbytes)
    return rows


def hex_seed(words: Words) -> str:
    """Draw 256 bits as 64 hexadecimal digits."""
    return words.words(4).tobytes().hex()


def below(threshold: int, count: int, words: Words) -> npt.NDArray[np.bool_]:
    """Draw `count` independent events, each of probability exactly `threshold / 2**64` and from one random word."""
    if not 0 <= threshold <= WORD_VALUES:
        raise ValueError(f"threshold is {threshold}, must be in 0..2**64")
    drawn = words.words(count)
    if threshold == WORD_VALUES:
        return np.ones(count, dtype=np.bool_)
    return drawn < np.uint64(threshold)


def event_bits(threshold: int, count: int, words: Words) -> UInt64Array:
    """Draw uint64[count] of 64 bits each, every bit set independently with probability exactly `threshold / 2**64`.

    Each bit compares a random number of its own with the threshold, from the highest binary digit down; one operation
    compares a digit of all 64 bits. After eight digits one bit in 256 is undecided, and draws its other digits alone:
    about 8.25 random words for each word returned. The threshold is in 1..2**64-1.
    """
    if not 0 < threshold < WORD_VALUES:
        raise ValueError(f"threshold is {threshold}, must be in 1..2**64-1")
    result = np.zeros(count, dtype=np.uint64)
    undecided = np.full(count, WORD_VALUES - 1, dtype=np.uint64)
    for digit in range(63, 63 - _DIGITS, -1):
        drawn = words.words(count)
        if threshold >> digit & 1:
            result |= undecided & ~drawn
            undecided &= drawn
        else:
            undecided &= ~drawn
    open_bits = np.unpackbits(undecided.astype("<u8").view(np.uint8), bitorder="little")
    places = np.flatnonzero(open_bits)
    rest = threshold & ((1 << (64 - _DIGITS)) - 1)
    below_rest = words.words(len(places)) >> np.uint64(_DIGITS) < np.uint64(rest)
    late = np.zeros(len(open_bits), dtype=np.uint8)
    late[places] = below_rest
    return result | np.packbits(late, bitorder="little").view("<u8").astype(np.uint64)


def uniform(bound: int, count: int, words: Words) -> UInt64Array:
    """Draw uint64[count], each exactly uniform on 0..bound-1, by rejection.

    `word % bound` alone would favour small values. So words from the largest multiple of the bound on are drawn again.
    The bound is in 1..2**64.
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


def permutation(count: int, words: Words) -> npt.NDArray[np.intp]:
    """Draw a uniformly random order of 0..count-1: every one of the `count!` orders is equally likely.

    Ranks of distinct uniform keys are exchangeable, so no order is favoured. After a tie all keys are drawn again,
    because breaking the tie by position would favour the order of arrival.
    """
    while True:
        keys = words.words(count)
        order = np.argsort(keys)
        if (np.diff(keys[order]) != 0).all():
            return order
