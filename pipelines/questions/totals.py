"""hushcount ask total: what groups of items add up to over several windows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hushcount.questions.counted import Counted, Group
from hushcount.questions.totals import total
from pipelines.jobs.table_files import schema_of

SCHEMA = schema_of(
    "group", "items", "results", "reports", "share", "count", "standard_error", "collision_error", "low", "high",
    "repeated",
)  # fmt: skip
"""One row for each group; counts and errors in users, `share` is `count / reports`.

The errors are of the total: windows of one epoch share the answers that clients repeat, and windows of one pool its
collisions, so that these add up and do not average out. `results`: how many were added up, one for each window and
epoch. A client that reports in each of 30 windows counts 30 times.
"""


def totals_table(results: Sequence[Counted], groups: Sequence[Group], confidence: float = 0.95) -> pa.Table:
    """Return what each group adds up to over all results, with the columns SCHEMA, groups in their order.

    Raises:
        UsageError: as `hushcount.questions.totals.total`.
    """
    totals = total(results, groups, confidence)
    many, reports = len(groups), totals.reports
    columns = {
        "group": [group.name for group in groups],
        "items": [len(group.items) for group in groups],
        "results": [len(results)] * many,
        "reports": [reports] * many,
        "share": totals.count / reports,
        "count": totals.count,
        "standard_error": totals.standard_error,
        "collision_error": totals.collision_error,
        "low": totals.low,
        "high": totals.high,
        "repeated": [any(one.campaign.memory for one in results)] * many,
    }
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)
