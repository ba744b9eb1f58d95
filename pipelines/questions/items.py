"""hushcount ask item: the counts of items over the windows of a campaign, each with its error.

The tally of every window is kept. In an open domain an item that is discovered later can be estimated from the earlier
tallies too (backfill). With a dictionary, unlisted items count as "other": an item has estimates beginning with the
epoch that lists it, and, if discovery reveals counts, noisy counts beginning with the item's discovery.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from hushcount.campaigns.campaign import Campaign
from hushcount.discovery.found_counts import count_estimates
from hushcount.errors import UsageError
from hushcount.items import canonical
from hushcount.oracles.estimates import Levels
from hushcount.questions.counted import Counted, Group, parted
from pipelines.files import storage
from pipelines.jobs import results
from pipelines.jobs.found import FOUND, combined, count_law_of, read_counts, shown_counts, unbiased_of, was_combined
from pipelines.jobs.table_files import schema_of
from pipelines.questions.breakdown import WHOLE, Breakdown, require_plain
from pipelines.questions.findings import share_of
from pipelines.questions.sources import Place, Source

SCHEMA = schema_of("window", "epoch", "item", "reports", "share", *results.COLUMNS[1:], "backfilled", "repeated")
"""Columns of a table of items; counts and errors are in users. `share` is `count / reports`, within 0..1.

`backfilled`: whether the window is before the item's discovery. `repeated`: whether clients repeat their answers.
Intervals in columns that end in "_all" hold for all rows together, because among many single intervals some always
fail. With a pool, collisions cause the same bias in all windows of one epoch, so the bias cancels in a difference of
two of these windows, but not in a difference of windows of two epochs or pools. If clients repeat their answers,
windows of one epoch have nearly the same errors: a difference of two windows has no more error than if the windows were
independent, and a mean over windows has no less error than one window.
"""

COUNTED = schema_of(*SCHEMA.names, "source", "combined", "combined_error")
"""Columns of the table of items if the campaign reveals counts of discovered values.

