"""The only source of randomness: unsigned 64-bit words, and exact random draws that are made from these words.

Every random choice about a report, a batch or a release takes its words from an argument, which is a `Words` source.
Wherever privacy depends on the choice, this source is `SystemWords`. Seeded sources exist only in the tests and in
`hushcount/oracles/simulation.py`, which no party imports.
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
        """Return uint64[count], a new writable array of new words at every call."""
        ...


@dataclass(frozen=True)
class SystemWords:
    """Words from the operating system's cryptographic generator (`os.urandom`).

    A large request gets its words from a ChaCha20 stream under 256-bit keys that the system draws for this request
    alone. The stream is three times as fast as asking the system for all words, and no state remains from which the
    words of an earlier or a later request could be computed.
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

    The returned array is the only copy of the secrets, so wiping the array wipes the secrets.
    """
    rows = np.empty((count, size), dtype=np.uint8)
    lib.randombytes(ffi.from_buffer("unsigned char[]", rows), rows.nbytes)
    return rows


def hex_seed(words: Words) -> str:
    """Draw 256 bits as 64 hexadecimal digits."""
    return words.words(4).tobytes().hex()


def below(threshold: int, count: int, words: Words) -> npt.NDArray[np.bool_]:
    """Draw `count` independent events, each with probability exactly `threshold / 2**64` and from one random word."""
    if not 0 <= threshold <= WORD_VALUES:
        raise ValueError(f"threshold is {threshold}, must be in 0..2**64")
    drawn = words.words(count)
    if threshold == WORD_VALUES:
        return np.ones(count, dtype=np.bool_)
    return drawn < np.uint64(threshold)


def event_bits(threshold: int, count: int, words: Words) -> UInt64Array:
    """Draw uint64[count] of 64 bits each, every bit set independently with probability exactly `threshold / 2**64`.

    For each bit, a random number is compared with the threshold, from the highest binary digit down; one operation
    compares one digit for all 64 bits of a word. After eight digits one bit in 256 is undecided, and the other digits
    are drawn only for undecided bits, so each returned word takes about 8.25 random words. The threshold is in
    1..2**64-1.
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

    `word % bound` alone would make small values more probable. To make all values equally probable, a word that is not
    below the largest multiple of the bound is drawn again. The bound is in 1..2**64.
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

    Ranks of distinct uniform keys are exchangeable, so all orders are equally probable. If two keys are equal, all keys
    are drawn again, because sorting equal keys by position would make the order of arrival more probable.
    """
    while True:
        keys = words.words(count)
        order = np.argsort(keys)
        if (np.diff(keys[order]) != 0).all():
            return order
