"""One line of a figure's table: a value measured, predicted, printed and bounded at one place of one curve."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Literal

Law = Literal["curve", "exact", "within", "mean", "root", "known", "largest"]


@dataclass(frozen=True)
class Row:
    """A place of a curve.

    Attributes:
        panel: which axes it belongs to.
        series: which curve.
        x: place on the x axis.
        measured: by simulation, or by the product's own formula where `law` is "exact" or "within".
        predicted: closed form, corrected where the paper is wrong.
        printed: closed form as the paper prints it.
        bound: shown beside the measured value, which need not meet it.
        law: how far measured may be from predicted: "curve", nothing is measured; "exact", rounding only; "within",
            `low` and `high` as given; "mean", a mean of runs; "root", the root of a mean of squares; "known", a mean of
            runs of known spread; "largest", the largest of `items` mean squares.
        items: number of items of which the largest is taken.
        runs: number of runs that were measured.
        spread: standard deviation of one run divided by its mean; of the squares where `law` is "root".
        low, high: range of measured over predicted.
    """

    panel: str
    series: str
    x: float
    measured: float | None = None
    predicted: float | None = None
    printed: float | None = None
    bound: float | None = None
    law: Law = "curve"
    items: int = 1
    runs: int = 0
    spread: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def tested(self) -> bool:
        return self.law != "curve" and self.measured is not None and self.predicted is not None

    @property
    def ratio(self) -> float:
        """Measured over predicted, of a tested row."""
        if self.measured is None or self.predicted is None:
            raise ValueError(f"{self.series} at {self.x:g} has no measured or no predicted value")
        return self.measured / self.predicted

    @property
    def holds(self) -> bool:
        """Whether measured over predicted is in its range."""
        return self.low is not None and self.high is not None and bool(self.low <= self.ratio <= self.high)

    @property
    def holds_as_printed(self) -> bool:
        """Whether measured over printed is in the same range; true if the paper prints no value."""
        if self.printed is None or self.measured is None or self.low is None or self.high is None:
            return True
        return bool(self.low <= self.measured / self.printed <= self.high)


COLUMNS = tuple(field.name for field in fields(Row))


def as_csv(rows: Iterable[Row]) -> str:
    """Return the table as CSV, numbers to ten digits."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {name: f"{cell:.10g}" if isinstance(cell, float) else cell for name, cell in asdict(row).items()}
        )
    return text.getvalue()


def select(rows: Iterable[Row], panel: str, series: str | None = None) -> list[Row]:
    """Return the rows of a panel, or of one of its curves."""
    return [row for row in rows if row.panel == panel and series in (None, row.series)]


def find(rows: Iterable[Row], panel: str, series: str, x: float) -> Row:
    """Return the row at x, to nine digits."""
    return next(row for row in select(rows, panel, series) if abs(row.x - x) <= 1e-9 * max(1.0, abs(x)))
