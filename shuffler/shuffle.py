"""The shuffler's work on one stream, from envelopes to permuted shards of sealed reports."""

from __future__ import annotations

import apache_beam as beam
from apache_beam.pvalue import AsMultiMap, PCollection

from hushcount.envelopes import TOKEN_BYTES
from hushcount.randomness import SystemWords
from hushcount.tags import tag_keys
from shuffler.cap import RefuseOverCap, cap_key
from shuffler.mix import MixShard
from shuffler.separate import Separate


class Shuffle(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """Blocks of envelopes in; a dict of collections out.

    Out:
        shards: (shard, sealed reports in random order).
        counts: (reason or "accepted", number).

    Dropped and counted, kept nowhere: duplicates, reports over the cap.

    Args:
        sealed_bytes: length of every sealed report of the stream.
        cap: l, reports of one client that are forwarded.
        places: over how many places the work is spread, and how many shards are written.
        meet: how the blocks of a place come together, (place, block) to (place, iterable of blocks): the engine's own
            grouping where it is not given.

    Privacy: what leaves is a random function of the set of ciphertexts that stay; all else was stripped.
    Randomness: the operating system's cryptographic generator. Keys are drawn when the graph is made, so that an engine
        that runs a step again sends every report to the same place and makes the same choice under the cap.
    """

    def __init__(self, sealed_bytes: int, cap: int, places: int, meet: beam.PTransform | None = None) -> None:
        super().__init__()
        self._sealed_bytes = sealed_bytes
        self._cap = cap
        self._places = places
        self._meet = meet or beam.GroupByKey()

    def expand(self, envelopes: PCollection) -> dict[str, PCollection]:
        words = SystemWords()
        keys = tag_keys(self._sealed_bytes, words), tag_keys(TOKEN_BYTES, words)
        separated = envelopes | "separate" >> beam.ParDo(Separate(self._sealed_bytes, self._places, keys)).with_outputs(
            "claims", main="sealed"
        )
        refused = (
            separated.claims
            | "a client's claims meet" >> self._meet
            | "refuse over cap"
            >> beam.ParDo(RefuseOverCap(self._cap, cap_key(words), self._places)).with_outputs("counts", main="tags")
        )
        # A side input, because to flatten them into the reports would copy all of these once more.
        mixed = (
            separated.sealed
            | "equal ciphertexts meet" >> self._meet
            | "mix"
            >> beam.ParDo(MixShard(self._sealed_bytes, keys[0]), AsMultiMap(refused.tags)).with_outputs(
                "counts", main="shards"
            )
        )
        counts = (refused.counts, mixed.counts) | "all counts" >> beam.Flatten()
        return {"shards": mixed.shards, "counts": counts}
