"""hushcount trend: the counts of items over the windows of a campaign, each with its error.

Every window's tally stays. In an open domain an item that was discovered later is estimated from the earlier tallies
too (backfill). A closed domain counts unlisted items as "other": there an item begins with its epoch, or, in a campaign
with counts, with its discovery.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hushcount.campaigns.dictionary import known_items
from hushcount.collection.windows import window_start
from hushcount.discovery.found_counts import count_estimates
from hushcount.errors import UsageError
from hushcount.estimating import estimated
from hushcount.formats.whole_files import write_once
from hushcount.items import canonical
from hushcount.oracles.estimates import Levels
from hushcount.oracles.tally import Tally
from hushcount.senders import Senders
from pipelines.asking.places import Place, places_of
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.epochs.items import ITEMS_FILE, read_tracked
from pipelines.files import storage
from pipelines.jobs import results
from pipelines.jobs.found import FOUND, combined, count_law_of, read_counts, was_combined

_ENDINGS = (".png", ".svg")
_FILE_MODE = 0o600
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

Columns that end in "_all" hold for all rows together: among many rows some single intervals always fail. Windows of one
epoch of a pool share the bias by collisions, so a difference of two of them cancels it; windows of two epochs or pools
do not. Where clients repeat their answers, windows of one epoch have much the same errors: a difference of two has no
more error than if they were independent, a mean over windows no less than one window.
"""

COUNTED = pa.schema([*SCHEMA, ("source", pa.string()), ("combined", pa.float64()), ("combined_error", pa.float64())])
"""Where a window has counts of discovered values.

`source` is "estimate", or "discovery" for the noisy count of a discovered value that no frequency report names. Where
there are both, in an open domain, the row is the estimate's and `combined` weighs both by inverse variance, if the
result of the window did so: not in an oblivious campaign.
"""


def trend(
    deployment: Deployment, epochs: Epochs, items: list[str], last: int, levels: Levels | None = None
) -> pa.Table:
    """Return one row for each window, epoch and item, the oldest window first: a window may have two epochs' reports.

    Args:
        items: which; empty: all that the campaign follows.
        levels: confidence of the intervals, for each row alone and for all together.

    Raises:
        UsageError: there is no result yet, or an item is in none of them.
    """
    places = places_of(deployment, epochs, last)
    if not places:
        raise UsageError(f"campaign {epochs.campaign} has no results yet: hushcount run makes them")
    tracked = read_tracked(epochs.directory / ITEMS_FILE, epochs.listed)
    first_seen = {one.item: one.first_seen for one in tracked.discovered}
    items = [canonical(item) for item in items]
    wanted = items or [one.item for one in tracked.items]
    looks = len(places) * len(wanted)
    rows = [row for place in places for row in _rows(place, wanted, first_seen, levels or Levels(), looks)]
    missing = set(items) - {row["item"] for row in rows}
    if missing:
        raise UsageError(f"item {min(missing)!r} was counted in none of these windows")
    counts = any(place.campaign.discovery is not None and place.campaign.discovery.counts for place in places)
    return pa.Table.from_pylist(rows, COUNTED if counts else SCHEMA)


def _rows(
    place: Place, wanted: list[str], first_seen: dict[str, str | None], levels: Levels, looks: int
) -> list[dict[str, Any]]:
    tally = results.read_tally(storage.join(place.directory, results.TALLY), place.campaign)
    path = storage.join(place.directory, FOUND)
    counts = read_counts(path) if storage.exists(path) else None
    rows = _estimated(place, wanted, tally, levels, looks)
    if counts is not None:
        rows = _with_found(place, wanted, rows, counts, tally.senders, levels, looks)
    shared = {
        "window": place.window,
        "epoch": place.campaign.epoch,
        "reports": tally.reports,
        "repeated": place.campaign.memory,
    }
    return [
        {
            **row,
            **shared,
            # A value that discovery counted was there.
            "backfilled": row["source"] == "estimate" and place.window < (first_seen.get(row["item"]) or ""),
        }
        for row in rows
    ]


