"""Tags: 16 bytes that stand for a ciphertext where only equality matters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hushcount.arrays import UInt64Array
from hushcount.randomness import Words
from hushcount.wire.sealing import Octets

TAG_BYTES = 16
_PIECE = 4
_HASHES = TAG_BYTES // _PIECE
# Rows at a time, which fit the cache.
_CHUNK = 1 << 12

Tags = npt.NDArray[np.uint32]
"""uint32[n, 4]."""


def tag_keys(length: int, words: Words) -> UInt64Array:
    """Draw the keys for tags of `length` bytes: uint64[pieces + 1, 4], the same for a whole job, unknown to senders."""
    pieces = -(-length // _PIECE)
    return words.words((pieces + 1) * _HASHES).reshape(pieces + 1, _HASHES)


def tags(octets: Octets, keys: UInt64Array) -> Tags:
    """Return the tag of every row of uint8[n, length].

    Four times multilinear hashing, each the high half of `k_0 + sum k_i x_i` modulo 2**64 over 32-bit pieces x_i.
    Strongly universal under random keys (Lemire, Kaser 2014): two different rows have equal tags with probability
    2**-128, if whoever chose them did not know the keys.
    """
    count, length = octets.shape
    result = np.empty((count, _HASHES), dtype="<u4")
    for start in range(0, count, _CHUNK):
        part = octets[start : start + _CHUNK]
        padded = np.zeros((len(part), _PIECE * (len(keys) - 1)), dtype=np.uint8)
        padded[:, :length] = part
        sums = padded.view("<u4").astype(np.uint64) @ keys[1:] + keys[0]
        result[start : start + _CHUNK] = sums >> np.uint64(32)
    return result
