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
from keys.opening import Opener, Outcome
from keys.store import KeyReference


class OpenPairs(beam.DoFn):
    """Blocks of sealed discovery reports in, (place, block of tagged pairs) out; a pair is hash and sealed value.

    The tag of its report precedes each pair. Copies of a report have equal tags, and go to one place.

    Dropped, to "dead" as (reason, sealed reports) and counted in "counts": not_opened, wrong_campaign.

    Which engine opened how many boxes goes to "opening" (keys/opening.py).

    `keys` are of the tags of reports: the same for all workers of a job, and unknown to senders. `boxes` is how many
    the job opens in all, 0 if that is not known.
    """

    def __init__(
        self, key: KeyReference, form: DiscoveryFormat, places: int, keys: UInt64Array, boxes: int = 0
    ) -> None:
        self._reference = key
        self._form = form
        self._places = places
        self._tag_keys = keys
        self._boxes = boxes

    def setup(self) -> None:
        self._opener = Opener(self._reference.read(), self._form.binding, self._form.sealed_bytes, self._boxes)

    def process(self, block: bytes) -> Iterator[Any]:
        tagged, outputs = self._opener.open_block(block, self._tagged)
        of_report = np.ascontiguousarray(tagged[:, :TAG_BYTES]).view("<u4")
        yield from split(tagged.view(f"V{tagged.shape[1]}").reshape(-1), of_report, self._places)
        for tag, value in outputs:
            yield TaggedOutput(tag, value)

    def _tagged(self, sealed: Octets, content: Octets, outcomes: Octets) -> Octets:
        good = outcomes == Outcome.ACCEPTED
        tagged = np.empty((int(good.sum()), TAG_BYTES + self._form.pair_bytes), dtype=np.uint8)
        tagged[:, :TAG_BYTES] = tags(sealed[good], self._tag_keys).view(np.uint8)
        tagged[:, TAG_BYTES:] = content[good]
        return tagged
