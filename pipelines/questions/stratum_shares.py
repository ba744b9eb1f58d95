"""The share that each row of a breakdown has of its stratum, with its error (`hushcount.questions.shares`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from hushcount.arrays import FloatArray
from hushcount.oracles.estimates import Levels
from hushcount.questions.counted import Counted, Group, parted
from hushcount.questions.shares import stratum_shares
from pipelines.jobs.table_files import schema_of
from pipelines.questions.added_columns import with_columns
from pipelines.questions.findings import state_of

SHARE = "stratum_share"
SCHEMA = schema_of(SHARE, *(f"{SHARE}_{name}" for name in ("error", "low", "high", "low_all", "high_all")))
"""Columns that a breakdown adds: the share of the reports of the row's stratum, the standard error, and limits.

All are null if the share is unknown, because the count of the stratum is not significantly above 0 among all rows; and
in a row that the question did not name and that is not detected.
"""


def with_stratum_shares(
    table: pa.Table, results: Sequence[Counted], groups: Sequence[Group], looks: int, *, named: bool
) -> pa.Table:
    """Return a table of items, sums or totals in strata with the columns SCHEMA.

    Args:
        results, groups: as in `with_columns`.
        looks: rows that were looked at, for intervals that hold together (Bonferroni).
        named: whether the question named the rows.
    """
    confidence = Levels().confidence

    def columns(of: Sequence[Counted], wanted: Sequence[Group]) -> Iterable[FloatArray]:
        columns = np.full((len(SCHEMA), len(wanted)), np.nan)
        for part in parted(wanted, of):
            found = stratum_shares(part.results, part.groups)
            ends = *found.interval(confidence), *found.interval(confidence, looks)
            known, share = found.known(confidence, looks), np.clip(found.share, 0.0, 1.0)
            columns[:, part.places] = [np.where(known, one, np.nan) for one in (share, found.standard_error, *ends)]
        return columns

    return with_columns(
        table, results, groups, SCHEMA, columns, chosen=lambda row: named or state_of(row) == "detected"
    )
