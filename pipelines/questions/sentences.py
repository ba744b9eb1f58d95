"""Plain sentences on the errors of an answer, its corrections for many rows, and the changes that it could miss."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timezone, tzinfo

import numpy as np
import pyarrow as pa

from hushcount.collection.windows import is_window, window_names
from hushcount.estimating import estimated
from hushcount.oracles.influence import FORGERS
from hushcount.oracles.sight import sight_of
from hushcount.privacy.unit import repeats_of
from hushcount.questions.collisions import pool_of
from hushcount.questions.counted import Counted
from hushcount.questions.sides import added_up
from pipelines.epochs.tracked_items import shown
from pipelines.questions.breakdown import WHOLE, Breakdown
from pipelines.questions.changes import CONFIDENCE, Change
from pipelines.questions.findings import Compared, findings, share_of, state_of, verdict_of
from pipelines.questions.selection import each_item
from pipelines.questions.sources import Source
from pipelines.questions.stratum_changes import StratumChange

_EACH = 3
"""If an answer has at most this number of rows, there is a sentence on each row."""
_SEEN = 0.8


def percent(share: float, signed: bool = False) -> str:
    """Return a share as per cent: 12.3%, with three decimals below 0.1%, with two digits below 0.005%.

    A share below 1e-8 is 0.0%, and an infinite one "no bound".
    """
    if not math.isfinite(share):
        return "no bound"
    size = abs(share)
    digits = 1 if size >= 0.001 or size < 1e-8 else 3 if size >= 5e-5 else -math.floor(math.log10(size)) - 1
    text = f"{100 * share:+.{digits}f}" if signed else f"{100 * share:.{digits}f}"
    return f"{text}%"


def ratio(value: float) -> str:
    """Return a ratio in three digits, or "no bound" if it is infinite."""
    return "no bound" if not math.isfinite(value) else f"{value:.3g}"


def of_results(results: Sequence[Counted], zone: tzinfo = timezone.utc) -> Iterator[str]:
    """Say which flags these results raise, and how repeated answers and pools affect their counts.

    Args:
        zone: that of the windows' names.
    """
    for one in results:
        for said in one.tally.flags.raised:
            name = window_names([one.window], zone)[one.window] if is_window(one.window) else shown(one.window)
            yield f"{name}: {said}"
    if any(one.campaign.memory for one in results):
        yield (
            "clients repeat their answers: windows of one epoch have nearly the same errors, so their mean is no "
            "more exact than one window, and their difference no less exact than stated"
        )
    for name, sample in {one.campaign.id: one.campaign.sample for one in results}.items():
        if sample is not None:
            yield (
                f"{name} asks a sample of {percent(sample.share)} of its clients: without --population, counts are of "
                "those who reported"
            )
    if any(pool_of(one.campaign.require_frequency()) is not None for one in results):
        yield (
            "items share cells of fixed hash functions: the errors include these collisions, which more reports do "
            "not average out"
        )


def of_population(population: int) -> str:
    """Say what counts are that were scaled from a sample to a population of clients."""
    return (
        f"scaled to {population:,} clients, as if all others were like those who reported; errors and intervals "
        "contain the error of the sample"
    )


def of_strata() -> str:
    """Say what the share in a stratum is, and when it is unknown."""
    return (
        "in stratum: the share of the reports with the same coordinates, with an interval for all rows; unknown if the "
        "number of these reports is not significantly above 0"
    )


def of_other(results: Sequence[Counted]) -> Iterator[str]:
    """Say which share of each result's reports is in no row, because the dictionary lacks their values ("other")."""
    for one in results:
        if one.dictionary is None:
            yield "the domain is open: only items that the campaign follows have rows"
            continue
        if one.campaign.number is not None and one.campaign.number.mean:
            continue
        other = estimated(one.campaign, one.tally, np.array([one.campaign.other], dtype=np.uint64))
        share, half = share_of(float(other.count[0]), one.reports), float(other.error[0]) / one.reports
        yield (
            f'"other", values that the dictionary of epoch {one.campaign.epoch} does not list: {percent(share)} ± '
            f"{percent(half)} of the reports"
        )


