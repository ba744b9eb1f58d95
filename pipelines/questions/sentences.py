"""Plain sentences on the errors of an answer, its corrections for many rows, and the changes that it could miss."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hushcount.campaigns.dictionary import other_item
from hushcount.estimating import estimated
from hushcount.questions.collisions import pool_of
from hushcount.questions.counted import Counted
from pipelines.epochs.tracked_items import shown
from pipelines.questions.changes import CONFIDENCE, Change
from pipelines.questions.sources import Source

_EACH = 3
"""If an answer has at most this number of rows, there is a sentence on each row."""
_SEEN = 0.8


def percent(share: float, signed: bool = False) -> str:
    """Return a share as per cent: 12.3%, or with three decimals below 0.1%, as in 0.012%; "no bound" if infinite."""
    if not math.isfinite(share):
        return "no bound"
    digits = 1 if abs(share) >= 0.001 else 3
    text = f"{100 * share:+.{digits}f}" if signed else f"{100 * share:.{digits}f}"
    return f"{text}%"


def ratio(value: float) -> str:
    """Return a ratio in three digits, or "no bound" if it is infinite."""
    return "no bound" if not math.isfinite(value) else f"{value:.3g}"


def of_results(results: Sequence[Counted]) -> Iterator[str]:
    """Say how repeated answers and pools affect the counts of these results."""
    if any(one.campaign.memory for one in results):
        yield (
            "clients repeat their answers: windows of one epoch have nearly the same errors, so their mean is no "
            "more exact than one window, and their difference no less exact than stated"
        )
    if any(pool_of(one.campaign.require_frequency()) is not None for one in results):
        yield (
            "items share cells of fixed hash functions: the errors include these collisions, which more reports do "
            "not average out"
        )


def of_other(results: Sequence[Counted]) -> Iterator[str]:
    """Say which share of each result's reports is in no row, because the dictionary lacks their values ("other")."""
    for one in results:
        if one.dictionary is None:
            yield "the domain is open: only items that the campaign follows have rows"
            continue
        mechanism = one.campaign.require_frequency()
        other = estimated(one.campaign, one.tally, np.array([other_item(mechanism)], dtype=np.uint64))
        share, half = float(other.count[0]) / one.reports, float(other.error[0]) / one.reports
        yield (
            f'"other", values that the dictionary of epoch {one.campaign.epoch} does not list: {percent(share)} ± '
            f"{percent(half)} of the reports"
        )


def of_found(source: Source) -> Iterator[str]:
    """Say which command shows the discovered values that have no row, because the dictionary lacks them."""
    found = source.epochs is not None and any(place.campaign.discovery is not None for place in source.places)
    if found and source.dictionary is not None:
        yield "discovered values that no dictionary lists yet have no row: see hushcount ask new"


def of_looks(rows: int, *, are_shown: bool = True) -> str:
    """Say how intervals and detections are corrected for many rows; `are_shown`: whether the table has their columns.

    The columns low_all, high_all and detected_all are always in --json and --out.
    """
    what = (
        "intervals for all rows, and detections,"
        if are_shown
        else "the intervals low_all to high_all, and detected_all, in --json and --out"
    )
    return (
        f"{what} are corrected for all {rows:,} counts looked at together (Bonferroni): for each of the two, the "
        f"probability that even one is wrong is {100.0 * (1.0 - CONFIDENCE):.3g} % at most"
    )


def chance(probability: float) -> str:
    """Return a p-value as text; below 1e-6 without its digits, because the approximate law is not so exact."""
    return "below 1e-6" if probability < 1e-6 else f"{probability:.2g}"


def _seen(probability: float) -> str:
    if probability < 0.005:
        return "below 0.01"
    return "above 0.99" if probability > 0.99 else f"{probability:.2f}"


def of_change(one: Change) -> str:
    """Say how a share changed, and the probability that chance alone changes any row's share so much."""
    return (
        f"{shown(one.group)} is {'up' if one.difference > 0.0 else 'down'} from {percent(one.before)} to "
        f"{percent(one.after)} of reports, by {percent(one.difference, signed=True)} ({percent(one.low, signed=True)} "
        f"to {percent(one.high, signed=True)}, 95 %); the probability that chance alone changes any of the rows so "
        f"much is {chance(one.p_bonferroni)}"
    )


