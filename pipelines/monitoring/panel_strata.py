"""The newest window broken down by the campaign's axes: one coordinate at a time, as the reader selects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hushcount.questions.counted import Counted, Group
from pipelines.monitoring.count_rows import HEADS, count_row
from pipelines.monitoring.panel_campaign import Shown
from pipelines.pages.figures import Block, Choice, Figure, Span
from pipelines.questions.breakdown import left_out
from pipelines.questions.findings import findings
from pipelines.questions.sums import sums_table

_MOST_PARTS = 100
"""With more coordinates than these, the page has no items of each."""
_MOST_ROWS = 100
_NOTES = (
    "Counts in the newest window, with 95 % intervals: thick lines for each count alone, thin lines for all counts of "
    "all parts of this choice together. Shares are of all reports of the window; with a coordinate of a public axis, "
    "of all that have it.",
)


def strata_of(shown: Shown) -> Iterator[Block]:
    """Yield a choice if the campaign has axes: all reports by coordinate, and the detected items of each coordinate."""
    newest = shown.newest.counted[-1]
    number = newest.campaign.number
    if newest.campaign.axes is None or newest.dictionary is None or (number is not None and number.mean):
        return
    axes, items = newest.campaign.axes.strata.axes, newest.dictionary.items
    wholes = [
        (axis.name, [Group(one, items, ((axis.name, one),), others=True) for one in axis.coordinates]) for axis in axes
    ]
    coordinates = [(axis.name, one) for axis in axes for one in axis.coordinates]
    parts = [] if len(coordinates) > _MOST_PARTS else coordinates
    each = [(f"{axis}={one}", [Group(item, (item,), ((axis, one),)) for item in items]) for axis, one in parts]
    looks = sum(len(groups) for _, groups in (*wholes, *each))
    figures = [
        _figure(f"{shown.key}-by-{place}", name, newest, groups, looks, whole=place < len(wholes))
        for place, (name, groups) in enumerate((*wholes, *each))
    ]
    yield Choice(f"{shown.key}-by", "Broken down by", tuple(figures))


def _figure(key: str, name: str, newest: Counted, groups: Sequence[Group], looks: int, *, whole: bool) -> Figure:
    """Return a figure of groups: of all in their order if they are `whole`, or else of those that are detected."""
    names = [group.name for group in groups]
    found = findings(sums_table([newest], groups, looks=looks).to_pylist(), names if whole else (), "group")
    if not whole:
        found = sorted(found, key=lambda row: -row["count"])[:_MOST_ROWS]
    rows = [count_row(row["group"], row, row["reports"]) for row in found]
    detected = sum(row.drawn.strong for row in rows if isinstance(row.drawn, Span))
    what = "coordinates" if whole else "items"
    says = [f"{detected:,} of {len(groups):,} {what} are detected."]
    if (lost := left_out([newest], groups)) is not None:
        says.append(f"{lost}.")
    heads = ("coordinate" if whole else "item", *HEADS)
    return Figure(key, name, tuple(says), "intervals", heads, tuple(rows), most=_MOST_ROWS, notes=_NOTES)