`source` is "estimate", or "discovery" for the noisy count of a value without an estimate. In an open domain a value can
have an estimate and a noisy count: then the row has the estimate, and `combined` is the mean of estimate and noisy
count, weighted by inverse variance. `combined` is null if the result of the window has no such mean, as in an oblivious
campaign.
"""


def items_table(
    source: Source, items: Sequence[str] = (), levels: Levels | None = None, of: Breakdown = WHOLE
) -> pa.Table:
    """Return one row for each window, epoch and item, the oldest window first; a window may have several epochs.

    Args:
        items: the items; empty: all items that the campaign follows.
        levels: confidence of the intervals, of each row alone and of all rows together.
        of: what the items are broken down by.

    Raises:
        UsageError: an item is in no result, or no item is given and the campaign follows no item.
    """
    groups = item_groups(source, items, of)
    rows, there = item_rows(source, groups, levels), {group.name: group for group in groups}
    missing = {group.items[0] for group in groups if items} - {there[row["item"]].items[0] for row in rows}
    missing = {item for item in missing if all(one.lacks((item,)) for one in source.counted)}
    if missing:
        raise UsageError(
            f"item {min(missing)!r} was not counted in any of these windows: correct its name; hushcount ask top and "
            "hushcount ask new list items"
        )
    counts = any(_has_counts(place.campaign) for place in source.places)
    return pa.Table.from_pylist(rows, COUNTED if counts else SCHEMA)


def item_groups(source: Source, items: Sequence[str] = (), of: Breakdown = WHOLE) -> tuple[Group, ...]:
    """Return the groups of the rows of `items_table`: each item, or each item in each stratum.

    UsageError as in `Breakdown.groups`, or if no item is given and the campaign follows no item.
    """
    wanted = list(dict.fromkeys(map(canonical, items))) or list(source.followed)
    if not wanted:
        raise UsageError(f"{source.name} has no dictionary, and no item is known yet: give items by --item")
    require_plain(map(canonical, items), source.followed)
    return of.groups([Group(item, (item,)) for item in wanted], source.counted)


def top_table(
    source: Source, items: Sequence[str] = (), levels: Levels | None = None, of: Breakdown = WHOLE
) -> pa.Table:
    """Return the rows of `items_table` with `detected_all`, ordered by window, epoch and falling count."""
    table = items_table(source, items, levels, of)
    order = [("window", "ascending"), ("epoch", "ascending"), ("count", "descending"), ("item", "ascending")]
    return table.filter(table["detected_all"]).sort_by(order)


def most_frequent(table: pa.Table) -> list[str]:
    """Return the items with `detected_all` in any window, ordered by the largest share of the item in a window."""
    largest: dict[str, float] = {}
    for row in table.to_pylist():
        if row["detected_all"]:
            largest[row["item"]] = max(row["count"] / row["reports"], largest.get(row["item"], 0.0))
    return sorted(largest, key=lambda item: -largest[item])


def item_rows(source: Source, groups: Sequence[Group], levels: Levels | None = None) -> list[dict[str, Any]]:
    """Return the rows of `items_table` as dicts; an item that is in no result has no row."""
    looks = len(source.places) * len(groups)
    return [
        row
        for place, counted in zip(source.places, source.counted, strict=True)
        for row in _rows(place, counted, groups, source.first_seen, levels or Levels(), looks)
    ]


def _rows(
    place: Place, counted: Counted, groups: Sequence[Group], first_seen: Mapping[str, str], levels: Levels, looks: int
) -> list[dict[str, Any]]:
    path = storage.join(place.directory, FOUND)
    counts = read_counts(path) if _has_counts(place.campaign) and storage.exists(path) else None
    rows = _estimated(counted, groups, levels, looks)
    # Discovery has no coordinates.
    if counts is not None and not any(group.where for group in groups):
        wanted = [group.name for group in groups]
        rows = _with_found(place, wanted, rows, counts, counted, levels, looks)
    shared = {
        "window": place.window,
        "epoch": place.campaign.epoch,
        "repeated": place.campaign.memory,
    }
    return [
        {
            **row,
            **shared,
            "share": share_of(row["count"], row["reports"]),
            # A count that discovery released is never of a window before the value's discovery.
            "backfilled": row["source"] == "estimate" and place.window < first_seen.get(row["item"], ""),
        }
        for row in rows
    ]


def _has_counts(campaign: Campaign) -> bool:
    return campaign.discovery is not None and campaign.discovery.counts


def _with_found(
    place: Place,
    wanted: list[str],
    rows: list[dict[str, Any]],
    counts: pa.Table,
    counted: Counted,
    levels: Levels,
    looks: int,
) -> list[dict[str, Any]]:
    """Return a window's rows with the counts that discovery released, combined with estimates or in separate rows."""
    senders, reports = counted.tally.senders, counted.reports
    if rows and place.campaign.dictionary is None:
        if not was_combined(storage.join(place.directory, FOUND)):
            return rows
        weighed = combined(counts, pa.Table.from_pylist(rows), unbiased_of(place.campaign, senders))
        both = {row["item"]: row for row in weighed.to_pylist()}
        shown = ("combined", "combined_error")
        return [{**row, **{name: both.get(row["item"], {}).get(name) for name in shown}} for row in rows]
    law, asked = count_law_of(place.campaign, senders), {*wanted} - {row["item"] for row in rows}
    asked_for = counts.filter(pa.array([item in asked for item in counts["item"].to_pylist()], pa.bool_()))
    if law is None or not len(asked_for):
        return rows
    here, drawn = asked_for.to_pylist(), shown_counts(asked_for, law, storage.join(place.directory, FOUND))
    alone, together = (count_estimates(law, drawn, 1.0 - (1.0 - levels.confidence) / among) for among in (1, looks))
    said = {"collision_error": 0.0, "detected": True, "detected_all": True, "source": "discovery", "reports": reports}
    return [
        *rows,
        *(
            {
                "item": row["item"],
                "count": alone.count[number],
                "standard_error": alone.standard_error[number],
                "low": alone.low[number],
                "high": alone.high[number],
                "low_all": together.low[number],
                "high_all": together.high[number],
                **said,
            }
            for number, row in enumerate(here)
        ),
    ]


def _estimated(counted: Counted, groups: Sequence[Group], levels: Levels, looks: int) -> list[dict[str, Any]]:
    """Return the rows of the items that a result counted; a tally without a sketch has only the items of its job."""
    lacking = set(counted.lacks([group.items[0] for group in groups]))
    rows = dict[int, dict[str, Any]]()
    for each in parted(groups, [counted]):
        there = [
            (place, one) for place, one in zip(each.places, each.groups, strict=True) if one.items[0] not in lacking
        ]
        for part in each.results if there else ():
            mine = [one for _, one in there]
            table = results.estimate_table([one.name for one in mine], part.sums(mine), levels, looks).to_pylist()
            shared = {"source": "estimate", "reports": part.reports}
            rows |= {place: {**row, **shared} for (place, _), row in zip(there, table, strict=True)}
    return [rows[place] for place in sorted(rows)]
