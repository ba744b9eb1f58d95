"""Numbers: the mean of each window, or a histogram of the newest window and percentiles of each window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hushcount.errors import UsageError
from hushcount.questions.counted import Counted
from hushcount.questions.means import range_of
from hushcount.questions.quantiles import bins_of
from pipelines.console.number_text import numeral, of_range
from pipelines.monitoring.count_rows import HEADS, count_row
from pipelines.monitoring.panel_campaign import Shown
from pipelines.pages.figures import Block, Choice, Figure, Prose, Row, Span
from pipelines.pages.text import sentence
from pipelines.questions.breakdown import Stratum
from pipelines.questions.numbers import histogram_table, mean_table, quantile_table

_NAMES = {0.5: "Median", 0.9: "90th percentile", 0.99: "99th percentile"}
_ENDS = ("low", "high", "low_all", "high_all")
_HISTOGRAM_HEADS = ("bin", *HEADS)
_QUANTILE_HEADS = ("window", "bin", "interval", "interval, all", "reports")
_MEAN_HEADS = ("window", "mean", "from", "to", "from, all", "to, all", "reports")
_MEAN_NOTES = ("95 % intervals: thick lines for each window alone, thin lines for all windows together.",)
_HISTOGRAM_NOTES = (
    "Counts in the newest window, with 95 % intervals: thick lines for each bin alone, thin lines for all bins. The "
    "first and the last bin have all lower and all higher numbers.",
)
_QUANTILE_NOTES = (
    "The percentile of the reported numbers lies in the bins of the interval: thick lines for each window alone, thin "
    "lines for all windows and percentiles together. Intervals consist of whole bins.",
)


def numbers_of(shown: Shown) -> Iterator[Block]:
    """Yield a histogram and a choice of percentiles, if the values of the campaign are numbers."""
    newest = shown.newest.counted[-1]
    if newest.campaign.number is None:
        return
    if shown.is_mean:
        yield _means(shown)
        return
    yield _histogram(shown, newest)
    try:
        rows = quantile_table([Stratum((), shown.source.counted)], tuple(_NAMES)).to_pylist()
    except UsageError as error:
        yield Prose(f"{shown.key}-percentiles", "Percentiles", (sentence(error),))
        return
    figures = tuple(_percentile(shown, at, [row for row in rows if row["at"] == at]) for at in _NAMES)
    yield Choice(f"{shown.key}-percentiles", "Percentile of the numbers", figures)


def _means(shown: Shown) -> Figure:
    rows = tuple(
        Row(
            shown.windows.get(row["window"], row["window"]),
            (*(numeral(row[name], row["standard_error"]) for name in ("mean", *_ENDS)), f"{row['reports']:,}"),
            Span(row["mean"], row["low"], row["high"], row["low_all"], row["high_all"], named=True),
            facts=row,
        )
        for row in mean_table([Stratum((), shown.source.counted)]).to_pylist()
    )
    newest, part = rows[-1], range_of(shown.source.counted)
    unit = f" {part.unit}" if part.unit else ""
    says = (f"{newest.name}: {newest.cells[0]}{unit}, from {newest.cells[1]} to {newest.cells[2]} with 95 %.",)
    notes = (*_MEAN_NOTES, *(sentence(said) for said in of_range(part)))
    return Figure(
        f"{shown.key}-mean", "Mean of the numbers", says, "intervals", _MEAN_HEADS, rows, axis=part.unit or "number",
        most=len(rows), notes=notes,
    )  # fmt: skip


def _histogram(shown: Shown, newest: Counted) -> Figure:
    # A histogram has all bins in their order, so that its shape can be seen.
    rows = [count_row(row["bin"], row, row["reports"]) for row in histogram_table([newest]).to_pylist()]
    detected = sum(row.drawn.strong for row in rows if isinstance(row.drawn, Span))
    says = (f"{detected:,} of {len(rows):,} bins are detected.",)
    key = f"{shown.key}-histogram"
    return Figure(
        key, "Histogram", says, "intervals", _HISTOGRAM_HEADS, tuple(rows), most=len(rows), notes=_HISTOGRAM_NOTES
    )


def _percentile(shown: Shown, at: float, found: Sequence[Mapping[str, Any]]) -> Figure:
    each = [bins_of([one]) for one in shown.source.counted]
    edges = sorted(edge for bins in each for edge in (bins.values[0], bins.values[-1]))
    rows = tuple(
        Row(
            shown.windows.get(row["window"], row["window"]),
            (row["bin"] or "unknown", row["interval"], row["interval_all"], f"{row['reports']:,}"),
            _span(row, edges),
            facts=row,
        )
        for row in found
    )
    newest = found[-1]
    what = f"{newest['bin']}, in {newest['interval']} with 95 %"
    if newest["bin"] is None:
        what = "unknown, because there may be no numbers"
    says = (f"{rows[-1].name}: {what}.",)
    key, name = f"{shown.key}-at-{100 * at:g}", _NAMES[at]
    return Figure(
        key,
        name,
        says,
        "intervals",
        _QUANTILE_HEADS,
        rows,
        axis=each[-1].unit or "number",
        most=len(rows),
        notes=_QUANTILE_NOTES,
    )


def _span(row: Mapping[str, Any], edges: Sequence[float]) -> Span | None:
    """Return what is drawn of a quantile; where there is no end, the first or the last of all edges is drawn."""
    if row["bin"] is None:
        return None
    low, high, *ends = (
        edges[0 if "low" in name else -1] if row[name] is None else row[name]
        for name in ("bin_low", "bin_high", *_ENDS)
    )
    return Span((low + high) / 2.0, ends[0], ends[1], ends[2], ends[3], named=True)
