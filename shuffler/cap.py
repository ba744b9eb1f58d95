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
    """(partition, blocks of envelopes) in, one block of sealed reports out: the last place that sees a token.

    Which l of a client's reports go on is a uniform draw, not the first l: the order of arrival must not decide.

    Dropped: reports over the cap, counted as "over_cap" in "counts" and not kept anywhere, because a cap whose rest
    is stored is no cap.
    """

    def __init__(self, sealed_bytes: int, cap: int) -> None:
        self._sealed_bytes = sealed_bytes
        self._cap = cap

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        envelopes = np.frombuffer(b"".join(element[1]), dtype=envelope_dtype(self._sealed_bytes))
        kept = capped(envelopes, self._cap, SystemWords())
        yield envelopes["sealed"][kept].tobytes()
        yield TaggedOutput("counts", ("accepted", int(kept.sum())))
        if not kept.all():
            yield TaggedOutput("counts", ("over_cap", int((~kept).sum())))


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
