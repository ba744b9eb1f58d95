"""hushcount ask change and compare: what differs between two sides, and what would have been seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hushcount.oracles.estimates import Levels
from hushcount.questions.changes import changes
from hushcount.questions.counted import Counted, Group
from hushcount.questions.power import least_of, level_of, power_of

RATIO = 1.2
"""A change of 20 %: how likely it would have been seen is told of each row."""

SCHEMA = pa.schema(
    [
        ("group", pa.string()),
        ("items", pa.int64()),
        ("reports_before", pa.int64()),
        ("reports_after", pa.int64()),
        *(
            (name, pa.float64())
            for name in (
                "before", "after", "difference", "standard_error", "low", "high", "ratio", "ratio_low", "ratio_high",
                "p_value", "adjusted", "p_bonferroni",
            )
        ),
        ("exact", pa.bool_()),
        ("significant", pa.bool_()),
        ("seen_20", pa.float64()),
        ("least_seen", pa.float64()),
    ]
)  # fmt: skip
"""One row for each group; shares of reports, unbiased, so that one may lie outside 0..1.

`low` and `high` are of `difference`, `after - before`; `ratio_high` is infinite where `before` may be 0, and so is a
ratio that nothing bounds. `adjusted` is the p-value after Benjamini and Hochberg for all rows; `significant`: it is at
most 1 less the confidence. `p_bonferroni`: the chance that any row has one so small if nothing changed. `exact`: by
Fisher's test. `seen_20`: the probability that a change by 20 % would have been significant; `least_seen`: the ratio
that would have been with probability 0.8.
"""


def changes_table(
    before: Sequence[Counted], after: Sequence[Counted], groups: Sequence[Group], confidence: float = 0.95
) -> pa.Table:
    """Return how the share of each group differs between two sides, with the columns SCHEMA, groups in their order.

    Args:
        before, after: results that are added up on each side: windows of a campaign, or of two.
        confidence: of each interval; significant rows have false ones among them at a rate of 1 less it.

    Raises:
        UsageError: as `hushcount.questions.changes.changes`.
    """
    found = changes(before, after, groups, Levels(confidence).confidence)
    many, level = len(groups), level_of(found.adjusted, 1.0 - confidence)
    columns = {
        "group": [group.name for group in groups],
        "items": [len(group.items) for group in groups],
        "reports_before": [found.reports_before] * many,
        "reports_after": [found.reports_after] * many,
        **{
            name: getattr(found, name)
            for name in (
                "before", "after", "difference", "standard_error", "low", "high", "ratio", "ratio_low", "ratio_high",
                "p_value", "adjusted", "p_bonferroni", "exact",
            )
        },
        "significant": np.asarray(found.adjusted <= 1.0 - confidence),
        "seen_20": power_of(found.both, RATIO, level),
        "least_seen": least_of(found.both, level=level),
    }  # fmt: skip
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)
