"""Send envelopes that must meet to one place: those of equal ciphertext, then those of equal client token."""

from __future__ import annotations

from collections.abc import Iterator

import apache_beam as beam
import numpy as np
import numpy.typing as npt

from hushcount.envelopes import envelope_dtype
from hushcount.randomness import UInt64Array

_HASHED_BYTES = 16


class PartitionBy(beam.DoFn):
    """Blocks of envelopes in, (partition, block) out; equal columns always land in one partition.

    Args:
        sealed_bytes: length of a sealed report.
        column: "sealed" or "client_token"; its first 16 bytes are hashed.
        partitions: how many, at least 1.
        salt: two random words, the same for all workers of a job, so that no sender can aim at one partition.
    """

    def __init__(self, sealed_bytes: int, column: str, partitions: int, salt: tuple[int, int]) -> None:
        self._sealed_bytes = sealed_bytes
        self._column = column
        self._partitions = partitions
        self._salt = salt

    def process(self, block: bytes) -> Iterator[tuple[int, bytes]]:
        if self._partitions == 1:
            yield 0, block
            return
        envelopes = np.frombuffer(block, dtype=envelope_dtype(self._sealed_bytes))
        column = np.ascontiguousarray(envelopes[self._column]).view(np.uint8).reshape(len(envelopes), -1)
        places = column_hash(column[:, :_HASHED_BYTES], self._salt) % np.uint64(self._partitions)
        for place, members in split(places.astype(np.int64)):
            yield place, envelopes[members].tobytes()


def column_hash(octets: npt.NDArray[np.uint8], salt: tuple[int, int]) -> UInt64Array:
    """Return uint64[n]: a salted multiply-and-fold hash of uint8[n, 16]; spreads load, decides nothing."""
    words = np.ascontiguousarray(octets).view("<u8").astype(np.uint64)
    mixed = (words[:, 0] ^ np.uint64(salt[0])) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(32)) ^ words[:, 1] ^ np.uint64(salt[1])) * np.uint64(0xD6E8FEB86659FD93)
    return mixed ^ (mixed >> np.uint64(32))


def split(places: npt.NDArray[np.int64]) -> Iterator[tuple[int, npt.NDArray[np.intp]]]:
    """Yield each place that occurs, with the indices of the rows that go there."""
    order = np.argsort(places, kind="stable")
    found, starts = np.unique(places[order], return_index=True)
    for place, members in zip(found, np.split(order, starts[1:]), strict=True):
        yield int(place), members
