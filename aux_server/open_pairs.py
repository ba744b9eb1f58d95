"""Open the auxiliary server's own layer of discovery reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import TaggedOutput

from hushcount.arrays import UInt64Array
from hushcount.discovery.pairs import DiscoveryFormat
from hushcount.threads import available_threads, in_chunks
from hushcount.wire.places import split
from hushcount.wire.sealing import Octets
from hushcount.wire.tags import TAG_BYTES, tags
from keys.opening import Outcome, open_bound, outputs
from keys.store import KeyReference


class OpenPairs(beam.DoFn):
    """Blocks of sealed discovery reports in, (place, block of tagged pairs) out; a pair is hash and sealed value.

    Before each pair goes the tag of the report that it was in, by which copies of the report are known; equal reports
    go to one place.

    Dropped, to "dead" as (reason, sealed reports) and counted in "counts": not_opened, wrong_campaign.

    Args:
        key: reference to the auxiliary server's private key, opened in `setup`.
        form: the layout of the campaign's discovery reports.
        places: over how many the reports are spread.
        keys: of the tags of reports; the same for all workers of a job and unknown to senders.
    """

    def __init__(self, key: KeyReference, form: DiscoveryFormat, places: int, keys: UInt64Array) -> None:
        self._reference = key
        self._form = form
        self._places = places
        self._tag_keys = keys

    def setup(self) -> None:
        self._keys = (self._reference.read(),)
        self._threads = available_threads()

    def process(self, block: bytes) -> Iterator[Any]:
        sealed = np.frombuffer(block, dtype=np.uint8).reshape(-1, self._form.sealed_bytes)
        parts = in_chunks(self._open, sealed, self._threads)
        tagged = np.concatenate([tagged for tagged, _ in parts])
        outcomes = np.concatenate([outcome for _, outcome in parts])
        of_report = np.ascontiguousarray(tagged[:, :TAG_BYTES]).view("<u4")
        yield from split(tagged.view(f"V{tagged.shape[1]}").reshape(-1), of_report, self._places)
        for tag, value in outputs(outcomes, sealed):
            yield TaggedOutput(tag, value)

    def _open(self, sealed: Octets) -> tuple[Octets, Octets]:
        """Return the tagged pairs of the accepted reports, and the outcome of every row."""
        plain, outcomes = open_bound(self._keys, sealed, self._form.binding)
        good = outcomes == Outcome.ACCEPTED
        tagged = np.empty((int(good.sum()), TAG_BYTES + self._form.pair_bytes), dtype=np.uint8)
        tagged[:, :TAG_BYTES] = tags(sealed[good], self._tag_keys).view(np.uint8)
        tagged[:, TAG_BYTES:] = plain[good]
        return tagged, outcomes
