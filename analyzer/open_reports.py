"""Open sealed frequency reports, and pass on the well-formed ones of this campaign."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import TaggedOutput

from hushcount.arrays import Octets, Reports
from hushcount.oracles.mechanism import Mechanism
from keys.opening import Outcome, open_block, open_bound
from keys.store import KeyReference


class OpenReports(beam.DoFn):
    """Blocks of sealed reports in, structured arrays of well-formed reports out.

    Dropped, to "dead" as (reason, sealed reports) and counted in "counts":
        not_opened: not a box for this key: truncated, altered, or sealed to another key.
        wrong_campaign: made under other parameters.
        malformed: a field out of its range, repeated cells, or padding that is not zero.

    `binding` is the 16 bytes at the start of each of the campaign's reports. The key is opened in `setup`.
    """

    def __init__(self, key: KeyReference, mechanism: Mechanism, binding: bytes, sealed_bytes: int) -> None:
        self._reference = key
        self._mechanism = mechanism
        self._binding = binding
        self._sealed_bytes = sealed_bytes

    def setup(self) -> None:
        self._key = self._reference.read()

    def process(self, block: bytes) -> Iterator[Any]:
        reports, outputs = open_block(block, self._sealed_bytes, self._open)
        yield reports
        for tag, value in outputs:
            yield TaggedOutput(tag, value)

    def _open(self, sealed: Octets) -> tuple[Reports, Octets]:
        plain, outcomes = open_bound(self._key, sealed, self._binding)
        reports, shaped = self._mechanism.unpack(plain)
        outcomes[~shaped & (outcomes == Outcome.ACCEPTED)] = Outcome.MALFORMED
        return reports[outcomes == Outcome.ACCEPTED], outcomes
