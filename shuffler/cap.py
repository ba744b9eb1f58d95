"""The contribution cap: at most l reports of one client are forwarded, chosen at random."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import BoundedWindow

from hushcount.arrays import UInt64Array
from hushcount.randomness import Words
from hushcount.reasons import rejected
from hushcount.wire.equality import recurring, run_starts
from hushcount.wire.places import split
from hushcount.wire.tags import TAG_BYTES, Tags
from shuffler.separate import CLAIM
from shuffler.window_keys import key_of

_KEY_WORDS = 4


class RefuseOverCap(beam.DoFn):
    """(place, blocks of claims) in, (place, tags of the reports over the cap) out; the last that sees a token.

    Which l of a client's reports go on is a uniform draw, not the first l: the order of arrival must not decide. A
    client's own retries neither fill the cap nor are drawn for it. A tag is given as often as the client sent the
    report, so that another client's report with an equal ciphertext stays.

    Dropped: reports over the cap, counted as "over_cap" and their copies as "duplicate", both in "counts" and kept
    nowhere, because a cap whose rest is stored is no cap.

    Args:
        cap: l.
        key: from `cap_key`. The draw is a function of it and of the claims, so that an engine that runs the step again
            draws the same.
        places: how many.
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
    """Return S16[n] as the uint32[n, 4] that they are."""
    return packed.view("<u4").reshape(len(packed), TAG_BYTES // 4)


def cap_key(words: Words) -> bytes:
    """Draw the 256-bit key of a run's choices."""
    return words.words(_KEY_WORDS).tobytes()


def over_cap(claims: np.ndarray[Any, Any], cap: int, key: bytes) -> tuple[npt.NDArray[np.intp], int]:
    """Return the indices of the claims over the cap, copies and all, and how many different ones these are.

    Clients with one claim, in most batches nearly all, are passed over.
    """
    rows = np.flatnonzero(recurring(claims["client_token"]))
    # Sorted by client, and each client's different claims once.
    different, copy_of = np.unique(claims[rows].view(f"S{CLAIM.itemsize}"), return_inverse=True)
    tokens = different.view(CLAIM)["client_token"]
    begins = run_starts(tokens)
    sizes = np.diff(begins, append=len(tokens))
    crowded = np.flatnonzero(np.repeat(sizes > cap, sizes))
    client = np.repeat(np.arange(len(sizes)), sizes)[crowded]
    refused = np.zeros(len(different), dtype=np.bool_)
    refused[crowded[_beyond(client, draws(different[crowded], key), cap)]] = True
    return rows[refused[copy_of.reshape(-1)]], int(refused.sum())


def draws(claims: npt.NDArray[np.bytes_], key: bytes) -> UInt64Array:
    """Return uint64[n]: the draw of every claim, BLAKE2b under the run's key.

    Senders do not know the key, so that they cannot choose reports that win. Two draws of one client are equal with
    probability 2**-64, and then the tag decides.
    """
    rows = claims.view(f"V{claims.itemsize}")
    return np.frombuffer(
        b"".join(hashlib.blake2b(row.tobytes(), digest_size=8, key=key).digest() for row in rows), dtype="<u8"
    )


def _beyond(client: npt.NDArray[np.intp], drawn: UInt64Array, cap: int) -> npt.NDArray[np.intp]:
    """Return the indices of all but the `cap` smallest draws of every client; `client` is ascending."""
    order = np.lexsort((drawn, client))
    first = np.searchsorted(client, client[order])
    return order[np.arange(len(order)) - first >= cap]
