"""Make a page as one HTML file, which loads no other file. Without scripts only the page's charts are missing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from hushcount.privacy.words import State
from pipelines.pages.assets import policy, script, style
from pipelines.pages.figures import Attributes, Block, Choice, Figure, Guarantee, Panel, Prose, Row, Span, Trend
from pipelines.pages.text import escaped, isolated

_SIGNS: Mapping[State, tuple[str, str]] = {
    "person": ("\u2713", "Guarantee"), "report": ("!", "Guarantee for a report"), "none": ("\u2716", "No guarantee"),
}  # fmt: skip
"""The mark of a guarantee, and its name."""


def render(title: str, lead: Sequence[str], panels: Sequence[Panel], foot: str, logo: str | None = None) -> str:
    """Return a page with a heading, first sentences, panels (as tabs, if there are several), and a last line.

    Args:
        logo: data address of a picture beside the title.
    """
    level = 2 if len(panels) == 1 and not panels[0].title else 3
    tabs = ""
    if len(panels) > 1:
        links = "".join(f"<li><a href='#{panel.key}'>{isolated(panel.title)}</a></li>" for panel in panels)
        tabs = f"<ul class='tabs' aria-label='Parts of this page'>{links}</ul>"
    picture = "" if logo is None else f"<img class='logo' alt='' src='{escaped(logo)}'>"
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}">'
        f"<title>{escaped(title)} - Hushcount</title><meta name='viewport' content='width=device-width'>"
        f"<meta name='referrer' content='no-referrer'><style>{style()}</style></head>"
        f"<body><main><h1>{picture}{isolated(title)}</h1>{_paragraphs(lead)}{tabs}"
        f"{''.join(_panel(panel, level) for panel in panels)}<footer>{escaped(foot)}</footer></main>"
        f"<script type='module'>{script()}</script></body></html>\n"
    )


def _panel(panel: Panel, level: int) -> str:
    title = f"<h2>{isolated(panel.title)}</h2>" if panel.title else ""
    blocks = "".join(_block(block, level) for block in panel.blocks)
    name = escaped(panel.title)
    return f"<div id='{panel.key}' class='panel' data-name='{name}'>{title}{_guarantee(panel.guarantee)}{blocks}</div>"


def _guarantee(guarantee: Guarantee | None) -> str:
    """Return one line with the mark of its state, which opens for the sentences."""
    if guarantee is None:
        return ""
    sign, says = _SIGNS[guarantee.state]
    exact = "".join(f"<p class='exact'>{escaped(sentence)}</p>" for sentence in guarantee.exact)
    return (
        f"<details class='guarantee of-{guarantee.state}'><summary><span class='sign' aria-hidden='true'>{sign}</span> "
        f"<strong>{says}:</strong> {escaped(guarantee.line)}</summary>{_paragraphs(guarantee.plain)}"
        f"<h3>In exact terms</h3>{exact}</details>"
    )


def _block(block: Block, level: int) -> str:
    if isinstance(block, Choice):
        return _choice(block, level)
    head = f"<section class='card'><h{level}>{isolated(block.heading)}</h{level}>{_paragraphs(block.says)}"
    if isinstance(block, Prose):
        values = "".join(f"<li>{isolated(value)}</li>" for value in block.values)
        return f"{head}{f'<ul class=found>{values}</ul>' if values else ''}</section>"
    if isinstance(block, Trend):
        return f"{head}{_trend(block)}</section>"
    if not block.rows:
        return f"{head}</section>"
    table = _table(block)
    if block.chart == "none":
        return f"{head}{table}</section>"
    picture = _figure(block) if _is_drawn(block) else ""
    return f"{head}{picture}{_folded(block.heading, table)}</section>"


def _is_drawn(figure: Figure) -> bool:
    """Return whether the figure has a finding, or a row that the deployment names."""
    drawn = [row.drawn for row in figure.rows if row.drawn is not None]
    return any(not isinstance(one, Span) or one.strong or one.named for one in drawn)


def _choice(block: Choice, level: int) -> str:
    options = "".join(f"<option>{escaped(figure.heading)}</option>" for figure in block.figures)
    figures = "".join(_block(figure, level) for figure in block.figures)
    label = f"<label for='{block.key}'>{escaped(block.label)}</label> <select id='{block.key}'>{options}</select>"
    return f"<div class='choices'><p>{label}</p>{figures}</div>"


def _figure(figure: Figure) -> str:
    facts: Attributes = {
        "chart": figure.chart,
        "table": f"{figure.key}-table",
        "name": figure.heading,
        "unit": figure.unit,
        "axis": figure.axis,
        "most": figure.most,
        "signed": figure.signed,
        "windows": json.dumps(figure.windows, ensure_ascii=False) if figure.windows else None,
        "times": json.dumps(figure.times) if figure.times else None,
    }
    way = "<ul class='way' aria-label='Levels'></ul><p class='said' role='status'></p>" if figure.drills else ""
    picture = "<div class='picture'></div><p class='readout' role='status'></p>"
    return f"<figure{_attributes(facts)}>{way}{picture}{_caption(figure.notes)}</figure>"


def _trend(trend: Trend) -> str:
    key = trend.key
    facts: Attributes = {
        "chart": "trend", "table": f"{key}-table", "source": f"{key}-data", "name": trend.heading,
    }  # fmt: skip
    finder = (
        f"<div class='finder'><label for='{key}-search'>Search {len(trend.series.items):,} items</label>"
        f"<input id='{key}-search' class='search' type='search' role='combobox' autocomplete='off' spellcheck='false' "
        f"aria-expanded='false' aria-autocomplete='list' aria-controls='{key}-matches'>"
        f"<ul id='{key}-matches' class='matches' role='listbox' aria-label='Items that match' hidden></ul></div>"
    )
    range_ = "".join(
        f"<div><label for='{key}-{end}'>{label}</label><select id='{key}-{end}' class='{end}'></select></div>"
        for end, label in (("from", "From"), ("to", "To"))
    )
    table = f"<table id='{key}-table'><caption>{escaped(trend.heading)}</caption><thead></thead><tbody></tbody></table>"
    return (
        f"<figure{_attributes(facts)}><div class='controls'>{finder}{range_}</div><p class='said' role='status'></p>"
        "<div class='picture'></div><p class='readout' role='status'></p>"
        f"<ul class='chosen' aria-label='Items that are drawn'></ul>{_caption(trend.notes)}</figure>"
        f"{_folded(trend.heading, _scrolled(trend.heading, table))}"
        f"<script type='text/plain' id='{key}-data'>{trend.series.packed()}</script>"
    )


def _caption(notes: Sequence[str]) -> str:
    return f"<figcaption>{_paragraphs(notes)}</figcaption>" if notes else ""


def _folded(heading: str, table: str) -> str:
    of = f"<span class='unseen'> of {isolated(heading)}</span>"
    return f"<details class='table' open><summary>Table{of}</summary>{table}</details>"


def _scrolled(heading: str, table: str) -> str:
    return f"<div class='scroll' role='region' tabindex='0' aria-label='Table: {escaped(heading)}'>{table}</div>"


def _table(figure: Figure) -> str:
    heads = "".join(f"<th scope='col'>{escaped(head)}</th>" for head in figure.heads)
    rows = "".join(map(_row, figure.rows))
    table = (
        f"<table id='{figure.key}-table'><caption>{escaped(figure.heading)}</caption>"
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    )
    return _scrolled(figure.heading, table)


def _row(row: Row) -> str:
    facts = row.drawn.attributes if row.drawn is not None else {}
    cells = "".join(f"<td>{escaped(cell)}</td>" for cell in row.cells)
    wrong = " class='wrong'" if row.wrong else ""
    return f"<tr{wrong}{_attributes(facts)}><th scope='row'>{isolated(row.name)}</th>{cells}</tr>"


def _attributes(facts: Attributes) -> str:
    there = {name: value for name, value in facts.items() if value is not None and value is not False}
    return "".join(f" data-{name}='{escaped(_value(value))}'" for name, value in there.items())


def _value(value: str | float | bool) -> str:
    return "1" if value is True else value if isinstance(value, str) else f"{value:.12g}"


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{escaped(sentence)}</p>" for sentence in sentences)
