"""The permutation: a uniformly random order of all sealed reports, over shards and within them.

Every report draws its shard by itself, then every shard is put in uniformly random order. Given the sizes of the
shards all orders of the concatenated output are equally likely, so neither order, shard nor block says when or from
whom a report came. `beam.Reshuffle` promises nothing of the kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apache_beam as beam
import numpy as np

from hushcount.randomness import SystemWords, Words, permutation, uniform
from shuffler.partition import split


class DrawShard(beam.DoFn):
    """Blocks of sealed reports in, (shard, block) out: every report goes to a shard drawn uniformly for it alone."""

    def __init__(self, sealed_bytes: int, shards: int) -> None:
        self._sealed_bytes = sealed_bytes
        self._shards = shards

    def process(self, block: bytes) -> Iterator[tuple[int, bytes]]:
        sealed = np.frombuffer(block, dtype=f"S{self._sealed_bytes}")
        drawn = uniform(self._shards, len(sealed), SystemWords()).astype(np.int64)
        for shard, members in split(drawn):
            yield shard, sealed[members].tobytes()


class PermuteShard(beam.DoFn):
    """(shard, blocks of sealed reports) in, (shard, one block in uniformly random order) out."""

    def __init__(self, sealed_bytes: int) -> None:
        self._sealed_bytes = sealed_bytes

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[tuple[int, bytes]]:
        shard, blocks = element
        yield shard, permuted(b"".join(blocks), self._sealed_bytes, SystemWords())


def permuted(block: bytes, sealed_bytes: int, words: Words) -> bytes:
    """Return the records of a block in uniformly random order."""
    sealed = np.frombuffer(block, dtype=f"S{sealed_bytes}")
    return sealed[permutation(len(sealed), words)].tobytes()
