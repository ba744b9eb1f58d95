"""Open the auxiliary server's own layer of discovery reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import TaggedOutput

from hushcount.arrays import Octets, UInt64Array
from hushcount.discovery.pairs import DiscoveryFormat
from hushcount.wire.tags import TAG_BYTES, split, tags
from keys.opening import Outcome, open_block, open_bound
from keys.store import KeyReference


class OpenPairs(beam.DoFn):
    """Blocks of sealed discovery reports in, (place, block of tagged pairs) out; a pair is hash and sealed value.

    The tag of its report precedes each pair. Copies of a report have equal tags, and go to one place.

    Dropped, to "dead" as (reason, sealed reports) and counted in "counts": not_opened, wrong_campaign.

    `keys` are of the tags of reports: the same for all workers of a job, and unknown to senders.
    """

    def __init__(self, key: KeyReference, form: DiscoveryFormat, places: int, keys: UInt64Array) -> None:
        self._reference = key
        self._form = form
        self._places = places
        self._tag_keys = keys

    def setup(self) -> None:
        self._key = self._reference.read()

    def process(self, block: bytes) -> Iterator[Any]:
        tagged, outputs = open_block(block, self._form.sealed_bytes, self._open)
        of_report = np.ascontiguousarray(tagged[:, :TAG_BYTES]).view("<u4")
        yield from split(tagged.view(f"V{tagged.shape[1]}").reshape(-1), of_report, self._places)
        for tag, value in outputs:
            yield TaggedOutput(tag, value)

    def _open(self, sealed: Octets) -> tuple[Octets, Octets]:
        plain, outcomes = open_bound(self._key, sealed, self._form.binding)
        good = outcomes == Outcome.ACCEPTED
        tagged = np.empty((int(good.sum()), TAG_BYTES + self._form.pair_bytes), dtype=np.uint8)
        tagged[:, :TAG_BYTES] = tags(sealed[good], self._tag_keys).view(np.uint8)
        tagged[:, TAG_BYTES:] = plain[good]
        return tagged, outcomes
