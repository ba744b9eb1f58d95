"""Drop exact duplicates: a retried or replayed upload is byte-identical, two honest reports never are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import TaggedOutput

from hushcount.envelopes import envelope_dtype


class DropDuplicates(beam.DoFn):
    """(partition, blocks of envelopes) in, one block out; every later copy of a ciphertext is dropped.

    Of several copies the one received first stays, whoever sent it: a copy cannot be older than its original, so a
    replay under another client's token never takes the original's place.

    Dropped: copies, to "dead" as ("duplicate", sealed bytes) without sender or time, and counted in "counts".
    """

    def __init__(self, sealed_bytes: int) -> None:
        self._sealed_bytes = sealed_bytes

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        envelopes = np.frombuffer(b"".join(element[1]), dtype=envelope_dtype(self._sealed_bytes))
        first = first_copies(envelopes)
        copies = np.ones(len(envelopes), dtype=np.bool_)
        copies[first] = False
        yield envelopes[first].tobytes()
        if copies.any():
            yield TaggedOutput("dead", ("duplicate", envelopes["sealed"][copies].tobytes()))
            yield TaggedOutput("counts", ("duplicate", int(copies.sum())))


def first_copies(envelopes: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Return the index of the earliest envelope of every distinct ciphertext."""
    by_time = np.argsort(envelopes["received_ms"], kind="stable")
    sealed = np.ascontiguousarray(envelopes["sealed"][by_time])
    # unique sorts stably when it returns indices, so the index is that of the earliest.
    _, first = np.unique(sealed, return_index=True)
    return by_time[first]
