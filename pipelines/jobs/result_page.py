"""report.html: one self-contained page with chart, discovered values, counts of every hop, and the statement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hushcount.campaigns.campaign import Campaign
from hushcount.oracles.estimates import Levels
from hushcount.questions.means import Mean
from pipelines.console.job_results import detection, other_explained
from pipelines.console.number_text import numeral, of_range
from pipelines.console.tables import by_reason
from pipelines.jobs.found import COMBINED_SAYS, Found, facts_of, same_batch
from pipelines.outputs.counts import BinCounts, StreamCounts
from pipelines.outputs.summary import HopSummary, TableFacts
from pipelines.pages.figures import Block, Figure, Guarantee, Panel, Prose, Row, Span
from pipelines.pages.page import render as page_of
from pipelines.pages.text import sentence

_CHART_ITEMS = 40
_TABLE_ITEMS = 200


@dataclass(frozen=True, eq=False)
class Page:
    """The content of the page.

    `table` has the estimates, `found` the discovered values, `mean` the mean of numbers; None: there are none.
    """

    campaign: Campaign
    summary: HopSummary
    table: pa.Table | None
    found: Found | None
    mean: Mean | None = None


def render(page: Page) -> str:
    """Return the page as HTML that refers to no other file and no host."""
    # The only item of a mean is a sum of places on a line, so its count is of no clients.
    estimates = [_estimates(page)] if page.mean is None else []
    blocks = (*_mean(page), *estimates, *_found(page), _hops(page))
    panel = Panel("result", "", Guarantee.of(page.summary.stated), blocks)
    title = f"{page.campaign.heading}, epoch {page.campaign.epoch}"
    return page_of(title, (), [panel], f"Campaign fingerprint {page.campaign.fingerprint.hex()}")


def _mean(page: Page) -> Iterator[Block]:
    number, mean = page.campaign.number, page.mean
    if number is None or mean is None:
        return
    found, levels = mean.of_clients, Levels()
    low, high = (numeral(end, found.error) for end in found.interval(levels.confidence))
    says = (
        f"{numeral(found.value, found.error)} \u00b1 {numeral(found.error, found.error)} {number.unit}".rstrip(),
        f"from {low} to {high} with {100 * levels.confidence:g} %",
    )
    yield Prose("mean", "Mean of the numbers", (f"{', '.join(says)}.", *map(sentence, of_range(number))))


def _estimates(page: Page) -> Block:
    estimates = page.summary.estimates
    if page.table is None or estimates is None or estimates.table is None:
        says = "The domain is open, so no items are listed: estimate items of your choice with hushcount job estimate."
        return Prose("estimates", "Estimates", (says,))
    table = page.table.sort_by([("count", "descending")])
    rows = tuple(map(_counted, table.slice(0, _TABLE_ITEMS).to_pylist()))
    other = estimates.other
    outside = []
    if other:
        error = f"{other['standard_error']:,.0f}"
        outside.append(f"Outside the dictionary (\u201cother\u201d): {other['count']:,.0f} \u00b1 {error}.")
    if estimates.explained is not None:
        outside.append(other_explained(estimates.explained))
    flags = page.summary.flags
    raised = () if flags is None else tuple(f"{said}." for said in flags.raised)
    detected, notes = (_detected(estimates.table), *raised), (_legend(estimates.table), *outside)
    heads = _heads(table)
    return Figure("estimates", "Estimates", detected, "intervals", heads, rows, most=_CHART_ITEMS, notes=notes)


def _detected(table: TableFacts) -> str:
    if not table.detected_all:
        return f"None of {table.items:,} items is detected, so none is drawn."
    largest = f"; the {_CHART_ITEMS} largest are drawn" if table.detected_all > _CHART_ITEMS else ""
    return f"{table.detected_all:,} of {table.items:,} items are detected{largest}."


def _legend(table: TableFacts) -> str:
    rate, expected = table.false_positive_rate, table.false_positive_rate * table.items
    false = f"about {expected:,.0f} items" if expected >= 1.0 else f"{expected:.2g} items on average"
    return (
        f"Intervals have a confidence of {100 * table.confidence:g} %. A thick line holds for its item alone; the thin "
        f"lines (low all, high all) hold for all {table.items:,} items together. The largest of many noisy estimates "
        "tend to be too large: read the thin lines for items that you pick by size. \u201cdetected all\u201d marks the "
        f"{table.detected_all:,} items that are {detection(table)} No other item is drawn. \u201cdetected\u201d marks "
        f"the {table.detected:,} items that are detected if each is tested alone. An item that nobody has is marked "
        f"with a probability of at most {100 * rate:g} %; if nobody had any of the items, {false} would be marked."
    )


def _heads(table: pa.Table) -> tuple[str, ...]:
    return tuple(name.replace("_", " ") for name in table.column_names)


def _counted(row: dict[str, Any]) -> Row:
    """Return a row of the table: the item, its numbers, and whether it is detected, tested alone and with all items."""
    item, *numbers, detected, among_all = row.values()
    marks = ("detected" if mark else "not detected" for mark in (detected, among_all))
    drawn = Span(row["count"], row["low"], row["high"], row["low_all"], row["high_all"], among_all)
    return Row(item, (*(f"{number:,.0f}" for number in numbers), *marks), drawn)


def _found(page: Page) -> Iterator[Block]:
    found = page.found
    if found is None:
        return
    title = f"Discovered: {len(found.items):,} values that nobody listed"
    facts = facts_of(page.campaign, found.summary.senders)
    apart = "" if page.summary.estimates is None else page.summary.estimates.apart or ""
    if found.counts is None or facts is None:
        yield Prose("found", title, _sentences([apart]), tuple(sorted(found.items)))
        return
    both = COMBINED_SAYS if "combined" in found.counts.column_names else apart
    rows = tuple(map(_found_row, found.counts.slice(0, _TABLE_ITEMS).to_pylist()))
    says = _sentences([facts.says, both])
    yield Figure("found", title, says, "intervals", _heads(found.counts), rows, most=_CHART_ITEMS)


def _sentences(texts: Iterable[str]) -> tuple[str, ...]:
    said = " ".join(texts).strip()
    return (said,) if said else ()


def _found_row(row: dict[str, Any]) -> Row:
    """Return a row for a discovered value; numbers have one decimal, because an error may be a few reports only."""
    item, *numbers = row.values()
    cells = tuple("" if number is None else f"{number:,.1f}" for number in numbers)
    return Row(item, cells, Span(row["count"], row["low"], row["high"]))


def _hops(page: Page) -> Figure:
    chain = (*page.summary.upstream, page.summary)
    lines: list[tuple[str, str, StreamCounts | BinCounts]]
    lines = [(hop.hop, name, counts) for hop in chain for name, counts in hop.streams.items()]
    if page.found is not None and page.found.summary.bins is not None and same_batch(page.found, page.summary):
        released = next(hop for hop in page.found.summary.upstream if hop.hop == "release")
        lines.append(("release", "discovery", released.streams["discovery"]))
        bins = page.found.summary.bins
        lines.append(("discover", "kept bins", bins))
    rows = []
    for hop, stream, counts in lines:
        ends = (counts.kept, counts.found) if isinstance(counts, BinCounts) else (counts.received, counts.accepted)
        rows.append(Row(hop, (stream, *(f"{number:,}" for number in ends), by_reason(counts.rejected))))
    heads = ("hop", "stream", "received", "accepted", "rejected")
    return Figure("hops", "Counts of every hop", (), "none", heads, tuple(rows))
