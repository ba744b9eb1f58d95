"""Open the auxiliary server's own layer of discovery reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import TaggedOutput

from aux_server.boxes import mark
from hushcount.discovery import DiscoveryFormat
from hushcount.sealing import available_threads
from keys.private import open_many
from keys.store import KeyReference


class OpenPairs(beam.DoFn):
    """Blocks of sealed discovery reports in, (partition, block of marked pairs) out; a pair is hash and sealed value.

    Before each pair goes the mark of the report that it was in, by which copies of the report are known.

    Dropped, to "dead" as (reason, sealed reports) and counted in "counts": not_opened, wrong_campaign.

    Args:
        key: reference to the auxiliary server's private key, opened in `setup`.
        form: the layout of the campaign's discovery reports.
        partitions: over how many places the bins are spread, by their hash.
    """

    def __init__(self, key: KeyReference, form: DiscoveryFormat, partitions: int) -> None:
        self._reference = key
        self._form = form
        self._partitions = partitions

    def setup(self) -> None:
        self._keys = (self._reference.read(),)
        self._threads = available_threads()

    def process(self, block: bytes) -> Iterator[Any]:
        sealed = np.frombuffer(block, dtype=np.uint8).reshape(-1, self._form.sealed_bytes)
        result = open_many(self._keys, sealed, self._threads)
        binding = np.frombuffer(self._form.binding, dtype=np.uint8)
        bound = (result.plain[:, : len(binding)] == binding).all(axis=1)
        accepted = result.opened & bound
        pairs = result.plain[accepted, len(binding) :]
        marked = np.concatenate([mark(sealed[accepted]), pairs], axis=1)
        # A keyed hash is uniform, but a sender may choose any: skew costs time, never correctness.
        places = pairs[:, 0].astype(np.uint32) * 256 + pairs[:, 1]
        for place in range(self._partitions):
            members = marked[places % self._partitions == place]
            if len(members):
                yield place, members.tobytes()
        yield TaggedOutput("counts", ("accepted", int(accepted.sum())))
        for reason, rows in (("not_opened", ~result.opened), ("wrong_campaign", result.opened & ~bound)):
            if rows.any():
                yield TaggedOutput("dead", (reason, sealed[rows].tobytes()))
                yield TaggedOutput("counts", (reason, int(rows.sum())))
