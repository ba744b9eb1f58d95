"""hushcount ask new: the values that discovery found, when it found them, and their counts since then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from hushcount.errors import UsageError
from hushcount.oracles.estimates import Levels
from pipelines.deployment.settings import Deployment
from pipelines.epochs.tracked_items import found_items, read_decisions
from pipelines.files import storage
from pipelines.handover.hops import outputs
from pipelines.jobs.found import FOUND
from pipelines.jobs.table_files import schema_of
from pipelines.outputs.received_summary import folder_of
from pipelines.questions.items import item_groups, item_rows
from pipelines.questions.sources import Source

SCHEMA = schema_of(
    "item", "first_seen", "last_seen", "listed", "decision", "window", "epoch", "source", "reports", "share",
    "count", "standard_error", "collision_error", "low", "high", "low_all", "high_all", "detected_all", "repeated",
)  # fmt: skip
"""Columns: each discovered value has a row for each window since its discovery with a count, or one row without count.

`first_seen` and `last_seen` are windows; `listed`: whether the newest dictionary has the value. `decision` of the
operator: approved, rejected or waiting; "" if no decision is needed. `source`: "estimate", or "discovery" for the noisy
count that discovery released. In a row without a count, `window` and all columns after `window` are null. Counts and
errors are in users, `share` is `count / reports`, within 0..1. Intervals in columns that end in "_all" hold for all
rows together.
"""


def new_table(source: Source, levels: Levels | None = None) -> pa.Table:
    """Return the discovered values of a campaign, the last found first, with the columns SCHEMA.

    Raises:
        UsageError: the source is result folders, which do not say when a value was found; or the campaign has no
            discovery.
    """
    if source.deployment is None or source.epochs is None or source.tracked is None:
        raise UsageError("ask new needs a store, which says when a value was found: give --config without --result")
    if not any(campaign.discovery for campaign in source.epochs.campaigns.values()):
        raise UsageError(
            f"campaign {source.name} has no discovery, must be made by hushcount campaign new with --discovery-epsilon"
        )
    decisions, listed = read_decisions(source.epochs.directory), set(source.epochs.listed)
    seen = {one.item: (one.first_seen or "", one.last_seen or "") for one in source.tracked.discovered}
    waits = set(seen) - listed
    given = {one.item for one in source.tracked.items if one.source == "given"}
    for window, items in _found(source.deployment, source):
        for item in items:
            if item not in given:
                first, last = seen.get(item, (window, window))
                seen[item] = min(first or window, window), max(last, window)
    decided = {**dict.fromkeys(decisions.approved, "approved"), **dict.fromkeys(decisions.rejected, "rejected")}
    counts: dict[str, list[dict[str, Any]]] = {}
    for row in item_rows(source, item_groups(source, list(seen)), levels) if seen else ():
        if row["window"] >= seen[row["item"]][0]:
            counts.setdefault(row["item"], []).append(row)
    rows = [
        {
            **row,
            "item": item,
            "first_seen": seen[item][0],
            "last_seen": seen[item][1],
            "listed": item in listed,
            "decision": decided.get(item, "waiting" if item in waits else ""),
        }
        for item in sorted(sorted(seen), key=lambda one: seen[one][0], reverse=True)
        for row in counts.get(item, [{}])
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def _found(deployment: Deployment, source: Source) -> Iterator[tuple[str, list[str]]]:
    """Yield each window of the source with the values that discovery found in the window."""
    windows = set(source.windows)
    for batch, path in outputs(deployment, "found", source.name):
        if batch.window in windows:
            directory = path.rpartition("/")[0]
            # A batch of a retired key has a summary, but no values.
            if storage.exists(storage.join(folder_of(directory, batch=batch.name), FOUND)):
                yield batch.window, found_items(directory)
