"""Differences between windows and between campaigns: significant differences come first, each with its test's power."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import combinations

from hushcount.errors import UsageError
from pipelines.monitoring.panel_campaign import Shown
from pipelines.pages.figures import Block, Choice, Figure, Panel, Prose, Row, Span
from pipelines.pages.text import sentence
from pipelines.questions.changes import Change, by_chance, changed
from pipelines.questions.findings import verdict_of
from pipelines.questions.selection import each_item
from pipelines.questions.sentences import of_changes, percent
from pipelines.questions.sides import USUAL, Sides, of_windows

_ROWS = 60
_DRAWN = 24
_MOST_PAIRS = 15
_HEADS = (
    "item",
    "before",
    "after",
    "change",
    "difference",
    "from",
    "to",
    "p, adjusted",
    "20 % would be seen with",
    "1 % of forgers, down",
    "1 % of forgers, up",
)
_NOTES = (
    "A triangle up is a rise, a triangle down a fall. Intervals are corrected as the test is, so none of them "
    "contains 0. Differences that are not significant are not drawn: the table has their p-values.",
)


def changes_of(shown: Shown) -> Iterator[Block]:
    """Yield the changes in the newest window, compared with the window before it, and with several windows."""
    windows, heading = shown.source.windows, "Risers and fallers"
    if len(windows) < 2:
        yield Prose(f"{shown.key}-changes", heading, ("One window has results: a change needs two.",))
        return
    newest = shown.windows[windows[-1]]
    figures = []
    for number in dict.fromkeys((1, min(USUAL, len(windows) - 1))):
        against = shown.windows[windows[-2]] if number == 1 else f"the {number} windows before it"
        title = f"{heading}: {newest} against {against}"
        figures.append((f"{shown.key}-changes-{number}", title, of_windows(shown.source, against=number)))
    try:
        made = tuple(_drawn(*figure, ("the earlier windows", "the newest")) for figure in figures)
    except UsageError as error:
        yield Prose(f"{shown.key}-changes", heading, (sentence(error),))
        return
    yield made[0] if len(made) == 1 else Choice(f"{shown.key}-changes", "Compare the newest window with", made)


def comparison(campaigns: Sequence[Shown]) -> Panel | None:
    """Return a panel that compares each pair of campaigns in their newest windows; None if there is one campaign."""
    pairs = list(combinations(campaigns, 2))
    if not pairs:
        return None
    figures: list[Figure] = []
    refused: list[str] = []
    for number, (one, other) in enumerate(pairs[:_MOST_PAIRS]):
        title = f"{one.source.heading} and {other.source.heading}"
        try:
            sides, names = Sides(one.newest, other.newest, (one.name, other.name)), (one.name, other.name)
            figures.append(_drawn(f"pair-{number}", title, sides, names))
        except UsageError as error:
            refused.append(f"{title}: {error}.")
    if len(pairs) > _MOST_PAIRS:
        refused.append(f"{len(pairs) - _MOST_PAIRS:,} more pairs are not shown: hushcount ask compare shows them.")
    blocks: list[Block] = [Choice("pairs", "Compare in their newest windows", tuple(figures))] if figures else []
    if refused:
        blocks.append(Prose("not-compared", "Not compared", tuple(refused)))
    return Panel("compare", "Compare campaigns", None, tuple(blocks))


def _drawn(key: str, title: str, sides: Sides, names: tuple[str, str]) -> Figure:
    """Return a figure of the rises and falls between two sides; the table has the other changes too."""
    found = changed(sides.before.counted, sides.after.counted, each_item(sides.sources))
    rows = by_chance(found)
    number = sum(one.significant for one in rows)
    head = sorted(rows[: min(number, _DRAWN)], key=lambda one: -one.difference)
    says = tuple(f"{said[:1].upper()}{said[1:]}." for said in of_changes(found))
    notes = (f"Share in {names[1]} less share in {names[0]}, with 95 % intervals.", *_NOTES)
    listed = (*head, *rows[len(head) : _ROWS])
    return Figure(
        key, title, says, "intervals", _HEADS, tuple(map(_row, listed)), "share", "difference of shares", signed=True,
        most=max(len(head), 1), notes=(" ".join(notes),),
    )  # fmt: skip


def _row(one: Change) -> Row:
    """Return a row of a change; only a rise or a fall has an interval, and is drawn."""
    verdict = verdict_of(one)
    difference, low, high = (min(max(end, -1.0), 1.0) for end in (one.difference, one.low_all, one.high_all))
    shares = [f"{share:.2%}" for share in (one.before, one.after)]
    ends = [f"{end:.2%}" if one.significant else "" for end in (low, high)]
    cells = (*shares, verdict, f"{difference:.2%}", *ends, f"{one.adjusted:.2g}", f"{one.seen_20:.0%}")
    cells += (percent(-one.forged_down, signed=True), percent(one.forged_up, signed=True))
    drawn = Span(difference, low, high) if one.significant else None
    return Row(one.group, cells, drawn, facts=asdict(one))
