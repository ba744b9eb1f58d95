"""Counts equal pairs. Equal reports are grouped first, so that copies of a report count once, and then equal pairs.

Half of all reports may hold one value. So the reports are spread over places evenly, by their own tags and not by their
pairs. Each place then sends one record with a pair and its count to the pair's place, however many reports have this
pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import PCollection, TaggedOutput
from apache_beam.typehints import with_input_types, with_output_types

from aux_server.bins import Bins, bins_of, counted_dtype, united
from hushcount.arrays import UInt64Array
from hushcount.randomness import SystemWords
from hushcount.reasons import rejected
from hushcount.wire.tags import split, tag_keys, tags


class CountBins(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """Takes (place, block of tagged pairs); gives a dict of `bins` and `counts`.

    Copies of a report were counted as accepted when they were opened. The output "counts" subtracts the copies from
    "accepted", and counts them as duplicates.

    `grouping` groups the blocks of a place: (place, block) to (place, iterable of blocks); by default GroupByKey.
    """

    def __init__(self, pair_bytes: int, places: int, grouping: beam.PTransform | None = None) -> None:
        super().__init__()
        self._pair_bytes = pair_bytes
        self._places = places
        self._grouping = grouping or beam.GroupByKey()

    def expand(self, pairs: PCollection) -> dict[str, PCollection]:
        keys = tag_keys(self._pair_bytes, SystemWords())
        single = (
            pairs
            | "equal reports meet" >> self._grouping
            | "count once"
            >> beam.ParDo(CountOnce(self._pair_bytes, self._places, keys)).with_outputs("counts", main="bins")
        )
        bins = (
            single.bins
            | "equal pairs meet" >> self._grouping
            | "add up" >> beam.Map(_add_up, self._pair_bytes).with_output_types(Bins)
        )
        return {"bins": bins, "counts": single.counts}


@with_input_types(tuple[int, Iterable[bytes]])
@with_output_types(tuple[int, bytes], counts=tuple[str, int])
class CountOnce(beam.DoFn):
    """Takes (place, blocks of tagged pairs); yields (place of pairs, the bins of these pairs in one block).

    `keys` are for the tags of pairs; these tags only spread the bins over places. The keys are secret, because a forger
    chooses the hashes of its pairs, and could otherwise send all its pairs to one place.
    """

    def __init__(self, pair_bytes: int, places: int, keys: UInt64Array) -> None:
        self._pair_bytes = pair_bytes
        self._places = places
        self._keys = keys

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        bins = bins_of(b"".join(element[1]), self._pair_bytes)
        parts = np.empty(len(bins.pairs), dtype=counted_dtype(self._pair_bytes))
        parts["pair"], parts["count"] = bins.pairs, bins.counts
        pairs = parts.view(np.uint8).reshape(len(parts), parts.itemsize)[:, : self._pair_bytes]
        yield from split(parts, tags(pairs, self._keys), self._places)
        if bins.copies:
            yield TaggedOutput("counts", ("accepted", -bins.copies))
            yield TaggedOutput("counts", rejected("duplicate", bins.copies))


def _add_up(element: tuple[int, Iterable[bytes]], pair_bytes: int) -> Bins:
    return united(b"".join(element[1]), pair_bytes)
