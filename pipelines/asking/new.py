"""hushcount ask new: what discovery found, when, and how often it was seen since."""

from __future__ import annotations

import pyarrow as pa

from hushcount.oracles.estimates import Levels
from pipelines.asking.sources import Source

SCHEMA = pa.schema(
    [
        ("item", pa.string()),
        ("first_seen", pa.string()),
        ("last_seen", pa.string()),
        ("listed", pa.bool_()),
        ("decision", pa.string()),
        ("window", pa.string()),
        ("epoch", pa.int64()),
        ("source", pa.string()),
        ("reports", pa.int64()),
        ("count", pa.float64()),
        ("standard_error", pa.float64()),
        ("collision_error", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("low_all", pa.float64()),
        ("high_all", pa.float64()),
        ("repeated", pa.bool_()),
    ]
)
"""One row for each discovered value and window with a count of it, from its discovery on; without any, one row.

`first_seen` and `last_seen` are windows; `listed`: the newest dictionary has it. `decision` of the operator: approved,
rejected or waiting; "" if none is wanted. `source`: "estimate", or "discovery" for the noisy count that discovery
released; from `window` on null in a row without counts. Counts and errors in users; columns that end in "_all" hold for
all rows together.
"""


def new_table(source: Source, levels: Levels | None = None) -> pa.Table:
    """Return the discovered values of a campaign, those found last first, with the columns SCHEMA.

    Raises:
        UsageError: result folders were given: only a store says when a value was found.
    """
    raise NotImplementedError
