"""Answers as tables for a terminal of 80 columns; unprintable characters in items that strangers chose are escaped."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from rich.console import RenderableType

from hushcount.collection.windows import is_window, window_names, window_text
from pipelines.console.tables import Table
from pipelines.epochs.tracked_items import id_of, shown
from pipelines.questions.changes import Change
from pipelines.questions.sentences import percent, ratio
from pipelines.questions.sources import Source

_COLUMNS = 7
"""The number of windows that a table shows; --json and --out have all windows."""
Row = Mapping[str, Any]


def short_names(windows: Sequence[str]) -> dict[str, str]:
    """Return a short name of each window, by name; a result folder's name is its path, which is not shortened."""
    if all(map(is_window, windows)):
        return window_names(windows)
    return {window: window for window in windows}


def title_of(source: Source) -> str:
    """Return a title: the campaign's name and the windows of the question."""
    short, windows = short_names(source.windows), source.windows
    kind = "windows" if all(map(is_window, windows)) else "results"
    many = f"{len(windows):,} {kind} from {short[windows[0]]} to {short[windows[-1]]}"
    return f"{source.name}, {many if len(windows) > 1 else short[windows[0]]}"


def over_windows(title: str, table: pa.Table, names: Sequence[str], head: str = "item") -> Iterator[RenderableType]:
    """Yield a table with a row for each name and a column for each of the last windows: counts, errors and shares.

    Args:
        table: a table of `items_table` or `sums_table`.
        names: the values of column `head` to show.
    """
    rows = table.to_pylist()
    places = sorted({(row["window"], row["epoch"]) for row in rows}) if _of_windows(rows) else _in_order(rows)
    windows = list(dict.fromkeys(window for window, _ in places))[-_COLUMNS:]
    short = short_names(windows)
    # A window with reports of two epochs has two columns.
    columns = {
        (window, epoch): short[window] + (f" epoch {epoch}" if [one for one, _ in places].count(window) > 1 else "")
        for window, epoch in places
        if window in windows
    }
    cells = {(row[head], row["window"], row["epoch"]): _count(row) for row in rows}
    lines = [(shown(name), *(cells.get((name, *place), "") for place in columns)) for name in names]
    where = ", by first moment of the window, UTC" if _of_windows(rows) else ", by result"
    yield Table(f"{title}: counts ± errors, and shares{where}", (head, *columns.values()), lines, words=(head,))


def _of_windows(rows: Sequence[Row]) -> bool:
    return all(is_window(row["window"]) for row in rows)


def _in_order(rows: Sequence[Row]) -> list[tuple[str, int]]:
    return list(dict.fromkeys((row["window"], row["epoch"]) for row in rows))


def _count(row: Row) -> str:
    mark = " *" if row.get("backfilled") else " +" if row.get("source") == "discovery" else ""
    mark = " %" if row.get("missing") else mark
    count, error = row["count"], _error(row)
    if row.get("combined") is not None:
        count, error = row["combined"], row["combined_error"]
    return f"{count:,.0f} ± {error:,.0f} {percent(count / row['reports'])}{mark}"


def _error(row: Row) -> float:
    return math.hypot(row["standard_error"], row["collision_error"])


def largest(title: str, rows: Sequence[Row]) -> Table:
    """Return a table that shows rows of `top_table`, with intervals that hold for all rows together."""
    lines = [
        (
            shown(row["item"]),
            percent(row["count"] / row["reports"]),
            f"{row['count']:,.0f} ± {_error(row):,.0f}",
            _between(row["low_all"] / row["reports"], row["high_all"] / row["reports"], percent),
        )
        for row in rows
    ]
    return Table(title, ("item", "share", "count ± error", "share, 95 %, all rows"), lines, words=("item",))


def differences(title: str, found: Sequence[Change], sides: tuple[str, str]) -> Table:
    """Return a table with a row for each change; `sides` are the heads of the two columns of shares."""
    lines = [
        (
            shown(one.group),
            percent(one.before),
            percent(one.after),
            _between(one.low, one.high, lambda value: percent(value, signed=True)) + (" *" if one.significant else ""),
            _times(one),
        )
        for one in found
    ]
    return Table(title, ("item", *sides, "difference, 95 %", "ratio, 95 %"), lines, words=("item", *sides))


def _times(one: Change) -> str:
    # Show no ratio if the share before may be 0, so that the ratio has no bound, or if neither share is above 0.
    if not math.isfinite(one.ratio) or not one.ratio_high:
        return ""
    return f"{ratio(one.ratio)} ({_between(one.ratio_low, one.ratio_high, ratio)})"


def totals(title: str, rows: Sequence[Row]) -> Table:
    """Return a table that shows rows of `totals_table`."""
    lines = [
        (
            shown(row["group"]),
            f"{row['count']:,.0f} ± {_error(row):,.0f}",
            _between(row["low"], row["high"], lambda value: f"{value:,.0f}"),
            percent(row["share"]),
        )
        for row in rows
    ]
    return Table(title, ("item", "count ± error", "count, 95 %", "share"), lines, words=("item",))


def discovered(title: str, rows: Sequence[Row]) -> Table:
    """Return a table of discovered values; `rows`: the last row of each value in `new_table`, with the newest count."""
    lines = [
        (
            shown(row["item"]),
            id_of(row["item"]),
            _day(row["first_seen"]),
            _day(row["last_seen"]),
            "listed" if row["listed"] else row["decision"],
            "" if row["count"] is None else _count(row),
        )
        for row in rows
    ]
    return Table(title, ("value", "id", "first seen", "last seen", "state", "newest count"), lines, words=("value",))


def _day(window: str) -> str:
    return window_text(window) if is_window(window) else window


def _between(low: float, high: float, text: Callable[[float], str]) -> str:
    return f"{text(low)} to {text(high)}"
