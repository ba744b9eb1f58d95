"""The shuffler's work on one stream, from envelopes to permuted shards of sealed reports."""

from __future__ import annotations

import apache_beam as beam
from apache_beam.pvalue import PCollection

from hushcount.envelopes import TOKEN_BYTES, envelope_dtype
from hushcount.randomness import SystemWords
from shuffler.cap import CapAndStrip
from shuffler.deduplicate import DropDuplicates
from shuffler.partition import PartitionBy, hash_keys
from shuffler.permute import DrawShard, PermuteShard


class Shuffle(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """Blocks of envelopes in; a dict of collections out.

    Out:
        shards: (shard, sealed reports in random order).
        counts: (reason or "accepted", number).

    Dropped and counted, kept nowhere: duplicates, reports over the cap.

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

    def expand(self, envelopes: PCollection) -> dict[str, PCollection]:
        size, words = self._sealed_bytes, SystemWords()
        by_client = PartitionBy(
            envelope_dtype(size).itemsize, (0, TOKEN_BYTES), self._partitions, hash_keys(TOKEN_BYTES, words)
        )
        by_ciphertext = PartitionBy(size, (0, size), self._partitions, hash_keys(size, words))
        capped = (
            envelopes
            | "by client" >> beam.ParDo(by_client)
            | "a client's reports meet" >> beam.GroupByKey()
            | "cap and strip" >> beam.ParDo(CapAndStrip(size, self._cap)).with_outputs("counts", main="blocks")
        )
        distinct = (
            capped.blocks
            | "by ciphertext" >> beam.ParDo(by_ciphertext)
            | "equal ciphertexts meet" >> beam.GroupByKey()
            | "drop duplicates" >> beam.ParDo(DropDuplicates(size)).with_outputs("counts", main="blocks")
        )
        shards = (
            distinct.blocks
            | "draw a shard" >> beam.ParDo(DrawShard(size, self._shards))
            | "a shard meets" >> beam.GroupByKey()
            | "permute" >> beam.ParDo(PermuteShard(size))
        )
        counts = (capped.counts, distinct.counts) | "all counts" >> beam.Flatten()
        return {"shards": shards, "counts": counts}
