"""hushcount ask sum and ask total: sums of groups of items in each window or over several windows, with errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from hushcount.arrays import FloatArray
from hushcount.errors import UsageError
from hushcount.oracles.estimates import Levels
from hushcount.questions.counted import Counted, Group, parted
from hushcount.questions.totals import total
from pipelines.jobs.results import COLUMNS, estimate_table
from pipelines.jobs.table_files import schema_of
from pipelines.questions.breakdown import WHOLE, Breakdown
from pipelines.questions.selection import each_item
from pipelines.questions.sources import Source

SCHEMA = schema_of("window", "epoch", "group", "items", "missing", "reports", "share", *COLUMNS[1:], "repeated")
"""Columns of a table with one row for each window, epoch and group; counts and errors are in users.

`items`: how many of the group's items were added up. `missing`: how many of the group's items the result did not count;
if a dictionary lacks an item, the item's reports are in "other". `share` is `count / reports`, within 0..1. Intervals
in columns that end in "_all" hold for all rows together. `repeated`: whether clients repeat their answers.
"""


def sums_table(
    results: Sequence[Counted], groups: Sequence[Group], levels: Levels | None = None, looks: int | None = None
) -> pa.Table:
    """Return the sum of each group in each result, with the columns SCHEMA, in the order of the results.

    A result's sum has only the items that the result counted; if it counted no item of a group, it has no row of the
    group. Nor has it one of a group of public strata that no atom has alone.

    Args:
        looks: number of sums that were looked at together; None: all of the table.

    Raises:
        UsageError: no result counted any item of a group.
    """
    levels, looks = levels or Levels(), looks or len(results) * len(groups)
    tables = [table for one in results for table in _of_result(one, groups, levels, looks)]
    there = {name for table in tables for name in table["group"].to_pylist()}
    for group in groups:
        # A group of public strata that no atom has alone has no row either.
        if group.name not in there and all(len(one.lacks(group.items)) == len(group.items) for one in results):
            raise UsageError(
                f"{group.items[0]!a} of group {group.name!a} was not counted in any of these windows: correct its "
                "name; hushcount ask top lists items"
            )
    return pa.concat_tables(tables) if tables else SCHEMA.empty_table()


def largest_groups(table: pa.Table) -> list[str]:
    """Return the groups of a table, ordered by a group's largest share in a row."""
    largest: dict[str, float] = {}
    for name, share in zip(table["group"].to_pylist(), table["share"].to_pylist(), strict=True):
        largest[name] = max(share, largest.get(name, share))
    return sorted(largest, key=lambda name: -largest[name])


def _of_result(one: Counted, groups: Sequence[Group], levels: Levels, looks: int) -> Iterator[pa.Table]:
    rows, places = list[pa.Table](), list[int]()
    for each in parted(groups, [one]):
        for part in each.results:
            table, there = _of_part(part, each.groups, levels, looks)
            rows.append(table)
            places += [each.places[place] for place in there]
    if places:
        yield pa.concat_tables(rows).take(np.argsort(places))


def _of_part(one: Counted, groups: Sequence[Group], levels: Levels, looks: int) -> tuple[pa.Table, list[int]]:
    """Return the rows of groups that a result counted, and the places of these groups."""
    known: list[Group] = []
    missing, places = list[int](), list[int]()
    for place, group in enumerate(groups):
        lacking = set(one.lacks(group.items))
        items = tuple(item for item in group.items if item not in lacking)
        if items:
            known.append(replace(group, items=items) if lacking else group)
            missing.append(len(lacking))
            places.append(place)
    if not known:
        return SCHEMA.empty_table(), places
    rows = estimate_table(tuple(group.name for group in known), one.sums(known), levels, looks)
    many = len(known)
    columns = {
        "window": [one.window] * many,
        "epoch": [one.campaign.epoch] * many,
        "group": rows["item"],
        "items": [len(group.items) for group in known],
        "missing": missing,
        "reports": [one.reports] * many,
        "share": _shares(rows["count"].to_numpy(), one.reports),
        **{name: rows[name] for name in COLUMNS[1:]},
        "repeated": [one.campaign.memory] * many,
    }
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA), places


TOTALS = schema_of("group", "items", "results", "reports", "share", *COLUMNS[1:], "repeated")
"""Columns of a table with one row for each group; counts and errors are in users.

`share` is `count / reports`, within 0..1. Columns that end in "_all" hold for all rows together: `detected_all` says
whether any report holds an item of the group (Bonferroni), and if it is false, the interval is not above 0.

The errors are errors of the total. In windows of one epoch clients repeat the same answers, and windows of one pool
have the same collisions, so errors by repeated answers or collisions add up and do not average out. `results`: number
of results that were added up, one for each window and epoch. A client that reports in each of 30 windows counts 30
times.
"""

TOP = ("item", "results", "reports", "share", *COLUMNS[1:], "repeated")
"""Columns of the totals of single items."""


def totals_table(results: Sequence[Counted], groups: Sequence[Group], levels: Levels | None = None) -> pa.Table:
    """Return the total of each group over all results, with the columns TOTALS, in the order of the groups.

    Raises:
        UsageError: for the same reasons as in `hushcount.questions.totals.total`.
    """
    levels, looks = levels or Levels(), len(groups)
    parts = [one for one in parted(groups, results) if one.results]
    tables = [_totals_of(one.results, one.groups, levels, looks) for one in parts]
    order = np.argsort([place for one in parts for place in one.places])
    return pa.concat_tables(tables).take(order) if tables else TOTALS.empty_table()


def _totals_of(results: Sequence[Counted], groups: Sequence[Group], levels: Levels, looks: int) -> pa.Table:
    many = len(groups)
    totals = total(results, groups, levels.confidence)
    (low_all, high_all), reports = totals.together(looks), totals.reports
    detected_all = totals.p_value <= (1.0 - levels.confidence) / looks
    columns = {
        "group": [group.name for group in groups],
        "items": [len(group.items) for group in groups],
        "results": [len(results)] * many,
        "reports": [reports] * many,
        "share": _shares(totals.count, reports),
        "count": totals.count,
        "standard_error": totals.standard_error,
        "collision_error": totals.collision_error,
        "low": totals.low,
        "high": totals.high,
        "low_all": np.where(detected_all, low_all, np.minimum(low_all, 0.0)),
        "high_all": high_all,
        "detected": totals.p_value <= levels.false_positive_rate,
        "detected_all": detected_all,
        "repeated": [any(one.campaign.memory for one in results)] * many,
    }
    return pa.table([columns[name] for name in TOTALS.names], schema=TOTALS)


def top_totals(source: Source, levels: Levels | None = None, of: Breakdown = WHOLE) -> pa.Table:
    """Return the detected totals of single items over the windows, with the columns TOP, ordered by falling count.

    Raises:
        UsageError: no item was counted in all windows.
    """
    table = totals_table(source.counted, of.groups(each_item([source]), source.counted), levels)
    table = table.rename_columns(["item" if name == "group" else name for name in table.column_names])
    order = [("count", "descending"), ("item", "ascending")]
    return table.filter(table["detected_all"]).select(TOP).sort_by(order)


def _shares(counts: FloatArray, reports: int) -> FloatArray:
    return np.clip(counts / reports, 0.0, 1.0)
