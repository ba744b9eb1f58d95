"""What a page shows: figures, each a chart and the table that it is drawn from, in panels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pipelines.pages.series import Series

Attributes = Mapping[str, str | float | bool | None]
"""What the browser draws of a row, as attributes of it: False and None are left out."""


@dataclass(frozen=True)
class Span:
    """A value with its interval, and the interval that holds for all rows together, if there is one.

    Attributes:
        strong: whether it is marked: detected, or a significant change.
        path, parent: where it stands in a tree of groups; a row at the top has the parent "".
    """

    value: float
    low: float | None = None
    high: float | None = None
    low_all: float | None = None
    high_all: float | None = None
    strong: bool = True
    path: str = ""
    parent: str = ""

    @property
    def attributes(self) -> Attributes:
        """For the chart "intervals"."""
        ends = {"low": self.low, "high": self.high, "low-all": self.low_all, "high-all": self.high_all}
        return {"value": self.value, **ends, "strong": self.strong, "path": self.path, "parent": self.parent}


@dataclass(frozen=True)
class Column:
    """Reports of one hop or stream, its band, in one window, its place; `wrong`: they do not add up."""

    band: str
    place: str
    label: str
    kept: int
    rejected: int
    wrong: bool = False

    @property
    def attributes(self) -> Attributes:
        """For the chart "columns"."""
        said = {"band": self.band, "place": self.place, "label": self.label}
        return {**said, "kept": self.kept, "rejected": self.rejected, "wrong": self.wrong}


@dataclass(frozen=True)
class Points:
    """Where a value was seen: the place of each window, and its count there; None: it has no count."""

    points: tuple[tuple[int, float | None], ...]

    @property
    def attributes(self) -> Attributes:
        """For the chart "dots"."""
        return {"points": json.dumps(self.points)}


@dataclass(frozen=True)
class Part:
    """A part of a whole."""

    value: float

    @property
    def attributes(self) -> Attributes:
        """For the chart "parts"."""
        return {"value": self.value}


@dataclass(frozen=True)
class Row:
    """A row of a table: its name, its other cells as they are shown, and what is drawn of it; None: nothing is."""

    name: str
    cells: tuple[str, ...]
    drawn: Span | Column | Points | Part | None = None
    wrong: bool = False


@dataclass(frozen=True)
class Figure:
    """A chart with its table.

    Attributes:
        key: distinguishes it on the page: letters, digits and "-".
        heading: its name.
        says: what a reader must know, a paragraph each.
        chart: how it is drawn; "none": a table alone.
        heads: of the table's columns.
        rows: of the table.
        unit: of the values, "users" or "share".
        axis: name of the axis of values.
        signed: whether values are changes, drawn as points beside a line.
        most: how many rows are drawn.
        drills: whether rows are a tree.
        windows: for "dots", the names of the places.
    """

    key: str
    heading: str
    says: tuple[str, ...]
    chart: Literal["intervals", "columns", "dots", "parts", "none"]
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    unit: Literal["users", "share"] = "users"
    axis: str = "reports"
    signed: bool = False
    most: int = 40
    drills: bool = False
    windows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trend:
    """All items over all windows: a search box, lines of the chosen items, and a table of what is drawn."""

    key: str
    heading: str
    says: tuple[str, ...]
    series: Series


@dataclass(frozen=True)
class Prose:
    """A heading and paragraphs, or a list of values."""

    key: str
    heading: str
    says: tuple[str, ...]
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Choice:
    """Figures of which the reader sees one, chosen from a list by its heading."""

    key: str
    label: str
    figures: tuple[Figure, ...]


Block = Figure | Trend | Prose | Choice


@dataclass(frozen=True)
class Panel:
    """What belongs together: a campaign, or the comparison of campaigns.

    Attributes:
        key: distinguishes it on the page.
        title: empty on a page with one panel.
        plain: the guarantee in plain sentences, which stand under each chart.
        exact: the same for engineers.
        blocks: what is shown.
    """

    key: str
    title: str
    plain: tuple[str, ...]
    exact: tuple[str, ...]
    blocks: tuple[Block, ...] = field(default=())
