"""The contribution cap: the shuffler forwards at most l reports of one client, chosen at random."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import BoundedWindow
from apache_beam.typehints import with_input_types, with_output_types

from hushcount.arrays import UInt64Array
from hushcount.randomness import Words
from hushcount.reasons import rejected
from hushcount.wire.equality import recurring, run_starts
from hushcount.wire.tags import TAG_BYTES, Tags, split
from shuffler.separate import CLAIM, key_of

_KEY_WORDS = 4


@with_input_types(tuple[int, Iterable[bytes]])
@with_output_types(tuple[int, bytes], counts=tuple[str, int])
class RefuseOverCap(beam.DoFn):
    """Takes (place, blocks of claims); yields (place, tags of the reports over the cap). Later steps see no token.

    A uniform draw, and not the order of arrival, decides which l of a client's reports are kept. A client's retries do
    not count towards the cap, and do not take part in the draw. The tag of a report over the cap is in the output as
    often as the client sent the report, so that another client's report with an equal ciphertext is kept.

    Dropped: reports over the cap, counted in "counts" as "over_cap", and their copies, counted as "duplicate". Dropped
    reports are stored nowhere, because a reader of such a store would see more reports of a client than the cap.

    The draw is a function of the key and of the claims, so an engine that repeats the step gets the same draw.
    """

    def __init__(self, cap: int, key: bytes, places: int) -> None:
        self._cap = cap
        self._key = key
        self._places = places

    def process(
        self, element: tuple[int, Iterable[bytes]], window: BoundedWindow = beam.DoFn.WindowParam
    ) -> Iterator[Any]:
        claims = np.frombuffer(b"".join(element[1]), dtype=CLAIM)
        rows, reports = over_cap(claims, self._cap, key_of(self._key, window))
        if not len(rows):
            return
        refused = claims["tag"][rows]
        yield from split(refused, as_tags(refused), self._places)
        for count in (rejected("over_cap", reports), rejected("duplicate", len(rows) - reports)):
            if count[1]:
                yield TaggedOutput("counts", count)


def as_tags(packed: npt.NDArray[np.bytes_]) -> Tags:
    """Return S16[n] as uint32[n, 4]."""
    return packed.view("<u4").reshape(len(packed), TAG_BYTES // 4)


def cap_key(words: Words) -> bytes:
    """Draw the 256-bit key that determines which reports a run keeps under the cap."""
    return words.words(_KEY_WORDS).tobytes()


def over_cap(claims: np.ndarray[Any, Any], cap: int, key: bytes) -> tuple[npt.NDArray[np.intp], int]:
    """Return the indices of all claims over the cap, copies included, and the number of different claims among them."""
    # Clients with one claim are skipped: in most batches nearly all clients have one.
    rows = np.flatnonzero(recurring(claims["client_token"]))
    # `different` is sorted by client, and has equal claims of a client once.
    different, copy_of = np.unique(claims[rows].view(f"S{CLAIM.itemsize}"), return_inverse=True)
    tokens = different.view(CLAIM)["client_token"]
    begins = run_starts(tokens)
    sizes = np.diff(begins, append=len(tokens))
    crowded = np.flatnonzero(np.repeat(sizes > cap, sizes))
    client = np.repeat(np.arange(len(sizes)), sizes)[crowded]
    order = np.lexsort((draws(different[crowded], key), client))
    # The claims except those with the `cap` smallest draws of each client; `client` is ascending.
    beyond = order[np.arange(len(order)) - np.searchsorted(client, client[order]) >= cap]
    refused = np.zeros(len(different), dtype=np.bool_)
    refused[crowded[beyond]] = True
    return rows[refused[copy_of.reshape(-1)]], int(refused.sum())


def draws(claims: npt.NDArray[np.bytes_], key: bytes) -> UInt64Array:
    """Return uint64[n]: the draw of each claim, which is its BLAKE2b hash under the run's key.

    Senders do not know the key, so they cannot make reports that win the draw. Two draws of one client are equal with
    probability 2**-64; then the claim with the smaller tag is kept first.
    """
    rows = claims.view(f"V{claims.itemsize}")
    return np.frombuffer(
        b"".join(hashlib.blake2b(row.tobytes(), digest_size=8, key=key).digest() for row in rows), dtype="<u8"
    )