def _with_found(
    place: Place,
    wanted: list[str],
    rows: list[dict[str, Any]],
    counts: pa.Table,
    senders: Senders,
    levels: Levels,
    looks: int,
) -> list[dict[str, Any]]:
    """Return the rows of a window with what discovery counted: combined with estimates, and values without any."""
    if rows and place.campaign.dictionary is None:
        if not was_combined(storage.join(place.directory, FOUND)):
            return rows
        both = {row["item"]: row for row in combined(counts, pa.Table.from_pylist(rows)).to_pylist()}
        shown = ("combined", "combined_error")
        return [{**row, **{name: both.get(row["item"], {}).get(name) for name in shown}} for row in rows]
    law, there = count_law_of(place.campaign, senders), {row["item"] for row in rows}
    here = [row for row in counts.to_pylist() if row["item"] in {*wanted} - there]
    if law is None or not here:
        return rows
    drawn = np.rint([row["count"] + law.mean for row in here]).astype(np.int64)
    alone, together = (count_estimates(law, drawn, 1.0 - (1.0 - levels.confidence) / among) for among in (1, looks))
    said = {"collision_error": 0.0, "detected": True, "detected_all": True, "source": "discovery"}
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


def _estimated(place: Place, wanted: list[str], tally: Tally, levels: Levels, looks: int) -> list[dict[str, Any]]:
    """Return the rows of the items that a tally has."""
    mechanism = place.campaign.require_frequency()
    dictionary = place.campaign.read_dictionary()
    names = wanted if dictionary is None else [item for item in wanted if item in dictionary]
    if not names:
        return []
    known = results.Wanted(tuple(names), known_items(mechanism, dictionary, names))
    if dictionary is None and mechanism.encoder.by_item:
        # Without a sketch, only items that were asked for then can be estimated now.
        counted = np.isin(known.items, tally.items)
        names = [name for name, there in zip(names, counted, strict=True) if there]
        if not names:
            return []
        known = results.Wanted(tuple(names), known.items[counted])
    table = results.estimate_table(known.names, estimated(place.campaign, tally, known.items), levels, looks)
    return [{**row, "source": "estimate"} for row in table.to_pylist()]


def write_plot(path: Path, table: pa.Table, items: list[str]) -> None:
    """Draw the shares of items over windows, each in the interval of its row, into a new file.

    Raises:
        UsageError: another ending, or the file is there.
    """
    if path.suffix not in _ENDINGS:
        raise UsageError(f"plot is {path}, must end in {' or '.join(_ENDINGS)}")
    # Without pyplot, which would look for a screen and keep figures alive.
    from matplotlib.figure import Figure

    sheet = Figure(figsize=(9.6, 5.4), layout="constrained")
    axes = sheet.add_subplot()
    rows = table.to_pylist()
    for item in items:
        line = sorted((row for row in rows if row["item"] == item), key=lambda row: (row["window"], row["epoch"]))
        when = np.array([window_start(row["window"]).replace(tzinfo=None) for row in line], dtype="datetime64[s]")
        shares = [row["count"] / row["reports"] for row in line]
        (drawn,) = axes.plot(when, shares, marker="o", markersize=3, label=item)
        low = [row["low"] / row["reports"] for row in line]
        high = [row["high"] / row["reports"] for row in line]
        axes.fill_between(when, low, high, color=drawn.get_color(), alpha=0.15, linewidth=0)
    axes.set_ylabel("share of reports, with its interval")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    sheet.autofmt_xdate()
    buffer = io.BytesIO()
    metadata = {"Software": None} if path.suffix == ".png" else {"Date": None}
    sheet.savefig(buffer, format=path.suffix[1:], dpi=110, metadata=metadata)
    write_once(path, "plot", buffer.getvalue(), _FILE_MODE)
