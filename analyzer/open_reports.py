"""Open sealed frequency reports and let only those of this campaign and of right shape through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import TaggedOutput

from hushcount.arrays import Reports
from hushcount.oracles.mechanism import Mechanism
from hushcount.threads import available_threads, in_chunks
from hushcount.wire.sealing import Octets
from keys.opening import Outcome, open_bound, outputs
from keys.store import KeyReference


class OpenReports(beam.DoFn):
    """Blocks of sealed reports in, structured arrays of well-formed reports out.

    Dropped, to "dead" as (reason, sealed reports) and counted in "counts":
        not_opened: no box for this key: truncated, altered, sealed to another.
        wrong_campaign: made under other parameters.
        malformed: a field out of its range, cells not distinct, padding not zero.

    Args:
        key: reference to the analyzer's private key, opened in `setup`.
        mechanism: the campaign's.
        binding: the 16 bytes that the campaign's reports begin with.
        sealed_bytes: length of a sealed report.
    """

    def __init__(self, key: KeyReference, mechanism: Mechanism, binding: bytes, sealed_bytes: int) -> None:
        self._reference = key
        self._mechanism = mechanism
        self._binding = binding
        self._sealed_bytes = sealed_bytes

    def setup(self) -> None:
        self._keys = (self._reference.read(),)
        self._threads = available_threads()

    def process(self, block: bytes) -> Iterator[Any]:
        sealed = np.frombuffer(block, dtype=np.uint8).reshape(-1, self._sealed_bytes)
        parts = in_chunks(self._open, sealed, self._threads)
        yield np.concatenate([reports for reports, _ in parts])
        outcomes = np.concatenate([outcome for _, outcome in parts])
        for tag, value in outputs(outcomes, sealed):
            yield TaggedOutput(tag, value)

    def _open(self, sealed: Octets) -> tuple[Reports, Octets]:
        """Return the accepted reports, and the outcome of every row."""
        plain, outcomes = open_bound(self._keys, sealed, self._binding)
        reports, shaped = self._mechanism.unpack(plain)
        outcomes[~shaped & (outcomes == Outcome.ACCEPTED)] = Outcome.MALFORMED
        return reports[outcomes == Outcome.ACCEPTED], outcomes
