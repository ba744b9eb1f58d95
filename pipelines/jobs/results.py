"""Write results: estimates as Parquet and CSV, the tally, the discovered values, and a page that shows all of these.

The command hushcount job estimate estimates further items from a stored tally. In an open domain without a sketch, the
items of the deployment's groups are counted too.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hushcount.arrays import UInt64Array
from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.campaigns.dictionary import Dictionary, known_items
from hushcount.collection.windows import Window
from hushcount.errors import FormatError, TooFewOpened, UsageError
from hushcount.estimating import estimated, flagged_counts
from hushcount.items import canonical
from hushcount.oracles import tally as tally_files
from hushcount.oracles.estimates import Estimate, Levels
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.tally import Tally
from hushcount.questions.counted import Counted
from hushcount.questions.means import mean_of
from hushcount.questions.selecting import Choice
from hushcount.results import TABLE
from pipelines.files import storage
from pipelines.files.item_files import read_names
from pipelines.jobs.data_set import data_set_bytes
from pipelines.jobs.found import (
    NOT_COMBINED,
    OTHER_BATCH,
    Found,
    combined,
    explain,
    put_counts,
    same_batch,
    unbiased_of,
)
from pipelines.jobs.result_page import Page, render
from pipelines.jobs.table_files import csv_bytes
from pipelines.outputs.counts import StreamCounts
from pipelines.outputs.received_summary import file_of
from pipelines.outputs.staging import require_free, staged, write_summary
from pipelines.outputs.summary import Estimates, HopSummary, Largest, TableFacts, make_summary

if TYPE_CHECKING:
    # Workers of the analyzer read no deployment file, and lack the packages that are needed to read one.
    from pipelines.deployment.settings import Deployment

ESTIMATES = "estimates.csv"
TALLY = "tally.npz"
_TALLY_BYTES = 1 << 32
_SHOWN = 10
COLUMNS = (
    "item", "count", "standard_error", "collision_error", "low", "high", "low_all", "high_all", "detected",
    "detected_all",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Wanted:
    """Names to estimate, and the mechanism's items for these names.

    If `as_named`, the table keeps the order of the names.
    """

    names: tuple[str, ...]
    items: UInt64Array
    as_named: bool = True


def wanted_items(
    mechanism: Mechanism, dictionary: Dictionary | None, names: list[str] | None, as_named: bool = True
) -> Wanted | None:
    """Return the named items, or, without names, the whole dictionary; None in an open domain without names.

    The rows are sorted by count, largest first, unless a user chose the order of the names (`as_named`).

    Raises:
        UsageError: a name is not in the dictionary or is repeated, or there are no names.
    """
    if names is None:
        if dictionary is None:
            return None
        names, as_named = list(dictionary.items), False
    chosen = Dictionary(tuple(names)).items
    return Wanted(chosen, known_items(mechanism, dictionary, chosen), as_named)


def write_results(  # noqa: PLR0913  # all that a result is made of
    directory: str,
    campaign: Campaign,
    tally: Tally,
    wanted: Wanted | None,
    levels: Levels,
    summary: HopSummary,
    found: Found | None = None,
    window: Window | None = None,
) -> HopSummary:
    """Estimate, write estimates.parquet, estimates.csv and report.html, and return the summary with the estimates.

    If `found` has counts of discovered values, write found.csv too. In an open domain the counts of discovered values
    are combined with the estimates. The counts are not combined in an oblivious campaign, where discovery reports may
    lack their value, or if the values were discovered in another batch, because then counts and estimates include
    different reports.

    Args:
        window: the window at the end of which the batch was made; None: not known.
    """
    table = facts = other = whole = explained = apart = None
    flags = tally.flags
    counts, same = None if found is None else found.counts, found is not None and same_batch(found, summary)
    if wanted is not None:
        estimate = estimated(campaign, tally, wanted.items)
        table = estimate_table(wanted.names, estimate, levels)
        if not wanted.as_named:
            table = table.sort_by([("count", "descending"), ("item", "ascending")])
        storage.write_whole(storage.join(directory, ESTIMATES), [csv_bytes(table)])
        detected, detected_all = (sum(table[name].to_pylist()) for name in ("detected", "detected_all"))
        flags = flags.model_copy(update={"counts": flagged_counts(campaign, tally, estimate.count)})
        facts = TableFacts(table.num_rows, levels.confidence, levels.false_positive_rate, detected, detected_all)
    if campaign.dictionary is not None:
        alone = estimated(campaign, tally, np.array([campaign.other], dtype=np.uint64))
        row = estimate_table(("other",), alone, levels).to_pylist()[0]
        # "other" gets no columns "_all", because these are valid for the rows of the table together, and "other" is not
        # one of these rows.
        other = {name: row[name] for name in COLUMNS[1:] if not name.endswith("_all")}
        if counts is not None and same:
            error = math.hypot(other["standard_error"], other["collision_error"])
            listed, lower = campaign.read_dictionary(), campaign.is_oblivious
            explained = explain(other["count"], error, counts, listed, lower)
        # Rows and "other" add up to the reports only if the rows are the whole dictionary. To check whether the rows
        # are the whole dictionary, it is enough to compare the numbers of items, because the names are distinct and in
        # the dictionary.
        whole = table is not None and table.num_rows == campaign.dictionary.items
    if found is not None and counts is not None:
        if same and campaign.dictionary is None and table is not None:
            if campaign.is_oblivious:
                apart = NOT_COMBINED
            else:
                counts = combined(counts, table, unbiased_of(campaign, tally.senders))
        put_counts(directory, counts)
        found = replace(found, counts=counts)
    if found is not None and not same:
        apart = OTHER_BATCH
    beside = counts if apart is None else None
    data = data_set_bytes(campaign, tally, levels, table, other, beside, window)
    storage.write_whole(storage.join(directory, TABLE), [data])
    largest = () if table is None else _largest(table, tally.reports)
    summary = replace(summary, estimates=Estimates(facts, largest, other, whole, explained, apart), flags=flags)
    mean = mean_of(Counted(campaign, tally)) if campaign.number is not None and campaign.number.mean else None
    page = render(Page(campaign, summary, table, found, mean))
    storage.write_whole(storage.join(directory, "report.html"), [page.encode()])
    return summary


def write_tally(directory: str, tally: Tally, campaign: Campaign) -> None:
    """Write tally.npz."""
    buffer = io.BytesIO()
    tally_files.save(tally, campaign.fingerprint, buffer)
    storage.write_whole(storage.join(directory, TALLY), [buffer.getbuffer()])


def read_tally(path: str, campaign: Campaign) -> Tally:
    """Read a tally.npz of this campaign.

    Raises:
        UsageError: the tally is missing or damaged, or belongs to another campaign.
        TooFewOpened: the tally has fewer reports than the minimum batch.
    """
    if not storage.exists(path):
        raise UsageError(f"tally {path} does not exist")
    encoder = campaign.require_frequency().encoder
    # The size of the tally is known, except in an open domain without a sketch, where it has a count for each item
    # asked for.
    listed = np.arange(encoder.domain or 0, dtype=np.uint64)
    asked = encoder.domain is None and encoder.by_item
    most = tally_files.MOST_CELLS if asked else math.prod(encoder.tally_shape(listed))
    stored = storage.read_bytes(path, _TALLY_BYTES)
    try:
        tally = tally_files.load(io.BytesIO(stored), campaign.fingerprint, max(most, len(listed)))
    except FormatError as error:
        raise FormatError(f"cannot read {path}: {error}") from error
    shape = encoder.tally_shape(tally.items)
    if tally.counts.shape != shape or tally.counts.dtype != np.int64 or tally.reports < 1:
        raise FormatError(f"tally {path} has shape {tally.counts.shape}, must be {shape} in this campaign: restore it")
    strata = [stratum for atom in tally.atoms for stratum in atom.strata]
    told = bool(campaign.stratum_bytes("reports"))
    if told != bool(tally.atoms) or max(strata, default=0) >= campaign.public_strata:
        raise FormatError(f"tally {path} has {len(tally.atoms)} atoms of other strata than this campaign: restore it")
    # With every encoder, a report or a dummy adds at most 1 to a cell, so no count exceeds their number.
    dummies = 0 if encoder.noise is None else encoder.noise.mixes * encoder.noise.most_dummies(encoder.cells)
    most, of = tally.reports + dummies, "reports and dummies" if dummies else "reports"
    if tally.counts.size and not 0 <= tally.counts.min() <= tally.counts.max() <= most:
        raise FormatError(f"tally {path} has counts outside 0..{most}, the number of its {of}: restore it")
    if not campaign.reaches_minimum(least := min((atom.reports for atom in tally.atoms), default=tally.reports)):
        raise TooFewOpened(
            f"tally {path} has {least} reports, fewer than the minimum batch, {campaign.shuffle.minimum_batch}: "
            "nothing is estimated from it"
        )
    return tally


def require_counted(mechanism: Mechanism, tally: Tally, wanted: Wanted | None) -> None:
    """Raise UsageError if the tally has no column for a wanted item, in an open domain without a sketch."""
    encoder = mechanism.encoder
    if wanted is None or encoder.domain is not None or not encoder.by_item:
        return
    missing = np.flatnonzero(~np.isin(wanted.items, tally.items))
    if missing.size:
        raise UsageError(
            f"item {wanted.names[missing[0]]!r} was not counted: the mechanism has no sketch of an open domain, so the "
            f"tally has only the {len(tally.items):,} items that hushcount job analyze was told to count; run that job "
            "again with --items"
        )


def estimate_table(names: Sequence[str], estimate: Estimate, levels: Levels, looks: int | None = None) -> pa.Table:
    """Return estimates as a table with the columns COLUMNS, one row for each name.

    The columns that end in "_all" are valid for `looks` items together, by default for all rows together.
    """
    looks = len(names) if looks is None else looks
    alone, together = estimate.interval(levels.confidence), estimate.interval(levels.confidence, looks)
    detected = estimate.detected(levels.false_positive_rate)
    detected_all = estimate.detected(min(1.0 - levels.confidence, 0.499), looks)
    # No interval above 0 stands beside "not detected": limits and detection have different laws near the border.
    together = (np.where(detected_all, together[0], np.minimum(together[0], 0.0)), together[1])
    errors = estimate.standard_error, estimate.collision_error
    columns = (names, estimate.count, *errors, *alone, *together, detected, detected_all)
    return pa.table(dict(zip(COLUMNS, columns, strict=True)))


def _largest(table: pa.Table, reports: int) -> tuple[Largest, ...]:
    """Return the largest counts of items in "detected_all", because the largest of many raw estimates are noise."""
    detected = table.filter(table["detected_all"]).sort_by([("count", "descending")])
    largest = []
    for row in detected.slice(0, _SHOWN).to_pylist():
        error = math.hypot(row["standard_error"], row["collision_error"])
        largest.append(Largest(row["item"], row["count"], row["count"] / reports, error))
    return tuple(largest)


def items_in_groups(choices: Mapping[str, Choice], base: Path) -> tuple[str, ...]:
    """Return the items of groups, each item once.

    A glob or a prefix adds no item, because it selects from a dictionary.

    Args:
        base: the directory that files of groups are relative to.

    Raises:
        UsageError: the file of a group cannot be read or is not a list of items; the message names the group.
    """
    named: list[str] = []
    for name, choice in choices.items():
        try:
            named += choice.items or (() if choice.file is None else read_names(base / choice.file))
        except UsageError as error:
            raise UsageError(f"group {name}: {error}") from None
    return tuple(dict.fromkeys(map(canonical, named)))


def grouped_items(deployment: Deployment, campaign: Campaign) -> tuple[str, ...]:
    """Return the items of the deployment's groups if the campaign has an open domain without a sketch, else none."""
    encoder = campaign.require_frequency().encoder
    if encoder.domain is not None or not encoder.by_item:
        return ()
    return items_in_groups(deployment.file.analyzer.groups, deployment.base)


def estimate(
    campaign_path: Path,
    tally_path: str,
    items: Path,
    out: str,
    *,
    levels: Levels | None = None,
    overwrite: bool = False,
) -> HopSummary:
    """Estimate items from a tally.npz; write estimates.parquet, estimates.csv, report.html and summary.json.

    Raises:
        UsageError: a file is missing or invalid, an item is not in the dictionary, or `out` is taken.
    """
    campaign = Campaign.read(campaign_path)
    mechanism = campaign.require_frequency()
    require_free(out, overwrite, ("estimate",), (tally_path, items, campaign_path))
    wanted = wanted_items(mechanism, campaign.read_dictionary(), read_names(items))
    tally = read_tally(file_of(tally_path), campaign)
    require_counted(mechanism, tally, wanted)
    counts: dict[Stream, StreamCounts] = {"reports": StreamCounts(tally.reports, tally.reports, {})}
    with staged(out, overwrite) as directory:
        summary = make_summary("estimate", campaign, counts, tally.reports, senders=tally.senders)
        summary = write_results(directory, campaign, tally, wanted, levels or Levels(), summary)
        return write_summary(directory, summary)
