"""Results: estimates as Parquet and CSV, the tally, the found items, and the page that shows them."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hushcount import tally as tally_files
from hushcount.campaign import Campaign
from hushcount.dictionary import Dictionary, read_items
from hushcount.domain import known_items, other_item
from hushcount.errors import FormatError, UsageError
from hushcount.estimates import Estimate
from hushcount.mechanism import Mechanism
from hushcount.randomness import UInt64Array
from hushcount.tally import Tally
from pipelines import storage
from pipelines.page import Found, Page, render
from pipelines.summary import Summary
from pipelines.upstream import read_upstream

_SHOWN = 10
COLUMNS = ("item", "count", "standard_error", "collision_error", "low", "high")


@dataclass(frozen=True, eq=False)
class Wanted:
    """What is to be estimated: names, and the mechanism's items for them."""

    names: tuple[str, ...]
    items: UInt64Array


def wanted_items(mechanism: Mechanism, dictionary: Dictionary | None, names: list[str] | None) -> Wanted | None:
    """Return the named items, or the whole dictionary; None for an open domain that is asked for nothing.

    Raises:
        UsageError: a name is not in the dictionary, stands twice, or there is none.
    """
    if names is None:
        if dictionary is None:
            return None
        names = list(dictionary.items)
    chosen = Dictionary(tuple(names)).items
    return Wanted(chosen, known_items(mechanism, dictionary, chosen))


def read_names(path: Path) -> list[str]:
    """Read items to estimate: one a line, or the column "item" of a .csv, as estimates.csv and found.csv have it.

    Raises:
        UsageError: unreadable, not UTF-8, or a .csv without that column.
    """
    if path.suffix != ".csv":
        return read_items(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            return [row["item"] for row in csv.DictReader(stream)]
    except KeyError:
        raise UsageError(f"{path} has no column 'item'") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"cannot read {path}: {storage.cause(error)}") from None


def write_results(
    directory: str,
    campaign: Campaign,
    tally: Tally,
    wanted: Wanted | None,
    confidence: float,
    summary: Summary,
    found: Found | None,
) -> None:
    """Estimate, write estimates.parquet, estimates.csv and report.html, and add "other" to the summary."""
    mechanism = campaign.require_frequency()
    table = None
    if wanted is not None:
        estimate = mechanism.estimate(tally, wanted.items)
        table = _table(wanted.names, estimate, confidence)
        storage.write_whole(storage.join(directory, "estimates.parquet"), [_parquet(table)])
        storage.write_whole(storage.join(directory, "estimates.csv"), [_csv(table)])
        summary["confidence"] = confidence
    summary["largest"] = [] if table is None else _largest(table)
    if campaign.dictionary is not None:
        other = mechanism.estimate(tally, np.array([other_item(mechanism)], dtype=np.uint64))
        row = _table(("other",), other, confidence).to_pylist()[0]
        summary["other"] = {name: row[name] for name in COLUMNS[1:]}
    page = render(Page(campaign, summary, table, found))
    storage.write_whole(storage.join(directory, "report.html"), [page.encode()])


def write_tally(directory: str, tally: Tally, campaign: Campaign) -> None:
    """Write tally.npz."""
    buffer = io.BytesIO()
    tally_files.save(tally, campaign.fingerprint, buffer)
    storage.write_whole(storage.join(directory, "tally.npz"), [buffer.getvalue()])


def read_tally(path: str, campaign: Campaign) -> Tally:
    """Read a tally.npz of this campaign.

    Raises:
        UsageError: missing, damaged or of another campaign.
    """
    if not storage.exists(path):
        raise UsageError(f"tally {path} does not exist")
    with storage.open_read(path) as stream:
        tally = tally_files.load(io.BytesIO(stream.read()), campaign.fingerprint)
    shape = campaign.require_frequency().encoder.tally_shape(tally.items)
    if tally.counts.shape != shape or tally.counts.dtype != np.int64 or tally.reports < 1:
        raise FormatError(f"tally {path} has shape {tally.counts.shape}, must be {shape} of this campaign")
    return tally


def write_found(directory: str, found: list[str]) -> None:
    """Write found.csv: one column, item, sorted."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["item"])
    writer.writerows([item] for item in sorted(found))
    storage.write_whole(storage.join(directory, "found.csv"), [buffer.getvalue().encode()])


def read_found(directory: Path, campaign: Campaign) -> Found:
    """Read the result of hushcount discover.

    Raises:
        UsageError: there is none, or it is of another campaign.
    """
    summary = read_upstream(str(directory), "discover", campaign)
    path = directory / "found.csv"
    return Found(tuple(read_names(path)), summary)


def _table(names: tuple[str, ...], estimate: Estimate, confidence: float) -> pa.Table:
    low, high = estimate.interval(confidence)
    columns = (names, estimate.count, estimate.standard_error, estimate.collision_error, low, high)
    return pa.table(dict(zip(COLUMNS, columns, strict=True)))


def _largest(table: pa.Table) -> list[dict[str, object]]:
    """Return the few largest estimates, each with its two errors added in squares."""
    rows = table.sort_by([("count", "descending")]).slice(0, _SHOWN).to_pylist()
    return [
        {
            "item": row["item"],
            "count": row["count"],
            "error": math.hypot(row["standard_error"], row["collision_error"]),
        }
        for row in rows
    ]


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _csv(table: pa.Table) -> bytes:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in table.to_pylist():
        writer.writerow([row["item"], *(f"{row[name]:.3f}" for name in COLUMNS[1:])])
    return buffer.getvalue().encode()
