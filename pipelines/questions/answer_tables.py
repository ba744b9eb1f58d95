"""Answers as tables for a terminal of 80 columns; unprintable characters in items that strangers chose are escaped."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa
from rich.console import RenderableType

from hushcount.collection.windows import is_window
from hushcount.questions.means import range_of
from hushcount.strata import COLUMN
from pipelines.console.charts import Bar, sparkline
from pipelines.console.number_text import numeral
from pipelines.console.tables import Table
from pipelines.epochs.tracked_items import id_of, shown
from pipelines.questions.breakdown import text_of
from pipelines.questions.changes import Change
from pipelines.questions.findings import share_of, state_of, verdict_of
from pipelines.questions.sentences import percent, ratio
from pipelines.questions.sources import Source, in_zone
from pipelines.questions.stratum_changes import StratumChange
from pipelines.questions.stratum_shares import SHARE

_COLUMNS = 7
"""The number of windows that a table shows; --json and --out have all windows."""
Row = Mapping[str, Any]


def title_of(source: Source) -> str:
    """Return a title: the campaign's name and the windows of the question."""
    short, windows = source.names(source.windows), source.windows
    kind = "windows" if all(map(is_window, windows)) else "results"
    many = f"{len(windows):,} {kind} from {short[windows[0]]} to {short[windows[-1]]}"
    # A name with minutes ends with Z, for UTC.
    zone = "" if short[windows[0]].endswith("Z") else in_zone(source.zone)
    return f"{source.heading}, {many if len(windows) > 1 else short[windows[0]]}{zone}"


def over_windows(source: Source, table: pa.Table, names: Sequence[str], head: str = "item") -> Iterator[RenderableType]:
    """Yield a table with a row for each name and a column for each of the last windows: counts, errors and shares.

    A breakdown has a second table, of shares in strata.

    Args:
        table: a table of `items_table` or `sums_table`.
        names: the values of column `head` to show.
    """
    rows = table.to_pylist()
    where = f", by first moment of the window, {source.zone}" if _of_windows(rows) else ", by result"
    yield _by_window(source, f"{source.heading}: counts ± errors, and shares{where}", rows, names, head, _count)
    if SHARE in table.column_names:
        yield _by_window(source, "shares in strata, 95 % intervals", rows, names, head, in_stratum)


def _by_window(
    source: Source, title: str, rows: Sequence[Row], names: Sequence[str], head: str, text: Callable[[Row], str]
) -> Table:
    """Return a table with a row for each name and a column for each of the last windows."""
    places = _places(rows)
    windows = list(dict.fromkeys(window for window, _ in places))[-_COLUMNS:]
    short = source.names(windows)
    # A window with reports of two epochs has two columns.
    columns = {
        (window, epoch): short[window] + (f" epoch {epoch}" if [one for one, _ in places].count(window) > 1 else "")
        for window, epoch in places
        if window in windows
    }
    cells = {(row[head], row["window"], row["epoch"]): text(row) for row in rows}
    lines = [(shown(name), *(cells.get((name, *place), "") for place in columns)) for name in names]
    return Table(title, (head, *columns.values()), lines, words=(head,))


def trends(title: str, table: pa.Table, names: Sequence[str]) -> Iterator[RenderableType]:
    """Yield a table with a line of the shares over all windows for each item that is detected in any of them.

    Args:
        table: a table of `items_table`; nothing is yielded if it has one window only.
        names: the items to show.
    """
    rows = table.to_pylist()
    places = _places(rows)
    detected = {
        (row["item"], row["window"], row["epoch"]): share_of(row["count"], row["reports"])
        for row in rows
        if state_of(row) == "detected"
    }
    lines = []
    for name in names:
        shares = [detected.get((name, *place)) for place in places]
        known = [share for share in shares if share is not None]
        if known:
            lines.append((shown(name), sparkline(shares), percent(min(known)), percent(max(known))))
    if lines and len(places) > 1:
        yield Table(title, ("item", "share, where detected", "least", "most"), lines, words=("item",))


def _of_windows(rows: Sequence[Row]) -> bool:
    return all(is_window(row["window"]) for row in rows)


