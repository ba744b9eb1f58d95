"""Tags: 16 bytes that replace a ciphertext if only equality matters. Records with equal tags go to one place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import UInt64Array
from hushcount.randomness import Words
from hushcount.wire.sealing import Octets

MOST_PLACES = 1 << 10
"""With more places, a block would have too few records for each place."""
_BLOCK_BYTES = 1 << 18
"""Flink groups records in buffers, and a buffer must hold a whole record, here a block."""
TAG_BYTES = 16
_PIECE = 4
_HASHES = TAG_BYTES // _PIECE
# The rows of one step, which fit into the cache.
_CHUNK = 1 << 12

Tags = npt.NDArray[np.uint32]
"""uint32[n, 4]."""


def tag_keys(length: int, words: Words) -> UInt64Array:
    """Draw the keys for tags of `length` bytes: uint64[pieces + 1, 4], the same for a whole job, unknown to senders."""
    pieces = -(-length // _PIECE)
    return words.words((pieces + 1) * _HASHES).reshape(pieces + 1, _HASHES)


def tags(octets: Octets, keys: UInt64Array) -> Tags:
    """Return the tag of every row of uint8[n, length].

    A tag is four multilinear hashes, each the high half of `k_0 + sum k_i x_i` modulo 2**64 over 32-bit pieces x_i. The
    hashes are strongly universal under random keys (Lemire, Kaser 2014): two different rows have equal tags with
    probability 2**-128, if whoever chose the rows did not know the keys. docs/mathematics.md section 10 derives it.
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


def as_records(tagged: Tags) -> npt.NDArray[np.bytes_]:
    """Return uint32[n, 4] as S16[n]."""
    return tagged.view(f"S{TAG_BYTES}").reshape(-1)


def as_octets(records: np.ndarray[Any, Any]) -> Octets:
    """Return records of one length as uint8[n, length]."""
    return records.view(np.uint8).reshape(len(records), records.itemsize)


def split(records: np.ndarray[Any, Any], tagged: Tags, places: int) -> Iterator[tuple[int, bytes]]:
    """Yield each place with blocks of its records; blocks are small enough for every engine.

    `tagged`, uint32[n, 4], are the tags; records with equal tags go to one place. There are 1..MOST_PLACES places.
    """
    if places == 1:
        yield from ((0, piece) for piece in _blocks(records))
        return
    drawn = (tagged[:, 0] % np.uint32(places)).astype(np.uint16)
    order = np.argsort(drawn, kind="stable")
    ordered = np.take(records, order)
    counts = np.bincount(drawn, minlength=places)
    stops = np.cumsum(counts)
    for place in np.flatnonzero(counts):
        members = ordered[stops[place] - counts[place] : stops[place]]
        yield from ((int(place), piece) for piece in _blocks(members))


def _blocks(records: np.ndarray[Any, Any]) -> Iterator[bytes]:
    step = max(1, _BLOCK_BYTES // records.itemsize)
    for start in range(0, len(records), step):
        yield records[start : start + step].tobytes()
