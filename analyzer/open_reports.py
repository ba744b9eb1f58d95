"""Opens sealed frequency reports, and passes on the well-formed reports of this campaign."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import TaggedOutput
from apache_beam.typehints import with_input_types, with_output_types

from hushcount.arrays import Octets, Reports
from hushcount.oracles.mechanism import Mechanism
from keys.directories import KeyReference
from keys.opening import Opener, Outcome


@with_input_types(bytes)
@with_output_types(np.ndarray, counts=tuple[str, int], opening=tuple[str, int], dead=tuple[str, bytes])
class OpenReports(beam.DoFn):
    """Takes blocks of sealed reports; yields structured arrays of the well-formed reports.

    Dropped reports go to "dead" as (reason, sealed reports), and are counted in "counts":
        not_opened: not a box for this key: truncated, altered, or sealed to another key.
        wrong_campaign: made under other parameters.
        malformed: a field out of its range, repeated cells, or padding that is not zero.

    The output "opening" has the number of boxes that each engine opened (keys/opening.py).

    `binding` is the 16 bytes at the start of each of the campaign's reports. `boxes` is the number of boxes that the
    job opens in all, 0 if unknown. The key is opened in `setup`.
    """

    def __init__(
        self, key: KeyReference, mechanism: Mechanism, binding: bytes, sealed_bytes: int, boxes: int = 0
    ) -> None:
        self._reference = key
        self._mechanism = mechanism
        self._of_campaign = binding, sealed_bytes, boxes

    def setup(self) -> None:
        self._opener = Opener(self._reference.read(), *self._of_campaign)

    def process(self, block: bytes) -> Iterator[Any]:
        reports, outputs = self._opener.open_block(block, partial(well_formed, self._mechanism))
        yield reports
        for tag, value in outputs:
            yield TaggedOutput(tag, value)


def well_formed(mechanism: Mechanism, _sealed: Octets, content: Octets, outcomes: Octets) -> Reports:
    """Return the well-formed reports, and mark other reports as MALFORMED; `Opener.open_block` calls this function."""
    reports, shaped = mechanism.unpack(content)
    outcomes[~shaped & (outcomes == Outcome.ACCEPTED)] = Outcome.MALFORMED
    return reports[outcomes == Outcome.ACCEPTED]
