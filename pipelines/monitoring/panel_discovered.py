"""Discovered values: the windows in which discovery found each value, and the value's later counts."""

from __future__ import annotations

from typing import Any

from pipelines.monitoring.panel_campaign import Shown
from pipelines.pages.figures import Block, Figure, Points, Prose, Row
from pipelines.questions.findings import state_of
from pipelines.questions.new import new_table

_MOST = 200
_DRAWN = 30
_HEADS = (
    "value", "first found", "last found", "listed", "decision", "newest count", "from", "to", "state", "in window",
)  # fmt: skip


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
        "detected count. Anybody may have sent these values.",
    )
    names, times = tuple(shown.windows.values()), tuple(shown.times.values())
    return Figure(key, heading, says, "dots", _HEADS, rows, most=_DRAWN, windows=names, times=times, notes=notes)


def _row(shown: Shown, item: str, rows: list[dict[str, Any]], places: dict[str, int]) -> Row:
    estimated = [row for row in rows if row["window"] is not None]
    # A count that may be noise alone has no size: its dot says only that the value was found.
    counted = {places[row["window"]]: row["count"] for row in estimated if state_of(row) == "detected"}
    seen = [places[window] for window in (rows[0]["first_seen"], rows[0]["last_seen"]) if window in places]
    points: dict[int, float | None] = dict(sorted({**dict.fromkeys(seen), **counted}.items()))
    newest = max(estimated, key=lambda row: row["window"], default=None)
    told: tuple[str, ...] = ("", "", "", "", "")
    if newest is not None:
        numbers = (f"{newest[name]:,.0f}" for name in ("count", "low", "high"))
        told = (*numbers, state_of(newest), shown.windows[newest["window"]])
    first, last = (shown.windows.get(rows[0][name], rows[0][name]) for name in ("first_seen", "last_seen"))
    head = (first, last, "yes" if rows[0]["listed"] else "", rows[0]["decision"])
    return Row(item, (*head, *told), Points(tuple(points.items())) if points else None, facts={"counts": rows})