def of_top(source: Source, table: pa.Table, show: int, of: Breakdown = WHOLE) -> Iterator[str]:
    """Say how detections are corrected, and which items and reports have no row; `table`: all detected rows."""
    most = max(Counter(table["epoch"].to_pylist()).values(), default=0) if "epoch" in table.column_names else len(table)
    yield from of_cut(show, most)
    if not table.num_rows:
        yield from of_nothing(source, of)
    items = looks_of_top(source, of)
    if len(source.windows) == 1:
        yield of_looks(items)
        yield from of_other(source.counted)
        return
    yield of_totals(items)
    if lost := len(source.followed) - items // of.strata(source.counted):
        yield f"{lost:,} {'item that' if lost == 1 else 'items that'} not all of these windows counted: no row"


def looks_of_top(source: Source, of: Breakdown = WHOLE) -> int:
    """Return how many counts were looked at to find the most frequent items."""
    items = len(source.followed) * len(source.places) if len(source.windows) == 1 else len(each_item([source]))
    return items * of.strata(source.counted)


def of_nothing(source: Source, of: Breakdown = WHOLE) -> Iterator[str]:
    """Say what this number of reports could have shown, and what to change; for an answer without a detected item."""
    alone, many = len(source.windows) == 1, len(source.places) > 1
    # In one window each epoch is tested by itself. Several windows are added up, and repeated answers with them.
    tested = [max(source.counted, key=lambda one: one.reports)] if alone else added_up(source.counted)
    campaign, reports = tested[-1].campaign, sum(one.reports for one in tested)
    repeats = max(repeats_of(one.campaign, one.tally.senders) for one in tested)
    looks, strata = len(source.followed) * (len(source.places) if alone else 1), of.strata(source.counted)
    # The variance of a sum of cells is about their number times that of one, as that of equal reports is.
    # With noise of the mixes this holds for sums of batches too.
    batches = 1 if campaign.noise is None else sum(one.tally.batches for one in tested)
    cells = batches * campaign.cells_an_item / strata
    sight = sight_of(campaign.require_frequency(), reports, looks * strata, repeats=math.ceil(repeats * cells))
    yield sight.words("people" if campaign.shuffle.cap == 1 and not many else "reports")
    added = "add windows up (hushcount ask top --last 7), or " if alone else ""
    yield f"to see rarer items: {added}plan more people, longer windows or a larger epsilon (hushcount init)"


