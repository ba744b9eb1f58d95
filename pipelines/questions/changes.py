"""The changes between two sides that `hushcount ask`, page and alerts show, and changes that would be significant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from hushcount.arrays import FloatArray
from hushcount.questions.changes import changes
from hushcount.questions.comparing import compared
from hushcount.questions.counted import Counted, Group, parted
from hushcount.questions.power import least_of, power_of

CONFIDENCE = 0.95
"""Confidence of each interval; of the significant changes, at most a share 1 - CONFIDENCE is expected to be false."""
RATIO = 1.2
"""The ratio of a rise by 20 %: each row of an answer has the probability that such a change would be significant."""
_WITHIN = {
    **dict.fromkeys(("before", "after"), (0.0, 1.0)),
    **dict.fromkeys(("low", "high", "low_all", "high_all"), (-1.0, 1.0)),
}
"""The range of shares, and of limits of their differences; estimates may lie outside."""
_TYPES: dict[Any, pa.DataType] = {"str": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}


@dataclass(frozen=True)
class Change:
    """The change of a group's share between two sides.

    A share is a part of the reports, within 0..1; `count_before` and `count_after` are the unbiased estimates.

    Attributes:
        group, items: name of the group, and its number of items.
        count_before, count_after: reports that hold an item of the group, which may lie outside 0..reports.
        difference: `after - before` of the unbiased estimates; `low` and `high` are its limits in this row alone.
        low_all, high_all: limits of the difference, corrected for all groups as `significant` is: they exclude 0 if and
            only if the change is significant.
        ratio: `after / before`; infinite if `before` may be 0; its limits `ratio_low` and `ratio_high` are infinite if
            there is no bound.
        adjusted: the p-value after the correction of Benjamini and Hochberg for all groups.
        p_bonferroni: an upper bound of the probability that any group has so small a p-value if nothing changed.
        exact: whether the p-value was computed by Fisher's exact test, or by the law of the mixes' dummies.
        significant: whether `adjusted` is at most 0.05.
        seen_20: the probability that a change by 20 % would have been significant.
        forged_down, forged_up: how far 1 % of all clients, if they forge on both sides, could lower and raise the
            difference; positive.
        least_seen: the least ratio above 1 that would have been significant with probability 0.8.
    """

    group: str
    items: int
    reports_before: int
    reports_after: int
    count_before: float
    count_after: float
    before: float
    after: float
    difference: float
    standard_error: float
    low: float
    high: float
    low_all: float
    high_all: float
    ratio: float
    ratio_low: float
    ratio_high: float
    p_value: float
    adjusted: float
    p_bonferroni: float
    exact: bool
    significant: bool
    forged_down: float
    forged_up: float
    seen_20: float
    least_seen: float


def schema_of_rows(row: type) -> pa.Schema:
    """Return the schema of a table with a row for each object of a dataclass, and a column for each field."""
    return pa.schema([(one.name, _TYPES[one.type]) for one in fields(row)])


SCHEMA = schema_of_rows(Change)
"""Columns of a table with one row for each change."""


def changed(before: Sequence[Counted], after: Sequence[Counted], groups: Sequence[Group]) -> tuple[Change, ...]:
    """Return the change of each group's share between two sides, in the order of the groups.

    A group of public strata that no atom of a side has alone has none.

    Args:
        before, after: the results to add up on each side; the sides are windows of one campaign, or of two campaigns.

    Raises:
        UsageError: for the same reasons as in `hushcount.questions.changes.changes`.
    """
    parts = [part for part in parted(groups, before, after) if all(part.sides)]
    p = [compared(part.sides[0], part.sides[1], part.groups).p_value for part in parts] if len(parts) > 1 else []
    rows = dict[int, Change]()
    for number, part in enumerate(parts):
        beside = np.concatenate([[], *p[:number], *p[number + 1 :]])
        rows |= zip(part.places, _of_part(part.sides[0], part.sides[1], part.groups, beside), strict=True)
    return tuple(rows[place] for place in sorted(rows))


def _of_part(
    before: Sequence[Counted], after: Sequence[Counted], groups: Sequence[Group], beside: FloatArray
) -> tuple[Change, ...]:
    found = changes(before, after, groups, CONFIDENCE, beside)
    own: dict[str, Sequence[Any]] = {
        "group": [group.name for group in groups],
        "items": [len(group.items) for group in groups],
        "reports_before": [found.reports_before] * len(groups),
        "reports_after": [found.reports_after] * len(groups),
        "count_before": (found.before * found.reports_before).tolist(),
        "count_after": (found.after * found.reports_after).tolist(),
        "significant": np.asarray(found.adjusted <= 1.0 - CONFIDENCE).tolist(),
        "seen_20": power_of(found.both, RATIO, found.level).tolist(),
        "least_seen": least_of(found.both, level=found.level).tolist(),
    }
    own |= {name: getattr(found, name).clip(*within).tolist() for name, within in _WITHIN.items()}
    return tuple(map(Change, *(own.get(name) or getattr(found, name).tolist() for name in SCHEMA.names)))


def by_chance(found: Sequence[Change]) -> list[Change]:
    """Return changes in the order of their evidence: first the significant changes, then the others, by p-value."""
    return sorted(found, key=lambda one: (not one.significant, one.p_value, one.group))
