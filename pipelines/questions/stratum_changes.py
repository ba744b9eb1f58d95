"""hushcount ask compare --against: the shares of groups in one stratum, compared with those in another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hushcount.errors import UsageError
from hushcount.questions.changes import benjamini_hochberg, bonferroni, corrected
from hushcount.questions.counted import Counted, Group
from hushcount.questions.power import level_of
from hushcount.questions.stratum_changes import stratum_pairs
from hushcount.strata import Where
from pipelines.questions.breakdown import Breakdown, text_of
from pipelines.questions.changes import CONFIDENCE, schema_of_rows


@dataclass(frozen=True)
class StratumChange:
    """How much larger a group's share of the reports is in one stratum than in another.

    Attributes:
        group, items: name of the group, and its number of items.
        stratum_before, stratum_after: estimates of all reports of each stratum.
        count_before, count_after: estimates of the reports that hold an item of the group.
        before, after: shares of the stratum's reports, within 0..1.
        difference: `after - before` of the unbiased estimates; `low` and `high` are its limits in this row alone.
        low_all, high_all: limits of the difference, corrected for all groups as `significant` is.
        adjusted, p_bonferroni, significant: as in `Change`.

    Shares and limits are NaN, and p-values 1, if the count of a stratum is not significantly above 0 among all rows.
    """

    group: str
    items: int
    stratum_before: float
    stratum_after: float
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
    p_value: float
    adjusted: float
    p_bonferroni: float
    significant: bool

    @property
    def is_known(self) -> bool:
        """Whether there are shares."""
        return not np.isnan(self.difference)


_SCHEMA = schema_of_rows(StratumChange)


@dataclass(frozen=True)
class StratumSides:
    """Two strata to compare: the coordinates of each that the other has not, and what both have."""

    before: Where
    after: Where
    both: Breakdown

    @classmethod
    def of(cls, of: Breakdown, against: Where) -> StratumSides:
        """Return the strata of `--where` and of `--against`, which changes some of the coordinates of `--where`.

        UsageError: `--where` lacks an axis of `--against`, or has the same coordinate.
        """
        where = dict(of.where)
        for axis, value in against:
            if where.get(axis, value) == value:
                raise UsageError(
                    f"--against is {axis}={value}, must be another coordinate on an axis of --where, as --where "
                    "platform=linux --against platform=ios"
                )
        changed = dict(against)
        after = tuple((axis, value) for axis, value in of.where if axis in changed)
        both = tuple((axis, value) for axis, value in of.where if axis not in changed)
        return cls(tuple((axis, changed[axis]) for axis, _ in after), after, Breakdown(of.by, both))

    @property
    def names(self) -> tuple[str, str]:
        """Names of both strata."""
        return text_of(self.before), text_of(self.after)


def stratum_changes(
    results: Sequence[Counted], groups: Sequence[Group], sides: StratumSides
) -> tuple[StratumChange, ...]:
    """Return how much larger each group's share is in the stratum after than in the one before, of results added up.

    Args:
        groups: of the strata that both sides have in common.

    Raises:
        UsageError: as in `hushcount.questions.stratum_changes.stratum_pairs` and `Breakdown.groups`.
    """
    before, after = (Breakdown(where=side).groups(groups, results) for side in (sides.before, sides.after))
    pairs, looks, alpha = stratum_pairs(results, before, after), len(groups), 1.0 - CONFIDENCE
    known = pairs.before.known(CONFIDENCE, looks) & pairs.after.known(CONFIDENCE, looks)
    p = np.where(known, pairs.p_value, 1.0)
    adjusted, difference = benjamini_hochberg(p), pairs.after.share - pairs.before.share
    low, high = pairs.difference(alpha / 2.0)
    low_all, high_all = corrected(pairs.difference, difference, adjusted <= alpha, level_of(adjusted, alpha))
    shares = (np.clip(side.share, 0.0, 1.0) for side in (pairs.before, pairs.after))
    limits = (np.clip(limit, -1.0, 1.0) for limit in (low, high, low_all, high_all))
    columns = (
        [group.name for group in groups],
        [len(group.items) for group in groups],
        *(
            values.tolist()
            for values in (pairs.before.stratum, pairs.after.stratum, pairs.before.group, pairs.after.group)
        ),
        *(np.where(known, values, np.nan).tolist() for values in (*shares, difference, pairs.error, *limits)),
        *(values.tolist() for values in (p, adjusted, bonferroni(p), adjusted <= alpha)),
    )
    return tuple(map(StratumChange, *columns))


def table_of(found: Sequence[StratumChange]) -> pa.Table:
    """Return a table with a row for each change and a column for each field; null: not known."""
    columns = [[getattr(row, name) for row in found] for name in _SCHEMA.names]
    return pa.table(
        [pa.array(each, one.type, from_pandas=True) for each, one in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
    )