def _places(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """Return window and epoch of each result: windows by time, result folders in the order of the rows."""
    found = dict.fromkeys((row["window"], row["epoch"]) for row in rows)
    return sorted(found) if _of_windows(rows) else list(found)


def _count(row: Row) -> str:
    mark = " *" if row.get("backfilled") else " +" if row.get("source") == "discovery" else ""
    mark = " %" if row.get("missing") else mark
    count, error = row["count"], _error(row)
    if row.get("combined") is not None:
        count, error = row["combined"], row["combined_error"]
    said = f"{count:,.0f} ± {error:,.0f} {percent(share_of(count, row['reports']))}"
    return (said if state_of(row) == "detected" else f"({said})") + mark


def in_stratum(row: Row) -> str:
    """Return the share of a row in its stratum with the interval for all rows, which is alone if it is not detected."""
    if row[SHARE] is None:
        return "unknown"
    between = _between(row[f"{SHARE}_low_all"], row[f"{SHARE}_high_all"], percent)
    return f"{percent(row[SHARE])} ({between})" if state_of(row) == "detected" else between


def _error(row: Row) -> float:
    return math.hypot(row["standard_error"], row["collision_error"])


def top(source: Source, table: pa.Table, show: int) -> Iterator[RenderableType]:
    """Yield the first rows of `top_table` or `top_totals`; if one window has several epochs, a table for each epoch."""
    title, rows, epochs = title_of(source), table.to_pylist(), [place.campaign.epoch for place in source.places]
    parts = {"": rows}
    if len(source.windows) == 1 and len(epochs) > 1:
        parts = {f" epoch {epoch}": [row for row in rows if row["epoch"] == epoch] for epoch in epochs}
    for name, part in parts.items():
        heading = f"{title}{name}: {len(part):,} detected {'item' if len(part) == 1 else 'items'}, counts ± errors"
        yield largest(heading, part[:show]) if part else heading


def largest(title: str, rows: Sequence[Row], head: str = "item") -> Table:
    """Return rows of `top_table` or `totals_table` with bars, and with intervals that hold for all rows together.

    A row that is not detected has no bar, and says so.

    Args:
        head: the column of the names.
    """
    most = max((_share(row, "high_all") for row in rows if state_of(row) == "detected"), default=0.0) or 1.0
    named, parted = any(state_of(row) != "detected" for row in rows), any(SHARE in row for row in rows)
    lines = []
    for row in rows:
        low, high, state = _share(row, "low_all"), _share(row, "high_all"), state_of(row)
        lines.append(
            (
                shown(row[head]),
                percent(_share(row, "count")),
                Bar(low / most, high / most) if state == "detected" else "",
                f"{row['count']:,.0f} ± {_error(row):,.0f}",
                _between(low, high, percent),
                *([in_stratum(row)] if parted else []),
                *([state] if named else []),
            )
        )
    heads = ("item", "share", "", "count", "95 % interval", *(["in stratum"] if parted else []))
    return Table(title, (*heads, *(["state"] if named else [])), lines, words=("item",))


def _share(row: Row, column: str) -> float:
    return share_of(row[column], row["reports"])


def histograms(title: str, table: pa.Table) -> Iterator[Table]:
    """Yield the rows of `histogram_table` as `largest` shows them, one table for each stratum of a breakdown."""
    for stratum, rows in groupby(table.to_pylist(), _stratum_of):
        yield largest(f"{title}, {stratum}" if stratum else title, list(rows), "bin")


def _stratum_of(row: Row) -> str:
    return text_of([(name.removeprefix(COLUMN), value) for name, value in row.items() if name.startswith(COLUMN)])


def quantiles(source: Source, table: pa.Table) -> Table:
    """Return a table with a row for each window and share of `quantile_table`, with intervals for all rows together."""
    columns: dict[str, Callable[[Row], str]] = {
        "at most": lambda row: f"{100 * row['at']:g}%",
        "quantile": lambda row: row["bin"] or "unknown",
        "95 % interval": lambda row: row["interval_all"],
        "change, 95 %": _rise,
    }
    words = ("quantile", "95 % interval", "change, 95 %")
    return _of_numbers(source, f"{title_of(source)}: quantiles", table, columns, words)


def _of_numbers(
    source: Source, title: str, table: pa.Table, columns: Mapping[str, Callable[[Row], str]], words: Sequence[str] = ()
) -> Table:
    """Return a table with the coordinates of each row, its window and its reports before some columns.

    A column that is empty in all rows is left out, and that of windows if a breakdown is of one window.
    """
    rows = table.to_pylist()
    short = source.names(row["window"] for row in rows)
    told: dict[str, Callable[[Row], str]] = {
        "stratum": _stratum_of,
        "window": lambda row: "" if _stratum_of(row) and len(short) == 1 else short[row["window"]],
        "reports": lambda row: f"{row['reports']:,}",
        **columns,
    }
    cells = {head: [text(row) for row in rows] for head, text in told.items()}
    kept = {head: texts for head, texts in cells.items() if any(texts)}
    return Table(title, tuple(kept), list(zip(*kept.values(), strict=True)), words=("stratum", "window", *words))


def _rise(row: Row) -> str:
    """Return the interval of a quantile's change; empty if it has no end."""
    low, high = row["change_low_all"], row["change_high_all"]
    if low is None or high is None:
        return "" if low == high else f"{low:+,g} or more" if high is None else f"{high:+,g} or less"
    return f"{low:+,g} to {high:+,g}"


def means(source: Source, table: pa.Table) -> Table:
    """Return a table with a row for each window of `mean_table`, with intervals for all rows together."""

    def change(row: Row) -> str:
        return "" if row["change"] is None else _numerals(row, "change_low_all", "change_high_all", signed=True)

    columns: dict[str, Callable[[Row], str]] = {
        "mean": lambda row: numeral(row["mean"], row["standard_error"]),
        "95 % interval": lambda row: _numerals(row, "low_all", "high_all"),
        "change, 95 %": change,
    }
    unit = range_of(source.counted).unit
    return _of_numbers(source, f"{title_of(source)}: mean{f' in {unit}' if unit else ''}", table, columns)


def _numerals(row: Row, low: str, high: str, signed: bool = False) -> str:
    return _between(row[low], row[high], lambda value: numeral(value, row["standard_error"], signed))


def differences(title: str, found: Sequence[Change], sides: tuple[str, str]) -> Table:
    """Return a table with a row for each change; `sides` are the heads of the two columns of shares.

    Intervals are corrected for all rows that were looked at, so that an interval without 0 is a rise or a fall. The
    column "forgers" says how far 1 % of all clients could move the difference, in the worse direction.
    """
    lines = [
        (
            shown(one.group),
            percent(one.before),
            percent(one.after),
            _between(one.low_all, one.high_all, lambda value: percent(value, signed=True)),
            ratio(one.ratio) if one.significant and math.isfinite(one.ratio) else "",
            verdict_of(one),
            percent(max(one.forged_down, one.forged_up)),
        )
        for one in found
    ]
    heads = ("item", *sides, "difference, 95 %", "ratio", "verdict", "forgers")
    return Table(title, heads, lines, words=("item", *sides))


def stratum_differences(title: str, found: Sequence[StratumChange], sides: tuple[str, str]) -> Table:
    """Return a table with a row for each difference between two strata; `sides` are the heads of their shares."""
    lines = [
        (
            shown(one.group),
            *((percent(one.before), percent(one.after)) if one.is_known else ("unknown", "unknown")),
            _between(one.low_all, one.high_all, lambda value: percent(value, signed=True)) if one.is_known else "",
            verdict_of(one) if one.is_known else "unknown",
        )
        for one in found
    ]
    heads = ("item", *sides, "difference, 95 %", "verdict")
    return Table(title, heads, lines, words=("item", *sides))


def discovered(source: Source, title: str, rows: Sequence[Row]) -> Table:
    """Return a table of discovered values; `rows`: the last row of each value in `new_table`, with the newest count."""
    short = source.names(row[name] for row in rows for name in ("first_seen", "last_seen"))
    lines = [
        (
            shown(row["item"]),
            id_of(row["item"]),
            short[row["first_seen"]],
            short[row["last_seen"]],
            "listed" if row["listed"] else row["decision"],
            "" if row["count"] is None else _count(row),
        )
        for row in rows
    ]
    return Table(title, ("value", "id", "first seen", "last seen", "state", "newest count"), lines, words=("value",))


def _between(low: float, high: float, text: Callable[[float], str]) -> str:
    return f"{text(low)} to {text(high)}"
