"""found.csv: the values that discovery revealed, and their counts with errors if the campaign has counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from hushcount.arrays import IntArray
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary
from hushcount.discovery.found_counts import combine, count_estimates, unbiased_from
from hushcount.errors import FormatError
from hushcount.items import may_be_item
from hushcount.maths.count_laws import CountLaw
from hushcount.privacy.unit import rule_of, unit_of
from hushcount.senders import Senders
from pipelines.files import storage
from pipelines.files.csv_cells import csv_header
from pipelines.handover.upstream import read_upstream
from pipelines.jobs.table_files import csv_bytes, read_csv_rows
from pipelines.outputs.received_summary import folder_of
from pipelines.outputs.summary import CountFacts, Explained, HopSummary

FOUND = "found.csv"
CONFIDENCE = 0.95
_HEAD_BYTES = 1024
_FAR = 10**6
"""A count so large that it is shown whatever noise is drawn."""
_MOST_SHOWN = 1 << 53
COUNT_COLUMNS = ("count", "standard_error", "low", "high", "bias")
"""Columns of found.csv after the item, in a campaign with counts; `hushcount.discovery.found_counts` explains them."""
COMBINED_COLUMNS = ("estimate", "estimate_error", "combined", "combined_error")
"""Columns that hushcount job analyze adds in an open domain: the frequency estimate, and both counts combined."""


_NUMBERS: Mapping[str, type[int | float]] = {"low": int, "high": int}
COMBINED_SAYS = (
    "The frequency reports count these values too: estimate, with estimate error, the standard and collision error "
    "together. Combined is the mean of both counts, weighted by the inverse of their variances; it is right if no "
    "report of either stream was lost. It is empty for a count that may be too large because only large counts are "
    "shown (bias)."
)
ANSWERED = "reports whose evaluation came"
"""The reports that counts of an oblivious campaign include; a report without an evaluation holds no value."""
NOT_COMBINED = (
    f"The counts of these values include only {ANSWERED}, but the frequency estimates include all reports, so the two "
    "are not combined."
)
OTHER_BATCH = (
    "These values were not discovered in the shuffled batch that is estimated here, so their counts are neither "
    'combined with its estimates nor compared with "other".'
)


@dataclass(frozen=True, eq=False)
class Found:
    """The values that a discovery revealed, and the discovery's summary.

    Attributes:
        items: the values, in the order of the table.
        counts: the columns item and COUNT_COLUMNS, later also COMBINED_COLUMNS; None if the campaign has no counts.
    """

    items: tuple[str, ...]
    summary: HopSummary
    counts: pa.Table | None = None


def unbiased_of(campaign: Campaign, senders: Senders) -> int:
    """Return the true count from which shown counts are hardly too large (`unbiased_from`); 0 without counts."""
    law = count_law_of(campaign, senders)
    return 0 if law is None else unbiased_from(law)


def count_law_of(campaign: Campaign, senders: Senders) -> CountLaw | None:
    """Return the law of the noise in a batch's counts; None if the campaign has no counts."""
    rule = rule_of(campaign, senders)
    return rule.count_law if rule.counts else None


def write_found(revealed: Sequence[tuple[str, int | None]], directory: str, law: CountLaw | None = None) -> None:
    """Write found.csv: the column item, sorted; with counts also COUNT_COLUMNS, and the largest count first.

    Args:
        revealed: values with their shown counts. An honest auxiliary server releases no value twice; if a value comes
            twice, the smaller count is written.
        law: law of the noise in the counts; None: the campaign has no counts.
    """
    if law is None:
        items = pa.table({"item": sorted({item for item, _ in revealed})}, pa.schema([("item", pa.string())]))
        storage.write_whole(storage.join(directory, FOUND), [csv_bytes(items)])
        return
    least: dict[str, int] = {}
    for item, count in revealed:
        least[item] = min(count or 0, least.get(item, count or 0))
    ordered = sorted(least, key=lambda item: (-least[item], item))
    put_counts(directory, count_table(ordered, np.array([least[item] for item in ordered], dtype=np.int64), law))


