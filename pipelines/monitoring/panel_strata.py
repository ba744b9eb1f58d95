"""The newest window broken down by the campaign's axes: one coordinate at a time, as the reader selects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from hushcount.questions.counted import Counted, Group
from pipelines.monitoring.count_rows import HEADS, count_row
from pipelines.monitoring.panel_campaign import Shown
from pipelines.pages.figures import Block, Choice, Figure, Span
from pipelines.questions.answer_tables import in_stratum
from pipelines.questions.breakdown import Breakdown, left_out
from pipelines.questions.findings import findings
from pipelines.questions.stratum_shares import with_stratum_shares
from pipelines.questions.sums import sums_table

_MOST_PARTS = 100
"""With more coordinates than these, the page has no items of each."""
_MOST_ROWS = 100
_NOTES = (
    "Counts in the newest window, with 95 % intervals: thick lines for each count alone, thin lines for all counts of "
    "all parts of this choice together. Shares are of all reports of the window; with a coordinate of a public axis, "
    "of all that have it.",
)
_OF_CELLS = (
    '"In stratum": the estimated share among the reports with this coordinate, with its interval for all counts; '
    "unknown if there may be no such reports.",
)


def strata_of(shown: Shown) -> Iterator[Block]:
    """Yield a choice if the campaign has axes: all reports by coordinate, and the detected items of each coordinate."""
    newest = shown.newest.counted[-1]
    number = newest.campaign.number
    if newest.campaign.axes is None or newest.dictionary is None or (number is not None and number.mean):
        return
    axes = newest.campaign.axes.strata.axes
    items = newest.dictionary.items if number is None else number.bins.names
    wholes = [
        (axis.name, [Group(one, items, ((axis.name, one),), others=True) for one in axis.coordinates]) for axis in axes
    ]
    private = newest.campaign.axes_that_are(public=False)
    coordinates = [
        (axis.name, one)
        for axis in axes
        for one in axis.coordinates
        if axis.name in private or newest.within(((axis.name, one),)) is not None
    ]
    parts = [] if len(coordinates) > _MOST_PARTS else coordinates
    each = [(f"{axis}={one}", [Group(item, (item,), ((axis, one),)) for item in items]) for axis, one in parts]
    looks = sum(len(groups) for _, groups in (*wholes, *each))
    figures = [
        _figure(f"{shown.key}-by-{place}", name, newest, groups, looks, whole=place < len(wholes))
        for place, (name, groups) in enumerate((*wholes, *each))
    ]
    yield Choice(f"{shown.key}-by", "Broken down by", tuple(figures))


def _figure(key: str, name: str, newest: Counted, groups: Sequence[Group], looks: int, *, whole: bool) -> Figure:
    """Return a figure of groups: of all in their order if they are `whole`, or else of those that are detected.

    Detected items of a coordinate on a private axis have a share of their stratum too.
    """
    table, names = sums_table([newest], groups, looks=looks), [group.name for group in groups]
    found = findings(table.to_pylist(), names if whole else (), "group")
    if not whole:
        found = sorted(found, key=lambda row: -row["count"])[:_MOST_ROWS]
        if newest.campaign.number is not None:
            # Bins have their order, so that the shape of their counts can be seen.
            found.sort(key=lambda row: names.index(row["group"]))
    of_cells = not whole and Breakdown(where=groups[0].where).is_of_cells([newest])
    if of_cells:
        table = pa.Table.from_pylist(found, table.schema)
        found = with_stratum_shares(table, [newest], groups, looks, named=False).to_pylist()
    rows = [count_row(row["group"], row, row["reports"]) for row in found]
    if of_cells:
        rows = [replace(one, cells=(*one.cells, in_stratum(row))) for one, row in zip(rows, found, strict=True)]
    detected = sum(row.drawn.strong for row in rows if isinstance(row.drawn, Span))
    what = "coordinate" if whole else "item" if newest.campaign.number is None else "bin"
    says = [f"{detected:,} of {len(groups):,} {what}s are detected."]
    if lacking := len(groups) - len(rows) if whole else 0:
        says.append(f"{lacking:,} below the minimum batch are not shown.")
    if (lost := left_out([newest], groups)) is not None:
        says.append(f"{lost}.")
    heads = (what, *HEADS, *(["in stratum"] if of_cells else []))
    notes = (*_NOTES, *(_OF_CELLS if of_cells else ()))
    return Figure(key, name, tuple(says), "intervals", heads, tuple(rows), most=_MOST_ROWS, notes=notes)