def of_found(source: Source, table: pa.Table) -> Iterator[str]:
    """Say where the counts of discovered values are from, or that these values have no row; `table`: all rows."""
    found = source.epochs is not None and any(place.campaign.discovery is not None for place in source.places)
    if "source" in table.column_names and "discovery" in table["source"].to_pylist():
        yield (
            "a value that no dictionary lists yet has the noisy count that discovery released: hushcount ask new shows "
            "all these values"
        )
    elif found and source.dictionary is not None:
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
    wrong = f"is wrong is {100.0 * (1.0 - CONFIDENCE):.3g} % at most"
    if rows == 1:
        return f"the probability that the interval {wrong}"
    return (
        f"{what} are corrected for all {rows:,} counts looked at together (Bonferroni): for each of the two, the "
        f"probability that even one {wrong}"
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
    verdict, before, after = verdict_of(one), percent(one.before), percent(one.after)
    said = f"has {before} of reports before and {after} after"
    if verdict != "not significant":
        said = f"is {'up' if verdict == 'rise' else 'down'} from {before} to {after} of reports"
    between = f"{percent(one.low_all, signed=True)} to {percent(one.high_all, signed=True)}"
    return (
        f"{shown(one.group)} {said}, a difference of {between} (95 %, corrected for all rows); the probability that "
        f"chance alone changes any of the rows so much is {chance(one.p_bonferroni)}; {_of_forgers(one)}"
    )


def _of_forgers(one: Change) -> str:
    """Say how far forgers could move a difference, in both directions."""
    down, up = percent(-one.forged_down, signed=True), percent(one.forged_up, signed=True)
    return (
        f"{100 * FORGERS:g} % of all clients, if they forge on both sides, could move the difference by {down} to {up}"
    )


def of_verdicts(found: Sequence[Compared]) -> str:
    """Say how many of several differences are significant, and how p-values were corrected."""
    many = len(found)
    up, down = (sum(verdict_of(one) == verdict for one in found) for verdict in ("rise", "fall"))
    said = (
        f"{up + down:,} of {many:,} differences {'is' if up + down == 1 else 'are'} significant, {up:,} up and "
        f"{down:,} down: of those, {100.0 * (1.0 - CONFIDENCE):.3g} % at most are expected to be due to chance"
        if up + down
        else f"none of {many:,} differences is significant"
    )
    return f"{said}; verdicts and intervals are corrected for all {many:,} rows (Benjamini and Hochberg)"


def of_stratum_changes(found: Sequence[StratumChange]) -> Iterator[str]:
    """Say which differences between two strata are significant, and of what they are."""
    if len(found) > 1:
        yield of_verdicts(found)
    elif found[0].is_known:
        between = f"{percent(found[0].low, signed=True)} to {percent(found[0].high, signed=True)}"
        yield (
            f"{'significant' if found[0].significant else 'not significant'}: the difference is {between} (95 %), and "
            f"the probability that chance alone makes so large a one is {chance(found[0].p_value)}"
        )
    yield "shares are of the reports of each stratum; the clients that reported count as a sample of all"
    if not all(one.is_known for one in found):
        yield "unknown: the number of reports of a stratum is not significantly above 0"


def of_changes(found: Sequence[Change]) -> Iterator[str]:
    """Say which changes are significant, how p-values were corrected, and which changes would have been significant."""
    many = len(found)
    if many == 1:
        yield f"{'significant' if found[0].significant else 'not significant'}: {of_change(found[0])}"
    else:
        yield of_verdicts(found)
        most = max(found, key=lambda one: max(one.forged_down, one.forged_up))
        yield f"{_of_forgers(most)}, in {shown(most.group)}, and other rows no further"
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


def of_cut(show: int, many: int) -> Iterator[str]:
    """Say that the table shows the first `show` rows of more, and how to see all."""
    if show < many:
        yield f"{show:,} of {many:,} shown; --show {many} shows all"


def of_items(table: pa.Table, shown: Sequence[str], *, of_all: bool) -> Iterator[str]:
    """Say which items the answer shows, and explain the marks of counts; `table`: a table of `items_table`."""
    yield from of_undetected(table, shown, "item")
    if any(table["backfilled"].to_pylist()):
        yield "* estimated from the tally of a window before the item was discovered"
    counted = "source" in table.column_names
    if counted and "discovery" in table["source"].to_pylist():
        yield "+ the noisy count that discovery released, because no dictionary had the item yet"
    if counted and table["combined"].null_count < table.num_rows:
        yield "estimates of discovered values are combined with the noisy counts that discovery released"
    if of_all:
        items = len(set(table["item"].to_pylist()))
        detected = {row["item"] for row in findings(table.select(["item", "detected_all"]).to_pylist())}
        yield from of_cut(len(shown), len(detected))
        yield (
            f"{len(detected):,} of {items:,} items are detected in a window; the probability that even one detection "
            f"is wrong is 5 % at most, for all {table.num_rows:,} counts looked at together (Bonferroni)"
        )


def of_undetected(table: pa.Table, shown: Sequence[str], head: str) -> Iterator[str]:
    """Explain the parentheses of counts that are not detected in their window, if a shown row has any."""
    states = table.select([head, "detected_all", "count"]).to_pylist()
    if any(row[head] in shown and row["count"] is not None and state_of(row) != "detected" for row in states):
        yield "(in parentheses) not detected in this window: the count may be noise alone"


def of_sums(table: pa.Table, groups: int, shown: Sequence[str], *, of_paths: bool) -> Iterator[str]:
    """Say which sums the answer shows, and explain the marks of sums; `table`: one of `sums_table`."""
    yield from of_undetected(table, shown, "group")
    if len(shown) < groups:
        yield f"the {'largest' if of_paths else 'first'} sums: {next(of_cut(len(shown), groups))}"
    if any(table["missing"].to_pylist()):
        yield '% lacks items that the window did not count: if a dictionary lacks an item, its reports are in "other"'


def of_totals(items: int) -> str:
    """Say that a total counts reports, and how many items (`items`) detections and intervals are corrected for."""
    return f"totals are of reports: a client that reports in each window counts once for each; {of_looks(items)}"


def of_new(source: Source, table: pa.Table) -> Iterator[str]:
    """Explain the counts of discovered values, and missing counts and values; `table`: a table of `new_table`."""
    yield from of_undetected(table, table["item"].to_pylist(), "item")
    sources = table["source"].to_pylist()
    if "discovery" in sources:
        yield "+ the noisy count that discovery released, because no dictionary has the value"
        if any(place.campaign.is_oblivious for place in source.places):
            yield "apart from noise it is a lower bound: clients whose evaluation did not come sent no value"
    if None in sources:
        yield "a value without a count was sent by enough clients; it is counted once a dictionary lists it"
    yield "a value that was not found is not certainly rare: the keep rule decides at random"
