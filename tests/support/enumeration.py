"""Every well-formed report of a small mechanism, from its fields alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import numpy as np

from hushcount.fields import Field, Reports
from hushcount.mechanism import Mechanism
from hushcount.randomness import UInt64Array
from hushcount.responders.base import supports


def all_reports(mechanism: Mechanism) -> Reports:
    """Return every report there is, each once."""
    rows = list(product(*(_values(field) for field in mechanism.fields)))
    return np.array(rows, dtype=mechanism.report)


def supported(mechanism: Mechanism, reports: Reports, items: UInt64Array) -> np.ndarray[Any, Any]:
    """Return bool[reports, items]: which report supports which item, one pair at a time."""
    columns = [
        supports(mechanism.responder, reports, mechanism.encoder.cell(reports, np.full(len(reports), item, np.uint64)))
        for item in items
    ]
    return np.stack(columns, axis=1)


def laws(mechanism: Mechanism, reports: Reports, items: UInt64Array) -> np.ndarray[Any, Any]:
    """Return float64[items, reports]: the probability of every report, given each item."""
    return np.stack([np.exp(mechanism.log_prob(reports, int(item))) for item in items])


def _values(field: Field) -> Iterator[Any]:
    allowed = range(field.least, field.bound)
    return iter(allowed) if field.count == 1 else combinations(allowed, field.count)
