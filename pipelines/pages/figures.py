"""The content of a page: figures in panels. A figure is a chart and the table that the chart is drawn from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hushcount.privacy.guarantees import Statement
from hushcount.privacy.words import State, in_one_line
from pipelines.pages.series import Grain, Series

Times = tuple[tuple[int, int], ...]
"""Begin and end of windows, in seconds since 1970-01-01T00:00:00Z."""

Attributes = Mapping[str, str | float | bool | None]
"""The data of a row that the browser draws, as attributes of the row.

If a value is False or None, the attribute is left out.
"""


@dataclass(frozen=True)
class Span:
    """A value with its own interval and, if there is one, the interval that is valid for all rows together.

    Attributes:
        strong: whether the row is a finding: it is detected, or a significant change. Other rows are not drawn.
        named: whether the deployment named the row, which is then drawn in any case.
        path, parent: the row's place in a tree of groups; a row at the top has the parent "".
    """

    value: float
    low: float | None = None
    high: float | None = None
    low_all: float | None = None
    high_all: float | None = None
    strong: bool = True
    path: str = ""
    parent: str = ""
    named: bool = False

    @property
    def attributes(self) -> Attributes:
        """The attributes for the chart "intervals"."""
        ends: Attributes = {"low": self.low, "high": self.high, "low-all": self.low_all, "high-all": self.high_all}
        marks: Attributes = {"strong": self.strong, "named": self.named, "path": self.path, "parent": self.parent}
        return {"value": self.value, **ends, **marks}


@dataclass(frozen=True)
class Column:
    """Numbers of reports of a hop or stream (`band`) in a window.

    Attributes:
        label: name of the window, whose `time` is its begin and end in seconds since 1970-01-01T00:00:00Z.
        wrong: whether the numbers do not add up.
    """

    band: str
    label: str
    time: tuple[int, int]
    kept: int
    rejected: int
    wrong: bool = False

    @property
    def attributes(self) -> Attributes:
        """The attributes for the chart "columns"."""
        said: Attributes = {"band": self.band, "label": self.label, "begin": self.time[0], "end": self.time[1]}
        return {**said, "kept": self.kept, "rejected": self.rejected, "wrong": self.wrong}


@dataclass(frozen=True)
class Points:
    """The windows in which a value was seen: for each the window's place and the value's count; None: no count."""

    points: tuple[tuple[int, float | None], ...]

    @property
    def attributes(self) -> Attributes:
        """The attributes for the chart "dots"."""
        return {"points": json.dumps(self.points)}


@dataclass(frozen=True)
class Part:
    """A part of a whole."""

    value: float

    @property
    def attributes(self) -> Attributes:
        """The attributes for the chart "parts"."""
        return {"value": self.value}


@dataclass(frozen=True)
class Row:
    """A row of a table: its name, the text of its other cells, and its data for the chart; None: no data is drawn.

    Attributes:
        facts: what programs get of the row: the numbers behind the cells.
        link: the address that the name leads to.
    """

    name: str
    cells: tuple[str, ...]
    drawn: Span | Column | Points | Part | None = None
    wrong: bool = False
    facts: Mapping[str, object] = field(default_factory=dict)
    link: str = ""


@dataclass(frozen=True)
class Figure:
    """A chart with its table.

    Attributes:
        key: name that identifies the figure on the page, of letters, digits and "-".
        heading: name of the figure.
        says: what the chart shows, above it, in few words.
        chart: kind of chart; "none": only a table.
        heads: heads of the table's columns.
        rows: rows of the table.
        unit: unit of the values, "users" or "share".
        axis: name of the axis of values.
        signed: whether values are changes, drawn as points beside a line.
        most: the largest number of rows that are drawn.
        drills: whether the rows form a tree.
        windows, times: for the chart "dots", the names and times of the windows, in the order of their places.
        notes: how to read the chart, below it.
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
    times: Times = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trend:
    """All items over all windows: a search box, lines of the chosen items, and a table of these items.

    Attributes:
        series: for each grain the same items; "window" is the first.
    """

    key: str
    heading: str
    says: tuple[str, ...]
    series: Mapping[Grain, Series]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prose:
    """A heading and paragraphs, or a list of values."""

    key: str
    heading: str
    says: tuple[str, ...]
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Choice:
    """Figures of which one is shown at a time: the reader selects its heading from a list."""

    key: str
    label: str
    figures: tuple[Figure, ...]


Block = Figure | Trend | Prose | Choice


@dataclass(frozen=True)
class Guarantee:
    """The privacy guarantee of a panel, stated once.

    Attributes:
        state: whom it protects.
        line: its figure, in one line.
        plain: the whole guarantee, in sentences for people.
        exact: the whole guarantee, in exact terms for engineers.
    """

    state: State
    line: str
    plain: tuple[str, ...]
    exact: tuple[str, ...]

    @classmethod
    def of(cls, stated: Statement) -> Guarantee:
        """Return the guarantee of a privacy statement."""
        return cls(*in_one_line(stated), stated.plain, stated.sentences)


@dataclass(frozen=True)
class Panel:
    """Blocks that belong together, because they are about one campaign or one comparison of campaigns.

    Attributes:
        key: name that identifies the panel on the page.
        title: title of the panel; empty if the page has only one panel.
        guarantee: the privacy guarantee of its results; None if there are no results.
        blocks: the content.
    """

    key: str
    title: str
    guarantee: Guarantee | None
    blocks: tuple[Block, ...] = field(default=())


@dataclass(frozen=True)
class Served:
    """Where a served page gets what it does not hold.

    Attributes:
        path: its own.
        version: of the results in it.
        pieces: the path of its pieces, which names the numbers in them.
    """

    path: str
    version: str
    pieces: str

    @property
    def attributes(self) -> Attributes:
        """The attributes of the page's body."""
        return {"path": self.path, "version": self.version, "pieces": self.pieces}
