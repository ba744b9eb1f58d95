"""Count equal pairs where they meet, copies of a report once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import TaggedOutput

from aux_server.bins import bins_of


class CountBins(beam.DoFn):
    """(place, blocks of tagged pairs) in, Bins out.

    Copies of a report are in one place, because they hold one pair. They are no longer accepted, as which they were
    opened, but duplicates: "counts" is told so.

    Args:
        pair_bytes: length of a pair, hash and sealed value.
    """

    def __init__(self, pair_bytes: int) -> None:
        self._pair_bytes = pair_bytes

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        bins = bins_of(b"".join(element[1]), self._pair_bytes)
        yield bins
        if bins.copies:
            yield TaggedOutput("counts", ("accepted", -bins.copies))
            yield TaggedOutput("counts", ("duplicate", bins.copies))
