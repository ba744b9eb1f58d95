"""What programs get: campaigns, charts and items in JSON, with the numbers that the page draws."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np

from pipelines.console.answer import finite
from pipelines.pages.figures import Choice, Figure, Panel
from pipelines.pages.series import Series
from pipelines.questions.findings import share_of
from pipelines.served.kept import Made


def campaign_list(names: Sequence[str]) -> bytes:
    """Return the names of all campaigns."""
    return _json({"campaigns": list(names)})


def campaign(name: str, made: Made) -> bytes:
    """Return what there is of a campaign: its guarantee, its windows, and the keys of its charts."""
    series, guarantee = made.series, made.panel.guarantee
    facts = {
        "id": name,
        "version": made.version,
        "made": made.at.isoformat(),
        "guarantee": None if guarantee is None else {"state": guarantee.state, "sentences": guarantee.exact},
        "windows": [] if series is None else _windows(series),
        "items": [] if series is None else series.items,
        "charts": [{"key": _short(made.panel, one), "heading": one.heading} for one in _figures(made.panel)],
    }
    return _json(facts)


def chart(made: Made, key: str) -> bytes | None:
    """Return the rows of a chart, with the numbers behind its table; None: there is no such chart."""
    for one in _figures(made.panel):
        if _short(made.panel, one) == key:
            rows = [{"name": row.name, **row.facts} for row in one.rows]
            return _json({"key": key, "heading": one.heading, "rows": rows})
    return None


def item(made: Made, name: str) -> bytes | None:
    """Return an item, or a group as "group NAME", in each window that counted it; None: no such item is counted."""
    series = made.series
    if series is None or name not in series.items:
        return None
    place = series.items.index(name)
    points = [
        {
            **window,
            "reports": reports,
            "count": count,
            "low": low,
            "high": high,
            "share": share_of(count, reports),
            "detected": found,
        }
        for window, reports, count, low, high, found in zip(
            _windows(series),
            series.reports,
            series.count[place].tolist(),
            series.low[place].tolist(),
            series.high[place].tolist(),
            series.found[place].tolist(),
            strict=True,
        )
        if np.isfinite(count)
    ]
    return _json({"item": name, "windows": points})


def _windows(series: Series) -> list[dict[str, str | int]]:
    return [
        {"window": name, "begin": begin, "end": end}
        for name, (begin, end) in zip(series.windows, series.times, strict=True)
    ]


def _figures(panel: Panel) -> Iterator[Figure]:
    for block in panel.blocks:
        if isinstance(block, Figure):
            yield block
        elif isinstance(block, Choice):
            yield from block.figures


def _short(panel: Panel, figure: Figure) -> str:
    """Return the key of a figure within its panel."""
    return figure.key.removeprefix(f"{panel.key}-")


def _json(data: object) -> bytes:
    return json.dumps(finite(data), ensure_ascii=False, allow_nan=False).encode()
