"""The permutation: an order of all sealed reports that tells nothing about their arrival.

The shard of a report is a keyed hash of its ciphertext, under keys drawn for the run, and the order within each shard
is uniformly random. The output is therefore a random function of the set of ciphertexts that stay: its law is the same
for all senders, times, orders and files. `beam.Reshuffle` promises nothing like that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import BoundedWindow

from hushcount.arrays import UInt64Array
from hushcount.randomness import SystemWords, Words, permutation
from hushcount.reasons import rejected
from hushcount.wire.equality import among, first_of_equal, first_words
from hushcount.wire.tags import TAG_BYTES, tags
from shuffler.separate import tag_keys_of


class MixShard(beam.DoFn):
    """(shard, {"sealed": blocks, "refused": tags, "released": blocks}) in, (shard, one block of what stays) out.

    What stays is in uniformly random order. "released" are earlier forwarded reports, if any: no copy of them leaves.

    A retried or replayed upload is byte-identical; two honest reports never are. Copies are dropped after the cap, when
    reports are stripped: it makes no difference which of several equal ciphertexts stays, so a replay under another
    client's token can never take the original's place, whenever it came.

    Dropped: reports that the cap refused and counted; and copies, counted as "duplicate" in "counts". Copies are kept
    nowhere: a list of the reports that were retried would tell them apart from the others.
    """

    def __init__(self, sealed_bytes: int, keys: UInt64Array) -> None:
        self._sealed_bytes = sealed_bytes
        self._keys = keys

    def process(
        self, element: tuple[int, Mapping[str, Iterable[bytes]]], window: BoundedWindow = beam.DoFn.WindowParam
    ) -> Iterator[Any]:
        shard, met = element
        sealed = np.frombuffer(b"".join(met["sealed"]), dtype=f"S{self._sealed_bytes}")
        refused = np.frombuffer(b"".join(met["refused"]), dtype=f"S{TAG_BYTES}")
        if len(refused):
            sealed = sealed[allowed(sealed, refused, tag_keys_of(self._keys, window))]
        fresh = first_unreleased(sealed, met["released"]) if "released" in met else first_of_equal(sealed)
        yield shard, sealed[permuted(fresh, SystemWords())].tobytes()
        yield TaggedOutput("counts", ("accepted", len(fresh)))
        if len(fresh) < len(sealed):
            yield TaggedOutput("counts", rejected("duplicate", len(sealed) - len(fresh)))


def first_unreleased(sealed: npt.NDArray[np.bytes_], released: Iterable[bytes]) -> npt.NDArray[np.intp]:
    """Return the ascending indices of one report of every distinct ciphertext of S[n] that no block holds.

    Blocks are read one by one and not kept: all reports released in days are many more than the sealed ones now.
    """
    first = first_of_equal(sealed)
    words = first_words(sealed)[first]
    ordered = np.sort(words)
    blocks = (np.frombuffer(block, dtype=sealed.dtype) for block in released)
    copies = np.concatenate([sealed[:0], *(block[among(first_words(block), ordered)] for block in blocks)])
    stays = ~among(words, np.sort(first_words(copies)))
    again = np.flatnonzero(~stays)
    # Of equal reports the first stays, and the released ones come first.
    fresh = first_of_equal(np.concatenate([copies, sealed[first[again]]]))
    stays[again[fresh[fresh >= len(copies)] - len(copies)]] = True
    return first[stays]


def allowed(sealed: npt.NDArray[np.bytes_], refused: npt.NDArray[np.bytes_], keys: UInt64Array) -> npt.NDArray[np.intp]:
    """Return the indices of the reports of S[n] that stay; S16[r] has a tag once for each of its refused reports."""
    octets = sealed.view(np.uint8).reshape(len(sealed), sealed.itemsize)
    tagged = tags(octets, keys).view(f"S{TAG_BYTES}").reshape(-1)
    stays = np.ones(len(sealed), dtype=np.bool_)
    named = np.flatnonzero(np.isin(first_words(tagged), first_words(refused)))
    _, tag = np.unique(np.concatenate([refused, tagged[named]]), return_inverse=True)
    times = np.bincount(tag[: len(refused)], minlength=tag.max() + 1)
    tag = tag[len(refused) :]
    order = np.argsort(tag, kind="stable")
    copy = np.arange(len(order)) - np.searchsorted(tag[order], tag[order])
    stays[named[order[copy < times[tag[order]]]]] = False
    return np.flatnonzero(stays)


def permuted(records: npt.NDArray[np.intp], words: Words) -> npt.NDArray[np.intp]:
    """Return the elements of an array in uniformly random order."""
    return records[permutation(len(records), words)]