def count_table(items: Sequence[str], shown: IntArray, law: CountLaw) -> pa.Table:
    """Return a table with the columns item and COUNT_COLUMNS, computed from `shown`, the shown counts as int64[v]."""
    estimates = count_estimates(law, shown, CONFIDENCE)
    columns = [pa.array(items, pa.string()), *(getattr(estimates, name) for name in COUNT_COLUMNS)]
    return pa.table(columns, names=["item", *COUNT_COLUMNS])


def put_counts(directory: str, table: pa.Table) -> None:
    """Write found.csv for values with counts."""
    storage.write_whole(storage.join(directory, FOUND), [csv_bytes(table)])


def read_found(directory: Path | str, campaign: Campaign) -> Found:
    """Read a result of hushcount job discover; raises UsageError if the directory holds no result of this campaign."""
    summary = read_upstream(str(directory), "discover", campaign)
    path = storage.join(folder_of(str(directory), summary), FOUND)
    if campaign.discovery is None or not campaign.discovery.counts:
        return Found(tuple(read_found_items(path)), summary)
    counts = read_counts(path)
    if (law := count_law_of(campaign, summary.senders)) is not None:
        shown_counts(counts, law, path)
    return Found(tuple(counts["item"].to_pylist()), summary, counts)


def read_found_items(path: str) -> list[str]:
    """Return the items of a found.csv.

    Raises:
        UsageError: the file cannot be read, or has a repeated or invalid item, which no analyzer reveals.
    """
    return _items(path, read_csv_rows(path, ("item",)))


def read_counts(path: str) -> pa.Table:
    """Return the columns item and COUNT_COLUMNS of a found.csv with counts.

    Raises:
        UsageError: as `read_found_items`; or a count is not a number, or the standard error of a count is not above 0.
    """
    rows = read_csv_rows(path, ("item", *COUNT_COLUMNS))
    items = _items(path, rows)
    try:
        columns = [[_NUMBERS.get(name, float)(row[name]) for row in rows] for name in COUNT_COLUMNS]
    except ValueError:
        columns = [[math.nan]]
    if not all(math.isfinite(number) for column in columns for number in column) or min(columns[1], default=1.0) <= 0.0:
        raise FormatError(f"{path} has a count that is not a number: restore it")
    types = [pa.int64() if name in _NUMBERS else pa.float64() for name in COUNT_COLUMNS]
    typed = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return pa.table([pa.array(items, pa.string()), *typed], names=["item", *COUNT_COLUMNS])


def shown_counts(counts: pa.Table, law: CountLaw, path: str) -> IntArray:
    """Return the counts that the bins of a found.csv showed, int64[v]; FormatError if no bin can show such a count."""
    shown = np.rint(counts["count"].to_numpy() + law.mean)
    if len(shown) and not law.threshold <= shown.min() <= shown.max() <= _MOST_SHOWN:
        raise FormatError(f"{path} has a count that no bin can show: restore it")
    return shown.astype(np.int64)


def _items(path: str, rows: Sequence[Mapping[str, str]]) -> list[str]:
    items = [row["item"] for row in rows]
    if len(set(items)) < len(items) or not all(map(may_be_item, items)):
        raise FormatError(f"{path} has a repeated or invalid item: restore the file that hushcount job discover wrote")
    return items


def same_batch(found: Found, summary: HopSummary) -> bool:
    """Return whether the values come from the same shuffled batch as the analysis with this summary."""
    return found.summary.shuffled is not None and found.summary.shuffled == summary.made_from


def was_combined(path: str) -> bool:
    """Return whether a found.csv of hushcount job analyze has COMBINED_COLUMNS."""
    with storage.open_read(path) as stream:
        return COMBINED_COLUMNS[-1] in csv_header(stream.readline(_HEAD_BYTES), path)


