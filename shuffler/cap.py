"""The contribution cap: at most l reports of one client are forwarded, chosen at random, and stripped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from apache_beam.pvalue import TaggedOutput

from hushcount.envelopes import TOKEN_BYTES, envelope_dtype
from hushcount.randomness import SystemWords, Words, distinct_words


class CapAndStrip(beam.DoFn):
    """(partition, blocks of envelopes) in, one block of sealed reports out: the only place that looks at a token.

    Which l of a client's reports go on is a uniform draw, not the first l: the order of arrival must not decide. A
    client's own retries are dropped before, so that they neither fill the cap nor are drawn for it.

    Dropped: copies within one client, counted as "duplicate", and reports over the cap, counted as "over_cap", both in
    "counts" and kept nowhere, because a cap whose rest is stored is no cap.
    """

    def __init__(self, sealed_bytes: int, cap: int) -> None:
        self._sealed_bytes = sealed_bytes
        self._cap = cap

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        envelopes = np.frombuffer(b"".join(element[1]), dtype=envelope_dtype(self._sealed_bytes))
        single = envelopes[first_copies(envelopes)]
        kept = capped(single, self._cap, SystemWords())
        yield np.ascontiguousarray(single["sealed"][kept]).tobytes()
        for reason, number in (
            ("duplicate", len(envelopes) - len(single)),
            ("over_cap", len(single) - int(kept.sum())),
        ):
            if number:
                yield TaggedOutput("counts", (reason, number))


def first_copies(envelopes: np.ndarray[Any, Any]) -> npt.NDArray[np.intp]:
    """Return the index of one envelope of every distinct pair of client token and ciphertext."""
    pair = np.dtype([("client_token", f"S{TOKEN_BYTES}"), ("sealed", envelopes.dtype["sealed"])])
    pairs = np.empty(len(envelopes), dtype=pair)
    for name in ("client_token", "sealed"):
        pairs[name] = envelopes[name]
    return np.unique(pairs.view(f"S{pair.itemsize}"), return_index=True)[1]


def capped(envelopes: np.ndarray[Any, Any], cap: int, words: Words) -> npt.NDArray[np.bool_]:
    """Return bool[n]: a uniformly random choice of at most `cap` envelopes of every client token."""
    octets = np.ascontiguousarray(envelopes["client_token"]).view(np.uint8).reshape(len(envelopes), TOKEN_BYTES)
    tokens = octets.view("<u8")
    order = np.lexsort((distinct_words(len(envelopes), words), tokens[:, 1], tokens[:, 0]))
    ordered = tokens[order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    starts = np.flatnonzero(begins)
    rank = np.arange(len(order)) - starts[np.cumsum(begins) - 1]
    kept = np.zeros(len(order), dtype=np.bool_)
    kept[order[rank < cap]] = True
    return kept