def of_changes(found: Sequence[Change]) -> Iterator[str]:
    """Say which changes are significant, how p-values were corrected, and which changes would have been significant."""
    many = len(found)
    up, down = (sum(one.significant and sign * one.difference > 0.0 for one in found) for sign in (1, -1))
    if many == 1:
        yield f"{'significant' if found[0].significant else 'not significant'}: {of_change(found[0])}"
    else:
        said = (
            f"{up + down:,} of {many:,} differences are significant, {up:,} up and {down:,} down: of those, "
            f"{100.0 * (1.0 - CONFIDENCE):.3g} % at most are expected to be due to chance"
            if up + down
            else f"none of {many:,} differences is significant"
        )
        yield f"{said}, corrected for all {many:,} rows (Benjamini and Hochberg); each interval holds for its row alone"
    if many <= _EACH:
        for one in found:
            more = (
                "no rise would have been seen reliably"
                if not math.isfinite(one.least_seen)
                else f"a rise by {100 * (one.least_seen - 1.0):.3g} % with probability {_SEEN:g}"
            )
            yield (
                f"a change of 20 % in {shown(one.group)} would have been seen with probability {_seen(one.seen_20)}; "
                f"{more}"
            )
    else:
        often = sum(one.seen_20 >= _SEEN for one in found)
        yield (
            f"a change of 20 % would have been seen with probability {_SEEN:g} or more in {often:,} of the {many:,} "
            "rows; in the other rows it may well be missed"
        )


def of_left_out(lost: Mapping[str, int]) -> Iterator[str]:
    """Say which groups have items that not every result counted."""
    for name, many in list(lost.items())[:_EACH]:
        items = "item" if many == 1 else "items"
        yield f"{shown(name)} lacks {many:,} {items} that not all of these results counted"
    if len(lost) > _EACH:
        yield f"{len(lost) - _EACH:,} more groups lack some of their items"


def of_marked(many: int, shown: Sequence[Change]) -> Iterator[str]:
    """Say which of `many` changes the table shows, and explain the marks of changes."""
    if len(shown) < many:
        yield f"{len(shown):,} of {many:,} rows, the strongest evidence first"
    if any(one.significant for one in shown):
        yield "* significant"


def of_items(table: pa.Table, shown: Sequence[str], *, of_all: bool) -> Iterator[str]:
    """Say which items the answer shows, and explain the marks of counts; `table`: a table of `items_table`."""
    if any(table["backfilled"].to_pylist()):
        yield "* estimated from the tally of a window before the item was discovered"
    counted = "source" in table.column_names
    if counted and "discovery" in table["source"].to_pylist():
        yield "+ the noisy count that discovery released, because no dictionary had the item yet"
    if counted and table["combined"].null_count < table.num_rows:
        yield "estimates of discovered values are combined with the noisy counts that discovery released"
    if of_all:
        items = len(set(table["item"].to_pylist()))
        detected = {row["item"] for row in table.select(["item", "detected_all"]).to_pylist() if row["detected_all"]}
        yield (
            f"{len(shown):,} of {len(detected):,} items that are detected in a window, of {items:,} items; the "
            f"probability that even one detection is wrong is 5 % at most, for all {table.num_rows:,} counts looked at "
            "together (Bonferroni)"
        )


def of_sums(table: pa.Table, groups: int, shown: int, *, of_paths: bool) -> Iterator[str]:
    """Say which sums the answer shows, and explain the mark of sums that lack items; `table`: one of `sums_table`."""
    if shown < groups:
        yield f"the {shown:,} {'largest' if of_paths else 'first'} of {groups:,} sums"
    if any(table["missing"].to_pylist()):
        yield '% lacks items that the window did not count: if a dictionary lacks an item, its reports are in "other"'


def of_totals(table: pa.Table, show: int) -> Iterator[str]:
    """Say that a total counts reports, and how many totals the answer shows; `table`: one of `totals_table`."""
    if show < table.num_rows:
        yield f"{show:,} of {table.num_rows:,} totals"
    yield (
        "totals are of reports: a client that reports in each window counts once for each; an interval holds for its "
        "row alone"
    )


def of_new(source: Source, table: pa.Table) -> Iterator[str]:
    """Explain the counts of discovered values, and missing counts and values; `table`: a table of `new_table`."""
    sources = table["source"].to_pylist()
    if "discovery" in sources:
        yield "+ the noisy count that discovery released, because no dictionary has the value"
        if any(place.campaign.is_oblivious for place in source.places):
            yield "apart from noise it is a lower bound: clients whose evaluation did not come sent no value"
    if None in sources:
        yield "a value without a count was sent by enough clients; it is counted once a dictionary lists it"
    yield "a value that was not found is not certainly rare: the keep rule decides at random"


def plain(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows for JSON, with null in place of infinity and NaN."""
    return [
        {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()}
        for row in rows
    ]
