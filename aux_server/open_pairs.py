"""Opens the auxiliary server's own layer of discovery reports."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import TaggedOutput
from apache_beam.typehints import with_input_types, with_output_types

from hushcount.arrays import Octets, UInt64Array
from hushcount.discovery.pairs import DiscoveryFormat
from hushcount.wire.tags import TAG_BYTES, split, tags
from keys.directories import KeyReference
from keys.opening import Opener, Outcome


@with_input_types(bytes)
@with_output_types(tuple[int, bytes], counts=tuple[str, int], opening=tuple[str, int], dead=tuple[str, bytes])
class OpenPairs(beam.DoFn):
    """Takes blocks of sealed discovery reports; yields (place, block of tagged pairs). A pair is hash and sealed value.

    In a block, each pair follows the tag of its report. Copies of a report have equal tags, so they go to the same
    place.

    Dropped reports go to "dead" as (reason, sealed reports), and are counted in "counts" as not_opened or
    wrong_campaign.

    The output "opening" has the number of boxes that each engine opened (keys/opening.py).

    `keys` are for the tags of reports. These keys are the same for all workers of a job, and unknown to senders.
    `boxes` is the number of boxes that the job opens in all, 0 if unknown.
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
        tagged, outputs = self._opener.open_block(block, partial(tagged_pairs, self._tag_keys))
        of_report = np.ascontiguousarray(tagged[:, :TAG_BYTES]).view("<u4")
        yield from split(tagged.view(f"V{tagged.shape[1]}").reshape(-1), of_report, self._places)
        for tag, value in outputs:
            yield TaggedOutput(tag, value)


def tagged_pairs(keys: UInt64Array, sealed: Octets, content: Octets, outcomes: Octets) -> Octets:
    """Return the pairs of the opened reports, each after its report's tag; `Opener.open_block` calls this."""
    good = outcomes == Outcome.ACCEPTED
    return np.concatenate([tags(sealed[good], keys).view(np.uint8), content[good]], axis=1)
