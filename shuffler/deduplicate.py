"""Drop exact duplicates: a retried or replayed upload is byte-identical, two honest reports never are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import TaggedOutput


class DropDuplicates(beam.DoFn):
    """(partition, blocks of sealed reports) in, one block of distinct ones out.

    It runs after the cap, on stripped reports: which of several equal ciphertexts stays makes no difference then, so a
    replay under another client's token can never take the original's place, whenever it came.

    Dropped: copies, counted as "duplicate" in "counts" and kept nowhere, because a list of the reports that were
    retried would tell them apart from the others.
    """

    def __init__(self, sealed_bytes: int) -> None:
        self._sealed_bytes = sealed_bytes

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        sealed = np.frombuffer(b"".join(element[1]), dtype=f"S{self._sealed_bytes}")
        distinct = np.unique(sealed)
        yield distinct.tobytes()
        yield TaggedOutput("counts", ("accepted", len(distinct)))
        if len(distinct) < len(sealed):
            yield TaggedOutput("counts", ("duplicate", len(sealed) - len(distinct)))
