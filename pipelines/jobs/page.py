"""report.html: one self-contained page with the chart, the found items, the counts of every hop and the statement."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hushcount.campaigns.campaign import Campaign
from pipelines.console.results import detection, other_explained
from pipelines.jobs.chart import INK, bars
from pipelines.jobs.found import COMBINED_SAYS, Found, facts_of, same_batch
from pipelines.outputs.counts import BinCounts, StreamCounts
from pipelines.outputs.summary import HopSummary, TableFacts

_CHART_ITEMS = 40
_TABLE_ITEMS = 200
_LINE = "#c9d3d6"


@dataclass(frozen=True, eq=False)
class Page:
    """Content of the page: the table of estimates and what discovery found, if there are any."""

    campaign: Campaign
    summary: HopSummary
    table: pa.Table | None
    found: Found | None


def render(page: Page) -> str:
    """Return the page as HTML without any reference to another file or host."""
    title = f"{html.escape(page.campaign.id)}, epoch {page.campaign.epoch}"
    privacy = page.summary.stated
    plain = " ".join(html.escape(sentence) for sentence in privacy.plain)
    exact = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in privacy.sentences)
    guarantee = f"<section><h2>What this guarantees</h2><p><strong>{plain}</strong></p>{exact}</section>"
    sections = [guarantee, _estimates(page), _found(page), _hops(page)]
    return (
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>{title} - Hushcount</title>"
        f"<meta name='viewport' content='width=device-width'><style>{_STYLE}</style></head>"
        f"<body><main><h1>{title}</h1>{''.join(sections)}"
        f"<footer>Campaign fingerprint <code>{page.campaign.fingerprint.hex()}</code></footer></main></body></html>\n"
    )


def _estimates(page: Page) -> str:
    estimates = page.summary.estimates
    if page.table is None or estimates is None or estimates.table is None:
        return (
            "<section><h2>Estimates</h2><p>The domain is open: ask the tally for items with "
            "<code>hushcount estimate</code>.</p></section>"
        )
    table = page.table.sort_by([("count", "descending")])
    head: list[dict[str, Any]] = table.slice(0, _TABLE_ITEMS).to_pylist()
    rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in _cells(row))}</tr>" for row in head)
    names = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in table.column_names)
    other = estimates.other
    outside = (
        f"<p>Outside the dictionary (&ldquo;other&rdquo;): {other['count']:,.0f} &plusmn; "
        f"{other['standard_error']:,.0f}.</p>"
        if other
        else ""
    )
    if estimates.explained is not None:
        outside += f"<p>{html.escape(other_explained(estimates.explained))}</p>"
    chart = f"<div class='chart'>{bars(head[:_CHART_ITEMS])}</div>"
    return (
        f"<section><h2>Estimates</h2>{_legend(estimates.table)}{chart}{outside}"
        f"<details><summary>The {len(head)} largest as a table</summary><table><tr>{names}</tr>{rows}</table></details>"
        "</section>"
    )


def _legend(table: TableFacts) -> str:
    rate, expected = table.false_positive_rate, table.false_positive_rate * table.items
    false = f"about {expected:,.0f} of them" if expected >= 1.0 else f"{expected:.2g} of them on average"
    return (
        f"<p>The {min(table.items, _CHART_ITEMS)} largest of {table.items:,} items, with "
        f"{100 * table.confidence:g} % intervals: thick lines for each item alone, thin ones (low all, high all) "
        f"for all {table.items:,} together. The largest of many noisy estimates tend to be too large: read the thin "
        f"lines for items picked by their size. The darker bars, &ldquo;detected all&rdquo; in the table, mark the "
        f"{table.detected_all:,} items that are {detection(table)} In the table &ldquo;detected&rdquo; marks "
        f"the {table.detected:,} items detected, each looked at alone: each item that nobody holds is marked with "
        f"a probability of {100 * rate:g} % at most, {false} if nobody held any.</p>"
    )


def _cells(row: dict[str, Any]) -> list[str]:
    """Return a row of the table as HTML: the item, its numbers, and whether it is detected, alone and among all."""
    item, *numbers, detected, among_all = row.values()
    marks = ("yes" if mark else "" for mark in (detected, among_all))
    return [html.escape(item), *(f"{number:,.0f}" for number in numbers), *marks]


def _found(page: Page) -> str:
    found = page.found
    if found is None:
        return ""
    title = f"<h2>Found: {len(found.items):,} values that nobody listed</h2>"
    facts = facts_of(page.campaign, found.summary.senders)
    apart = "" if page.summary.estimates is None else page.summary.estimates.apart or ""
    if found.counts is None or facts is None:
        items = "".join(f"<li>{html.escape(item)}</li>" for item in sorted(found.items))
        said = f"<p>{html.escape(apart)}</p>" if apart else ""
        return f"<section>{title}{said}<ul class='found'>{items}</ul></section>"
    head: list[dict[str, Any]] = found.counts.slice(0, _TABLE_ITEMS).to_pylist()
    both = COMBINED_SAYS if "combined" in found.counts.column_names else apart
    chart = f"<div class='chart'>{bars(head[:_CHART_ITEMS])}</div>" if head else ""
    names = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in found.counts.column_names)
    rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in _found_cells(row))}</tr>" for row in head)
    return (
        f"<section>{title}<p>{html.escape(' '.join((facts.says, both)).strip())}</p>{chart}<details><summary>The "
        f"{len(head)} largest as a table</summary><table><tr>{names}</tr>{rows}</table></details></section>"
    )


def _found_cells(row: dict[str, Any]) -> list[str]:
    """Return a row of found counts as HTML: errors of a few reports need a decimal."""
    item, *numbers = row.values()
    return [html.escape(item), *("" if number is None else f"{number:,.1f}" for number in numbers)]


def _hops(page: Page) -> str:
    chain = (*page.summary.upstream, page.summary)
    lines: list[tuple[str, str, StreamCounts | BinCounts]]
    lines = [(hop.hop, name, counts) for hop in chain for name, counts in hop.streams.items()]
    if page.found is not None and page.found.summary.bins is not None and same_batch(page.found, page.summary):
        released = next(hop for hop in page.found.summary.upstream if hop.hop == "release")
        lines.append(("release", "discovery", released.streams["discovery"]))
        bins = page.found.summary.bins
        lines.append(("discover", "kept bins", bins))
    rows = ""
    for hop, stream, counts in lines:
        reasons = ", ".join(f"{name} {number:,}" for name, number in counts.rejected.items()) or "none"
        ends = (counts.kept, counts.found) if isinstance(counts, BinCounts) else (counts.received, counts.accepted)
        cells = (hop, stream, *(f"{number:,}" for number in ends), reasons)
        rows += f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>"
    return (
        "<section><h2>Counts of every hop</h2><table><tr><th>hop</th><th>stream</th><th>received</th><th>accepted</th>"
        f"<th>rejected</th></tr>{rows}</table></section>"
    )


_STYLE = f"""
body {{ margin: 0; background: #f6f8f8; color: #16262c; font: 16px/1.5 system-ui, sans-serif; }}
main {{ max-width: 60rem; margin: 0 auto; padding: 1.5rem; }}
section {{ background: #fff; border: 1px solid {_LINE}; border-radius: 6px; padding: 1rem 1.5rem; margin: 1rem 0; }}
h1 {{ font-size: 1.5rem; }} h2 {{ font-size: 1.1rem; margin: 0 0 .5rem; color: {INK}; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th, td {{ text-align: left; padding: .2rem .6rem; border-bottom: 1px solid {_LINE}; vertical-align: top; }}
.chart svg {{ width: 100%; height: auto; }}
.found {{ columns: 5 8rem; list-style: none; padding: 0; overflow-wrap: anywhere; }}
details {{ margin-top: 1rem; }} code {{ overflow-wrap: anywhere; }} footer {{ color: #5b6b70; font-size: .85rem; }}
"""
