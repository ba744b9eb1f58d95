"""The shuffler's work on one stream, from envelopes to permuted shards of sealed reports."""

from __future__ import annotations

import apache_beam as beam
from apache_beam.pvalue import PCollection

from hushcount.randomness import SystemWords
from shuffler.cap import CapAndStrip
from shuffler.deduplicate import DropDuplicates
from shuffler.partition import PartitionBy
from shuffler.permute import DrawShard, PermuteShard


class Shuffle(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """Blocks of envelopes in; a dict of collections out.

    Out:
        shards: (shard, sealed reports in random order).
        counts: (reason or "accepted", number).
        dead: (reason, sealed reports) of what was dropped as bad.

    Dropped: duplicates (counted, dead letter), reports over the cap (counted only).

    Args:
        sealed_bytes: length of every sealed report of the stream.
        cap: l, reports of one client that are forwarded.
        partitions: over how many places the work is spread.
        shards: how many output shards are drawn from.

    Privacy: what leaves is a uniformly random order of ciphertexts; all else was stripped.
    Randomness: the operating system's cryptographic generator.
    """

    def __init__(self, sealed_bytes: int, cap: int, partitions: int, shards: int) -> None:
        super().__init__()
        self._sealed_bytes = sealed_bytes
        self._cap = cap
        self._partitions = partitions
        self._shards = shards

    def expand(self, blocks: PCollection) -> dict[str, PCollection]:
        size = self._sealed_bytes
        first, second = SystemWords().words(2).tolist()
        distinct = (
            blocks
            | "by ciphertext" >> beam.ParDo(PartitionBy(size, "sealed", self._partitions, (first, second)))
            | "equal ciphertexts meet" >> beam.GroupByKey()
            | "drop duplicates" >> beam.ParDo(DropDuplicates(size)).with_outputs("dead", "counts", main="blocks")
        )
        capped = (
            distinct.blocks
            | "by client" >> beam.ParDo(PartitionBy(size, "client_token", self._partitions, (first, second)))
            | "a client's reports meet" >> beam.GroupByKey()
            | "cap and strip" >> beam.ParDo(CapAndStrip(size, self._cap)).with_outputs("counts", main="blocks")
        )
        shards = (
            capped.blocks
            | "draw a shard" >> beam.ParDo(DrawShard(size, self._shards))
            | "a shard meets" >> beam.GroupByKey()
            | "permute" >> beam.ParDo(PermuteShard(size))
        )
        counts = (distinct.counts, capped.counts) | "all counts" >> beam.Flatten()
        return {"shards": shards, "counts": counts, "dead": distinct.dead}
