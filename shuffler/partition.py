"""Send records that must meet to one place: those of one client token, then those of equal ciphertext."""

from __future__ import annotations

from collections.abc import Iterator

import apache_beam as beam
import numpy as np
import numpy.typing as npt

from hushcount.randomness import UInt64Array, Words


class PartitionBy(beam.DoFn):
    """Blocks of records in, (partition, block) out; records equal in a span of bytes always land in one partition.

    Args:
        record_bytes: length of a record.
        span: first byte and length of what is compared.
        partitions: how many, at least 1.
        keys: one random 64-bit word for each 4 bytes of the span and one more, from `hash_keys`; the same for all
            workers of a job and unknown to senders.
    """

    def __init__(self, record_bytes: int, span: tuple[int, int], partitions: int, keys: tuple[int, ...]) -> None:
        self._record_bytes = record_bytes
        self._span = span
        self._partitions = partitions
        self._keys = keys

    def process(self, block: bytes) -> Iterator[tuple[int, bytes]]:
        if self._partitions == 1:
            yield 0, block
            return
        records = np.frombuffer(block, dtype=np.uint8).reshape(-1, self._record_bytes)
        first, length = self._span
        places = span_hash(records[:, first : first + length], self._keys) % np.uint64(self._partitions)
        for place, members in split(places.astype(np.int64)):
            yield place, records[members].tobytes()


def hash_keys(length: int, words: Words) -> tuple[int, ...]:
    """Draw the keys for a span of so many bytes."""
    return tuple(words.words(-(-length // 4) + 1).tolist())


def span_hash(octets: npt.NDArray[np.uint8], keys: tuple[int, ...]) -> UInt64Array:
    """Return uint64[n] below 2**32: multilinear hashing of uint8[n, length], the high half of `k0 + sum k_i x_i`.

    Strongly universal over 32-bit pieces x_i and random 64-bit keys (Lemire, Kaser 2014): two different records meet by
    chance only, however a sender chose them. Many records that are equal do meet; that is what it is for.
    """
    pieces = np.zeros((len(octets), 4 * (len(keys) - 1)), dtype=np.uint8)
    pieces[:, : octets.shape[1]] = octets
    total = np.full(len(octets), keys[0], dtype=np.uint64)
    for key, column in zip(keys[1:], pieces.view("<u4").T, strict=True):
        total += np.uint64(key) * column
    return total >> np.uint64(32)


def split(places: npt.NDArray[np.int64]) -> Iterator[tuple[int, npt.NDArray[np.intp]]]:
    """Yield each place that occurs, with the indices of the rows that go there."""
    order = np.argsort(places, kind="stable")
    found, starts = np.unique(places[order], return_index=True)
    for place, members in zip(found, np.split(order, starts[1:]), strict=True):
        yield int(place), members
