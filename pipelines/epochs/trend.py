"""hushcount trend: the counts of items over the windows of a campaign, each with its error.

Every window's tally was kept, so that an item that was discovered later is asked of the earlier windows too where the
domain is open (backfill). A closed domain counted what was not listed as "other": there an item begins with its epoch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.domain import known_items
from hushcount.errors import UsageError
from hushcount.estimating import estimated
from hushcount.items import canonical
from hushcount.oracles.estimates import Levels
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.epochs.tracked_items import ITEMS_FILE, read_tracked
from pipelines.files import storage
from pipelines.handover.names import Batch
from pipelines.jobs import results
from pipelines.outputs.received_summary import folder_of
from pipelines.outputs.staging import SUMMARY

SCHEMA = pa.schema(
    [
        ("window", pa.string()),
        ("epoch", pa.int64()),
        ("item", pa.string()),
        ("reports", pa.int64()),
        ("count", pa.float64()),
        ("standard_error", pa.float64()),
        ("collision_error", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("low_all", pa.float64()),
        ("high_all", pa.float64()),
        ("detected", pa.bool_()),
        ("detected_all", pa.bool_()),
        ("backfilled", pa.bool_()),
        ("repeated", pa.bool_()),
    ]
)
"""Counts and errors in users; `backfilled`: before the item was first seen; `repeated`: clients repeat their answers.

The columns that end in "_all" hold for all rows together: of many items over many windows some are always out. Windows
of one epoch of a pool have the bias by collisions in common, so that a difference of two of them does not hold it
(the collision error is of each count); windows of two epochs, of two pools, have not. Where clients repeat their
answers, windows of one epoch have much the same errors: a difference of two has no more than if these were independent,
a mean over windows no less than one window.
"""


@dataclass(frozen=True)
class Place:
    """One result of a campaign: its window, campaign file and directory."""

    window: str
    campaign: Campaign
    directory: str


def trend(
    deployment: Deployment, epochs: Epochs, items: list[str], last: int, levels: Levels | None = None
) -> pa.Table:
    """Return one row for each window, epoch and item, the oldest window first: a window may bring two epochs' reports.

    Args:
        deployment: whose results.
        epochs: the campaign.
        items: which; empty: all that the campaign follows.
        last: so many windows.
        levels: confidence of the intervals, each for its row alone and for all together.

    Raises:
        UsageError: there is no result yet, or an item stands in none of them.
    """
    places = _places(deployment, epochs, last)
    if not places:
        raise UsageError(f"campaign {epochs.campaign} has no results yet: hushcount run makes them")
    dictionary = epochs.newest[1].read_dictionary()
    tracked = read_tracked(epochs.directory / ITEMS_FILE, () if dictionary is None else dictionary.items)
    first_seen = {one.item: one.first_seen for one in tracked.items if one.source == "discovered"}
    items = [canonical(item) for item in items]
    wanted = items or [one.item for one in tracked.items]
    looks = len(places) * len(wanted)
    rows = [row for place in places for row in _rows(place, wanted, first_seen, levels or Levels(), looks)]
    missing = set(items) - {row["item"] for row in rows}
    if missing:
        raise UsageError(f"item {min(missing)!r} was counted in none of these windows")
    return pa.Table.from_pylist(rows, SCHEMA)


def _places(deployment: Deployment, epochs: Epochs, last: int) -> list[Place]:
    """Return the results of the last windows, the oldest first."""
    marks = storage.list_tree(deployment.folder("results", epochs.campaign), f"*/{SUMMARY}")
    found: list[Place] = []
    for directory in sorted((path.rpartition("/")[0] for path, _ in marks), reverse=True):
        # None: a folder of somebody else.
        batch = Batch.named(epochs.campaign, directory.rpartition("/")[2])
        if batch is None or (batch.epoch, batch.fingerprint) not in epochs.files:
            continue
        if len({place.window for place in found} | {batch.window}) > last:
            break
        _, campaign = epochs.files[batch.epoch, batch.fingerprint]
        where = folder_of(directory)
        # A batch of which no key is left has no tally: its reports are counted, and nothing more.
        if storage.exists(storage.join(where, results.TALLY)):
            found.append(Place(batch.window, campaign, where))
    return found[::-1]


def _rows(
    place: Place, wanted: list[str], first_seen: dict[str, str | None], levels: Levels, looks: int
) -> list[dict[str, object]]:
    mechanism = place.campaign.require_frequency()
    dictionary = place.campaign.read_dictionary()
    names = wanted if dictionary is None else [item for item in wanted if item in dictionary]
    if not names:
        return []
    tally = results.read_tally(storage.join(place.directory, results.TALLY), place.campaign)
    known = results.Wanted(tuple(names), known_items(mechanism, dictionary, names))
    if dictionary is None and mechanism.encoder.by_item:
        # Without a sketch, what was not asked for then cannot be asked for now.
        counted = np.isin(known.items, tally.items)
        names = [name for name, there in zip(names, counted, strict=True) if there]
        if not names:
            return []
        known = results.Wanted(tuple(names), known.items[counted])
    table = results.estimate_table(known.names, estimated(place.campaign, tally, known.items), levels, looks)
    return [
        {
            **row,
            "window": place.window,
            "epoch": place.campaign.epoch,
            "reports": tally.reports,
            "repeated": place.campaign.memory,
            "backfilled": place.window < (first_seen.get(row["item"]) or ""),
        }
        for row in table.to_pylist()
    ]
