"""Every well-formed report of a small mechanism, from its fields alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from hushcount.arrays import Reports, UInt64Array
from hushcount.oracles.encoders.line import Line
from hushcount.oracles.mechanism import Mechanism
from hushcount.wire.fields import Field, Number, SubsetOf, report_dtype


def all_reports(mechanism: Mechanism) -> Reports:
    """Return every report there is, each once."""
    return all_values(mechanism.fields)


def all_values(fields: Sequence[Field]) -> Reports:
    """Return every combination of the values of fields, each once."""
    rows = list(product(*(_values(field) for field in fields)))
    return np.array(rows, dtype=report_dtype(fields))


def supported(mechanism: Mechanism, reports: Reports, items: UInt64Array) -> np.ndarray[Any, Any]:
    """Return bool[reports, items]: which report supports which item, one pair at a time."""
    return np.stack([mechanism.supports(reports, repeated(item, len(reports))) for item in items], axis=1)


def scores(mechanism: Mechanism, reports: Reports, items: UInt64Array) -> np.ndarray[Any, Any]:
    """Return [reports, items]: 1 where a report supports an item; with blocks, -1 where it opposes the item.

    On a line a report's scores are those of a tally that has this report only.
    """
    if isinstance(mechanism.encoder, Line):
        return np.stack([_of_one(mechanism, reports[place : place + 1], items) for place in range(len(reports))])
    support = supported(mechanism, reports, items).astype(np.int64)
    if mechanism.law.least == 0.0:
        return support
    opposite = [mechanism.encoder.cell(reports, repeated(item, len(reports))) ^ np.uint64(1) for item in items]
    return support - np.stack([mechanism.responder.supports(reports, cells) for cells in opposite], axis=1)


def _of_one(mechanism: Mechanism, report: Reports, items: UInt64Array) -> np.ndarray[Any, Any]:
    tally = mechanism.new_tally(items)
    mechanism.accumulate(tally, report, items)
    return mechanism.encoder.scores(tally, items, items)


def repeated(item: int, count: int) -> UInt64Array:
    """Return uint64[count], the item in every place."""
    return np.full(count, item, dtype=np.uint64)


def laws(mechanism: Mechanism, reports: Reports, items: UInt64Array) -> np.ndarray[Any, Any]:
    """Return float64[items, reports]: the probability of every report, given each item."""
    return np.stack([np.exp(mechanism.log_prob(reports, int(item))) for item in items])


def _values(field: Field) -> Iterator[Any]:
    if isinstance(field, Number):
        return iter(range(field.least, field.bound))
    if isinstance(field, SubsetOf):
        return combinations(range(field.bound), field.count)
    return (tuple(bits.to_bytes((field.count + 7) // 8, "little")) for bits in range(field.values))
