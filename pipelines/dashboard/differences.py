"""Risers and fallers between windows, and differences between campaigns: significant ones first, with their power."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import pyarrow as pa

from hushcount.errors import UsageError
from pipelines.asking.changes import changes_table
from pipelines.dashboard.campaign import Shown, asked_of_all
from pipelines.pages.figures import Block, Choice, Figure, Panel, Prose, Row, Span

_ROWS = 60
_DRAWN = 24
_BEFORE = 7
"""Windows before the newest that are added up for one comparison."""
_MOST_PAIRS = 15
_HEADS = (
    "item", "before", "after", "difference", "from", "to", "ratio", "p, adjusted", "significant",
    "20 % would be seen with",
)  # fmt: skip


def changes_of(shown: Shown) -> Iterator[Block]:
    """Yield what rose and fell in the newest window: against the one before, and against several."""
    windows, heading = shown.source.windows, "Risers and fallers"
    if len(windows) < 2:
        yield Prose(f"{shown.key}-changes", heading, ("One window has results: a change needs two.",))
        return
    newest = shown.windows[windows[-1]]
    figures = []
    for number in dict.fromkeys((1, min(_BEFORE, len(windows) - 1))):
        before = windows[-1 - number : -1]
        against = shown.windows[before[0]] if number == 1 else f"the {number} windows before it"
        title = f"{heading}: {newest} against {against}"
        figures.append((f"{shown.key}-changes-{number}", title, before))
    try:
        made = tuple(_figure(key, title, shown, before) for key, title, before in figures)
    except UsageError as error:
        yield Prose(f"{shown.key}-changes", heading, (f"{error}.",))
        return
    yield made[0] if len(made) == 1 else Choice(f"{shown.key}-changes", "Compare the newest window with", made)


def _figure(key: str, title: str, shown: Shown, windows: Sequence[str]) -> Figure:
    before, after = shown.results(windows), shown.newest
    groups = asked_of_all([shown], [*before, *after])
    return _drawn(key, title, changes_table(before, after, groups), "the earlier windows", "the newest")


def comparison(campaigns: Sequence[Shown]) -> Panel | None:
    """Return a panel with each pair of campaigns in their newest windows; None of a single campaign."""
    pairs = list(combinations(campaigns, 2))
    if not pairs:
        return None
    figures: list[Figure] = []
    refused: list[str] = []
    for number, (one, other) in enumerate(pairs[:_MOST_PAIRS]):
        title = f"{one.name} and {other.name}"
        try:
            groups = asked_of_all([one, other], [*one.newest, *other.newest])
            table = changes_table(one.newest, other.newest, groups)
        except UsageError as error:
            refused.append(f"{title}: {error}.")
        else:
            figures.append(_drawn(f"pair-{number}", title, table, one.name, other.name))
    if len(pairs) > _MOST_PAIRS:
        refused.append(f"{len(pairs) - _MOST_PAIRS:,} more pairs are not shown: ask hushcount ask compare for them.")
    blocks: list[Block] = [Choice("pairs", "Compare in their newest windows", tuple(figures))] if figures else []
    if refused:
        blocks.append(Prose("not-compared", "Not compared", tuple(refused)))
    plain = tuple(f"{one.name}: {sentence}" for one in campaigns for sentence in one.stated.plain)
    return Panel("compare", "Compare campaigns", plain, (), tuple(blocks))


def _drawn(key: str, title: str, table: pa.Table, before: str, after: str) -> Figure:
    """Return a figure of the rows of a table of changes: significant ones first, then those of least p-value."""
    rows: list[dict[str, Any]] = table.to_pylist()
    rows.sort(key=lambda row: (not row["significant"], row["p_value"], row["group"]))
    number = sum(row["significant"] for row in rows)
    head = sorted(rows[: min(max(number, 8), _DRAWN)], key=lambda row: -row["difference"])
    says = (
        f"Share in {after} less share in {before}, with 95 % intervals. {number:,} of {len(rows):,} items differ "
        "significantly: of such marks 5 % at most are expected to be false (Benjamini and Hochberg). A triangle up is "
        "a rise, down a fall; a circle is not significant.",
    )
    listed = (*head, *rows[len(head) : _ROWS])
    return Figure(
        key, title, says, "intervals", _HEADS, tuple(map(_row, listed)), "share", "difference of shares", signed=True,
        most=len(head),
    )  # fmt: skip


def _row(row: dict[str, Any]) -> Row:
    shares = [f"{row[name]:.2%}" for name in ("before", "after", "difference", "low", "high")]
    said = "yes" if row["significant"] else ""
    cells = (*shares, f"{row['ratio']:.3g}", f"{row['adjusted']:.2g}", said, f"{row['seen_20']:.0%}")
    drawn = Span(row["difference"], row["low"], row["high"], strong=row["significant"])
    return Row(row["group"], cells, drawn)
