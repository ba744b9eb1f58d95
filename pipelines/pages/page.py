"""Make a page as one HTML file, which loads no other file. Without scripts only the page's charts are missing."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence

from hushcount.privacy.words import State
from pipelines.pages.assets import policy, script, style
from pipelines.pages.figures import Attributes, Block, Choice, Figure, Guarantee, Panel, Prose, Row, Served, Span, Trend
from pipelines.pages.text import escaped, isolated

_SIGNS: Mapping[State, tuple[str, str]] = {
    "person": ("\u2713", "Guarantee"), "report": ("!", "Guarantee for a report"), "none": ("\u2716", "No guarantee"),
}  # fmt: skip
"""The mark of a guarantee, and its name."""


def render(
    title: str,
    lead: Sequence[str],
    panels: Sequence[Panel],
    foot: str,
    logo: str | None = None,
    served: Served | None = None,
    zone: str = "UTC",
) -> str:
    """Return a page with a heading, first sentences, panels (as tabs, if there are several), and a last line.

    Args:
        logo: data address of a picture beside the title.
        served: where the page gets what it does not hold; None: it is a file that holds all.
        zone: the time zone of its charts.
    """
    level = 2 if len(panels) == 1 and not panels[0].title else 3
    tabs = ""
    if len(panels) > 1:
        links = "".join(f"<li><a href='#{panel.key}'>{isolated(panel.title)}</a></li>" for panel in panels)
        tabs = f"<ul class='tabs' aria-label='Parts of this page'>{links}</ul>"
    zoned = {} if zone == "UTC" else {"zone": zone}
    picture = "" if logo is None else f"<img class='logo' alt='' src='{escaped(logo)}'>"
    return (
        f"{head_of(title, served=served is not None)}"
        f"<body{_attributes({**({} if served is None else served.attributes), **zoned})}><main>"
        f"<h1>{picture}{isolated(title)}</h1>{_paragraphs(lead)}{tabs}"
        f"{''.join(_panel(panel, level, served) for panel in panels)}<footer>{escaped(foot)}</footer></main>"
        f"<script type='module'>{script()}</script></body></html>\n"
    )


def head_of(title: str, *, served: bool) -> str:
    """Return a page up to its body; `served` as in `policy`."""
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f'<meta http-equiv="Content-Security-Policy" content="{policy(served)}">'
        f"<title>{escaped(title)} - Hushcount</title><meta name='viewport' content='width=device-width'>"
        f"<meta name='referrer' content='no-referrer'><style>{style()}</style></head>"
    )


def _panel(panel: Panel, level: int, served: Served | None) -> str:
    title = f"<h2>{isolated(panel.title)}</h2>" if panel.title else ""
    blocks = "".join(_block(block, level, served) for block in panel.blocks)
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


def _block(block: Block, level: int, served: Served | None = None) -> str:
    if isinstance(block, Choice):
        return _choice(block, level)
    head = f"<section class='card'><h{level}>{isolated(block.heading)}</h{level}>{_paragraphs(block.says)}"
    if isinstance(block, Prose):
        values = "".join(f"<li>{isolated(value)}</li>" for value in block.values)
        return f"{head}{f'<ul class=found>{values}</ul>' if values else ''}</section>"
    if isinstance(block, Trend):
        return f"{head}{_trend(block, served)}</section>"
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


def _trend(trend: Trend, served: Served | None) -> str:
    key, heading = trend.key, escaped(trend.heading)
    facts: Attributes = {
        "chart": "trend", "table": f"{key}-table", "source": f"{key}-data", "name": trend.heading,
    }  # fmt: skip
    table = f"<table id='{key}-table'><caption>{heading}</caption><thead></thead><tbody></tbody></table>"
    return (
        f"<figure{_attributes(facts)}><div class='controls'>{_controls(trend)}</div><p class='said' role='status'></p>"
        "<div class='picture'></div><p class='readout' role='status'></p>"
        f"<ul class='chosen' aria-label='Items that are drawn'></ul>{_caption(trend.notes)}</figure>"
        f"{_folded(trend.heading, _scrolled(trend.heading, table))}{_packed(trend, served)}"
    )


def _controls(trend: Trend) -> str:
    """Return the search box, the lists of grains and of the range's ends, and the button of the whole range."""
    key, ends = trend.key, "".join(_list(trend.key, end) for end in ("from", "to"))
    options = "".join(f"<option value='{grain}'>{grain}</option>" for grain in trend.series)
    return (
        f"<div class='finder'><label for='{key}-search'>Search {len(trend.series['window'].items):,} items</label>"
        f"<input id='{key}-search' class='search' type='search' role='combobox' autocomplete='off' spellcheck='false' "
        f"aria-expanded='false' aria-autocomplete='list' aria-controls='{key}-matches'>"
        f"<ul id='{key}-matches' class='matches' role='listbox' aria-label='Items that match' hidden></ul></div>"
        f"{_list(key, 'by', options) if len(trend.series) > 1 else ''}{ends}"
        "<button type='button' class='whole' hidden>All</button>"
    )


def _list(key: str, name: str, options: str = "") -> str:
    label = f"<label for='{key}-{name}'>{name.capitalize()}</label>"
    return f"<div>{label}<select id='{key}-{name}' class='{name}'>{options}</select></div>"


def _packed(trend: Trend, served: Served | None) -> str:
    """Return the packed numbers of each grain: of all items, or on a served page of those that are drawn first."""
    found = ""
    for grain, series in trend.series.items():
        block = base64.b64encode(series.packed() if served is None else series.opening()).decode()
        found += f"<script type='text/plain' id='{trend.key}-data-{grain}' data-grain='{grain}'>{block}</script>"
    return found


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
    return f"<tr{wrong}{_attributes(facts)}><th scope='row'>{_named(row)}</th>{cells}</tr>"


def _named(row: Row) -> str:
    return f"<a href='{escaped(row.link)}'>{isolated(row.name)}</a>" if row.link else isolated(row.name)


def _attributes(facts: Attributes) -> str:
    there = {name: value for name, value in facts.items() if value is not None and value is not False}
    return "".join(f" data-{name}='{escaped(_value(value))}'" for name, value in there.items())


def _value(value: str | float | bool) -> str:
    return "1" if value is True else value if isinstance(value, str) else f"{value:.12g}"


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{escaped(sentence)}</p>" for sentence in sentences)
