"""Discovered values: the windows in which discovery found each value, and the value's later counts."""

from __future__ import annotations

from typing import Any

from pipelines.monitoring.panel_campaign import Shown
from pipelines.pages.figures import Block, Figure, Points, Prose, Row
from pipelines.questions.new import new_table

_MOST = 200
_DRAWN = 30
_HEADS = ("value", "first found", "last found", "listed", "decision", "newest count", "from", "to", "in window")


def discovered_of(shown: Shown) -> Block | None:
    """Return the panel of discovered values, the newest first; None for a campaign without discovery."""
    if all(one.campaign.discovery is None for one in shown.source.counted):
        return None
    key, heading = f"{shown.key}-new", "Values that discovery found"
    values: dict[str, list[dict[str, Any]]] = {}
    for row in new_table(shown.source).to_pylist():
        values.setdefault(row["item"], []).append(row)
    if not values:
        return Prose(key, heading, ("No value was found in these windows.",))
    places = {window: place for place, window in enumerate(shown.source.windows)}
    rows = tuple(_row(shown, item, values[item], places) for item in list(values)[:_MOST])
    says = (f"{len(values):,} found, newest first.",)
    notes = (
        "A full dot is a count, and larger for a larger count; an empty dot shows that the value was found, without a "
        "count. Anybody may have sent these values.",
    )
    names, times = tuple(shown.windows.values()), tuple(shown.times.values())
    return Figure(key, heading, says, "dots", _HEADS, rows, most=_DRAWN, windows=names, times=times, notes=notes)


def _row(shown: Shown, item: str, rows: list[dict[str, Any]], places: dict[str, int]) -> Row:
    counted = {places[row["window"]]: row["count"] for row in rows if row["window"] is not None}
    seen = [places[window] for window in (rows[0]["first_seen"], rows[0]["last_seen"]) if window in places]
    points: dict[int, float | None] = dict(sorted({**dict.fromkeys(seen), **counted}.items()))
    newest = max((row for row in rows if row["window"] is not None), key=lambda row: row["window"], default=None)
    told: tuple[str, ...] = ("", "", "", "")
    if newest is not None:
        numbers = (f"{newest[name]:,.0f}" for name in ("count", "low", "high"))
        told = (*numbers, shown.windows[newest["window"]])
    first, last = (shown.windows.get(rows[0][name], rows[0][name]) for name in ("first_seen", "last_seen"))
    head = (first, last, "yes" if rows[0]["listed"] else "", rows[0]["decision"])
    return Row(item, (*head, *told), Points(tuple(points.items())) if points else None)
