"""Make a page as one HTML file, which loads no other file. Without scripts only the page's charts are missing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from pipelines.pages.assets import policy, script, style
from pipelines.pages.figures import Attributes, Block, Choice, Figure, Panel, Prose, Row, Trend
from pipelines.pages.text import escaped, isolated


def render(title: str, lead: Sequence[str], panels: Sequence[Panel], foot: str) -> str:
    """Return a page with a heading, first sentences, panels (as tabs, if there are several), and a last line."""
    level = 2 if len(panels) == 1 and not panels[0].title else 3
    tabs = ""
    if len(panels) > 1:
        links = "".join(f"<li><a href='#{panel.key}'>{isolated(panel.title)}</a></li>" for panel in panels)
        tabs = f"<ul class='tabs' aria-label='Parts of this page'>{links}</ul>"
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}">'
        f"<title>{escaped(title)} - Hushcount</title><meta name='viewport' content='width=device-width'>"
        f"<meta name='referrer' content='no-referrer'><style>{style()}</style></head>"
        f"<body><main><h1>{isolated(title)}</h1>{_paragraphs(lead)}{tabs}"
        f"{''.join(_panel(panel, level) for panel in panels)}<footer>{escaped(foot)}</footer></main>"
        f"<script type='module'>{script()}</script></body></html>\n"
    )


def _panel(panel: Panel, level: int) -> str:
    title = f"<h2>{isolated(panel.title)}</h2>" if panel.title else ""
    blocks = "".join(_block(block, panel.plain, level) for block in panel.blocks)
    return f"<div id='{panel.key}' class='panel'>{title}{_guarantee(panel, level)}{blocks}</div>"


def _guarantee(panel: Panel, level: int) -> str:
    if not panel.plain:
        return ""
    exact = "".join(f"<p class='exact'>{escaped(sentence)}</p>" for sentence in panel.exact)
    first, *others = panel.plain
    return (
        f"<section class='card guarantee'><h{level}>What this guarantees</h{level}>"
        f"<p><strong>{escaped(first)}</strong></p>{_paragraphs(others)}"
        f"<details><summary>In exact terms</summary>{exact}</details></section>"
    )


def _block(block: Block, plain: Sequence[str], level: int) -> str:
    if isinstance(block, Choice):
        return _choice(block, plain, level)
    head = f"<section class='card'><h{level}>{isolated(block.heading)}</h{level}>{_paragraphs(block.says)}"
    if isinstance(block, Prose):
        values = "".join(f"<li>{isolated(value)}</li>" for value in block.values)
        return f"{head}{f'<ul class=found>{values}</ul>' if values else ''}</section>"
    if isinstance(block, Trend):
        return f"{head}{_trend(block, plain)}</section>"
    table = _table(block)
    if block.chart == "none" or not block.rows:
        return f"{head}{table if block.rows else ''}</section>"
    return f"{head}{_figure(block, plain)}{_folded(block.heading, table)}</section>"


def _choice(block: Choice, plain: Sequence[str], level: int) -> str:
    options = "".join(f"<option>{escaped(figure.heading)}</option>" for figure in block.figures)
    figures = "".join(_block(figure, plain, level) for figure in block.figures)
    label = f"<label for='{block.key}'>{escaped(block.label)}</label> <select id='{block.key}'>{options}</select>"
    return f"<div class='choices'><p>{label}</p>{figures}</div>"


def _figure(figure: Figure, plain: Sequence[str]) -> str:
    facts: Attributes = {
        "chart": figure.chart,
        "table": f"{figure.key}-table",
        "name": figure.heading,
        "unit": figure.unit,
        "axis": figure.axis,
        "most": figure.most,
        "signed": figure.signed,
        "windows": _list_of(figure.windows) if figure.windows else None,
    }
    way = "<ul class='way' aria-label='Levels'></ul><p class='said' role='status'></p>" if figure.drills else ""
    picture = "<div class='picture'></div>"
    return f"<figure{_attributes(facts)}>{way}{picture}{_caption(plain)}</figure>"


def _trend(trend: Trend, plain: Sequence[str]) -> str:
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
    table = f"<table id='{key}-table'><caption>{escaped(trend.heading)}</caption><thead></thead><tbody></tbody></table>"
    return (
        f"<figure{_attributes(facts)}>{finder}<p class='said' role='status'></p>"
        "<ul class='chosen' aria-label='Items that are drawn'></ul><div class='picture'></div>"
        f"<p class='readout'></p>{_caption(plain)}</figure>{_folded(trend.heading, _scrolled(trend.heading, table))}"
        f"<script type='text/plain' id='{key}-data'>{trend.series.packed()}</script>"
    )


def _caption(plain: Sequence[str]) -> str:
    """Return the first sentence of the guarantee, and the other sentences folded, as the panel's head has them too."""
    if not plain:
        return ""
    rest = escaped(" ".join(plain[1:]))
    more = f"<details><summary>The rest of this guarantee</summary><p>{rest}</p></details>" if rest else ""
    return f"<figcaption>{escaped(plain[0])}{more}</figcaption>"


def _folded(heading: str, table: str) -> str:
    return f"<details class='table' open><summary>As a table: {isolated(heading)}</summary>{table}</details>"


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


def _list_of(names: Iterable[str]) -> str:
    return json.dumps([*names], ensure_ascii=False)


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{escaped(sentence)}</p>" for sentence in sentences)
