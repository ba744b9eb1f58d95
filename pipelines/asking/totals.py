"""hushcount ask total: what groups of items add up to over several windows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hushcount.questions.counted import Counted, Group
from pipelines.asking.fields import SHARE

SCHEMA = pa.schema(
    [
        ("group", pa.string()),
        ("items", pa.int64()),
        ("results", pa.int64()),
        ("reports", pa.int64()),
        pa.field("share", pa.float64(), metadata=SHARE),
        ("count", pa.float64()),
        ("error", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("repeated", pa.bool_()),
    ]
)
"""One row for each group; counts and errors in users, `share` is `count / reports`.

`error` is of the total: with what windows of one epoch share, such as answers that clients repeat and collisions in one
pool. `results`: how many were added up, one for each window and epoch.
"""


def totals_table(results: Sequence[Counted], groups: Sequence[Group], confidence: float = 0.95) -> pa.Table:
    """Return what each group adds up to over all results, with the columns SCHEMA, groups in their order.

    Raises:
        UsageError: as `hushcount.questions.totals.total`.
    """
    raise NotImplementedError
