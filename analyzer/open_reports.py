"""Open sealed frequency reports and let only those of this campaign and of right shape through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from apache_beam.pvalue import TaggedOutput

from hushcount.fields import Reports
from hushcount.mechanism import Mechanism
from hushcount.outcomes import Outcome
from hushcount.sealing import Octets
from hushcount.threads import available_threads, in_chunks
from keys.private import open_many
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
        for outcome, number in enumerate(np.bincount(outcomes, minlength=len(Outcome)).tolist()):
            reason = Outcome(outcome).name.lower()
            if number or outcome == Outcome.ACCEPTED:
                yield TaggedOutput("counts", (reason, number))
            if number and outcome != Outcome.ACCEPTED:
                yield TaggedOutput("dead", (reason, sealed[outcomes == outcome].tobytes()))

    def _open(self, sealed: Octets) -> tuple[Reports, npt.NDArray[np.uint8]]:
        """Return the accepted reports, and the outcome of every row."""
        result = open_many(self._keys, sealed)
        head = len(self._binding)
        bound = (result.plain[:, :head] == np.frombuffer(self._binding, dtype=np.uint8)).all(axis=1)
        reports, shaped = self._mechanism.unpack(result.plain[:, head:])
        outcomes = np.full(len(sealed), Outcome.ACCEPTED, dtype=np.uint8)
        outcomes[~shaped] = Outcome.MALFORMED
        outcomes[~bound] = Outcome.WRONG_CAMPAIGN
        outcomes[~result.opened] = Outcome.NOT_OPENED
        return reports[outcomes == Outcome.ACCEPTED], outcomes