def combined(counts: pa.Table, estimates: pa.Table, unbiased: int) -> pa.Table:
    """Return counts of discovered values with COMBINED_COLUMNS, which are empty for a value without an estimate.

    A count is combined only if its interval begins at `unbiased` or above. A value that fewer than `unbiased` clients
    have is shown because its noise was large, so a stated error of its combined count would be wrong. Because of this
    rule, a value that fewer than `unbiased` clients have gets a combined count in at most 2.5 % of the draws that show
    the value.

    Args:
        counts: columns item and COUNT_COLUMNS.
        estimates: columns item, count, standard_error and collision_error, of one tally in an open domain.
        unbiased: a result of `unbiased_from`.
    """
    places = {item: place for place, item in enumerate(estimates["item"].to_pylist())}
    rows = np.array([places.get(item, -1) for item in counts["item"].to_pylist()], dtype=np.int64)
    there = rows >= 0
    mine = {name: counts[name].to_numpy()[there] for name in ("count", "standard_error")}
    theirs = {name: estimates[name].to_numpy()[rows[there]] for name in ("count", "standard_error", "collision_error")}
    errors = np.hypot(theirs["standard_error"], theirs["collision_error"])
    both = (theirs["count"], errors, *combine(mine["count"], mine["standard_error"], theirs["count"], errors))
    sure = there & (counts["low"].to_numpy() >= unbiased)
    for name, column, has in zip(COMBINED_COLUMNS, both, (there, there, sure, sure), strict=True):
        whole = np.full(len(rows), np.nan)
        whole[there] = column
        counts = counts.append_column(name, pa.array(whole, mask=~has))
    return counts


def explain(other: float, error: float, counts: pa.Table, listed: Dictionary | None, lower: bool = False) -> Explained:
    """Return the part of "other" that comes from discovered values which the dictionary lacks.

    Args:
        other, error: the frequency estimate of "other", and the root of the sum of its squared standard and collision
            errors.
        counts: columns item and COUNT_COLUMNS.
        lower: whether the counts lack some reports with these values, as in an oblivious campaign.
    """
    known = () if listed is None else listed
    outside = np.array([item not in known for item in counts["item"].to_pylist()], dtype=bool)
    found = float(counts["count"].to_numpy()[outside].sum())
    spread = math.hypot(*counts["standard_error"].to_numpy()[outside])
    bias = float(counts["bias"].to_numpy()[outside].sum())
    return Explained(int(outside.sum()), found, spread, bias, other - found, math.hypot(error, spread), lower)


def facts_of(campaign: Campaign, senders: Senders) -> CountFacts | None:
    """Return what the summary of hushcount job discover says about counts; None if the campaign has no counts."""
    law = count_law_of(campaign, senders)
    if law is None:
        return None
    low, high = law.interval(_FAR, CONFIDENCE)
    # In found.csv, a count is the count that the bin shows minus the noise's mean.
    below, above = _FAR - law.mean - low, high - _FAR + law.mean
    unit = unit_of(campaign, senders, "discovery")
    threshold, unbiased = law.threshold - law.mean, unbiased_from(law)
    counted, bound = unit.counted, ""
    if campaign.is_oblivious:
        bound = (
            f"Other reports came without their value, so apart from noise a count is a lower bound: more {counted} may "
            "have the value. "
        )
        counted = ANSWERED
    says = (
        f"Counts are of {counted}. {bound}{unit.meaning} The standard error of a count is "
        f"{law.standard_deviation:.1f}; "
        f"its {100 * CONFIDENCE:g} % interval reaches from {below:.0f} below the count to {above:.0f} above it. Only "
        f"counts of {threshold:.0f} or more are shown, so a rare value is shown only if its noise is large. Values of "
        f"fewer than about {unbiased:,} are shown too large on average. The column bias says by how much, if the count "
        "is about right; if the true number is nearer to the lower end of the interval, the excess is larger."
    )
    return CountFacts(law.standard_deviation, CONFIDENCE, below, above, threshold, unbiased, counted, says)
