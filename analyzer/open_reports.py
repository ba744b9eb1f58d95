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
from hushcount.campaigns.campaign import Campaign
from hushcount.oracles.mechanism import Mechanism
from hushcount.strata import stratum_numbers
from keys.directories import KeyReference
from keys.opening import Opener, Outcome


@with_input_types(bytes)
@with_output_types(tuple[int, np.ndarray], counts=tuple[str, int], opening=tuple[str, int], dead=tuple[str, bytes])
class OpenReports(beam.DoFn):
    """Takes blocks of sealed reports; yields (atom, structured array of its well-formed reports).

    The number of its atom is before each report, if the campaign has public axes; else all reports are of atom 0.

    Dropped reports go to "dead" as (reason, sealed reports), and are counted in "counts":
        not_opened: not a box for this key: truncated, altered, or sealed to another key.
        wrong_campaign: made under other parameters.
        malformed: a field out of its range, repeated cells, or padding that is not zero.

    The output "opening" has the number of boxes that each engine opened (keys/opening.py).

    `boxes` is the number of boxes that the job opens in all, 0 if unknown. The key is opened in `setup`.
    """

    def __init__(self, key: KeyReference, campaign: Campaign, boxes: int = 0) -> None:
        self._reference = key
        self._mechanism = campaign.require_frequency()
        self._before = campaign.stratum_bytes("reports")
        record_bytes = self._before + campaign.box_bytes
        self._of_campaign = campaign.binding("reports"), record_bytes, boxes, self._before

    def setup(self) -> None:
        self._opener = Opener(self._reference.read(), *self._of_campaign)

    def process(self, block: bytes) -> Iterator[Any]:
        if self._before:
            rows, outputs = self._opener.open_block(block, partial(_with_atoms, self._mechanism))
            yield from by_atom(rows)
        else:
            reports, outputs = self._opener.open_block(block, partial(well_formed, self._mechanism))
            yield 0, reports
        for tag, value in outputs:
            yield TaggedOutput(tag, value)


def well_formed(mechanism: Mechanism, _sealed: Octets, content: Octets, outcomes: Octets) -> Reports:
    """Return the well-formed reports, and mark other reports as MALFORMED; `Opener.open_block` calls this function."""
    reports, shaped = mechanism.unpack(content)
    outcomes[~shaped & (outcomes == Outcome.ACCEPTED)] = Outcome.MALFORMED
    return reports[outcomes == Outcome.ACCEPTED]


def _with_atoms(
    mechanism: Mechanism, sealed: Octets, content: Octets, outcomes: Octets
) -> np.ndarray[Any, np.dtype[np.void]]:
    reports = well_formed(mechanism, sealed, content, outcomes)
    rows = np.empty(len(reports), dtype=[("atom", np.uint16), ("report", reports.dtype, reports.shape[1:])])
    rows["atom"] = stratum_numbers(sealed[outcomes == Outcome.ACCEPTED])
    rows["report"] = reports
    return rows


def by_atom(rows: np.ndarray[Any, np.dtype[np.void]]) -> Iterator[tuple[int, Reports]]:
    """Yield each atom of rows with the fields `atom` and `report`, and its reports."""
    order = np.argsort(rows["atom"], kind="stable")
    atoms, starts = np.unique(rows["atom"][order], return_index=True)
    parts = np.split(np.ascontiguousarray(rows["report"][order]), starts[1:])
    yield from zip(atoms.tolist(), parts, strict=False)
