"""hushcount ask mean, ask quantile and ask histogram: how large the numbers are that clients reported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest

import pyarrow as pa

from hushcount.errors import UsageError
from hushcount.oracles.estimates import Levels
from hushcount.questions.counted import Counted, Group
from hushcount.questions.means import Measured, change_of, mean_of, range_of
from hushcount.questions.quantiles import bins_of, changes, quantiles, sums_of
from hushcount.strata import Where
from pipelines.jobs.number_bins import edges_near
from pipelines.jobs.table_files import schema_of
from pipelines.questions.sums import TOTALS, totals_table

QUANTILES = schema_of(
    "window",
    "epoch",
    "reports",
    "at",
    "bin",
    "bin_low",
    "bin_high",
    "interval",
    "low",
    "high",
    "interval_all",
    "low_all",
    "high_all",
    "change_low",
    "change_high",
    "change_low_all",
    "change_high_all",
    "repeated",
)
"""Columns of a table with one row for each window and share.

`at`: the share of the numbers that are at most the quantile. `bin`: the bin that has it, with its ends. `interval`: the
bins that may have it, with ends `low` and `high`; null means no end. `change_low`, `change_high`: how much the quantile
rose since the window before; both are null in the first window. Columns that end in "_all" hold for all rows together,
quantiles and changes.
"""
MEANS = schema_of(
    "window",
    "epoch",
    "reports",
    "mean",
    "standard_error",
    "low",
    "high",
    "low_all",
    "high_all",
    "change",
    "change_low",
    "change_high",
    "change_low_all",
    "change_high_all",
    "repeated",
)
"""Columns of a table with one row for each window, in the unit of the numbers.

`change`: against the window before, null in the first row. Columns that end in "_all" hold for all rows together, means
and changes.
"""
HISTOGRAM = schema_of("bin", "from", "to", *TOTALS.names[2:])
"""Columns of a table with one row for each bin, the lowest first; `from` and `to`: its ends, null where it has none."""


def quantile_table(
    results: Sequence[Counted], shares: Sequence[float], levels: Levels | None = None, where: Where = ()
) -> pa.Table:
    """Return the quantiles of each result, with the columns QUANTILES.

    Args:
        where: as in `hushcount.questions.quantiles.sums_of`.

    Raises:
        UsageError: for the same reasons as in `hushcount.questions.quantiles`, or numbers have different units.
    """
    if len(units := {bins_of([one]).unit for one in results}) > 1:
        raise UsageError(f"numbers are in {' and '.join(sorted(units))}: ask for windows of one unit")
    confidence, looks, rows = (levels or Levels()).confidence, (2 * len(results) - 1) * len(shares), []
    sums = [sums_of([one], where) for one in results]
    for place, one in enumerate(results):
        found = quantiles(sums[place], shares, confidence, looks)
        risen = changes(sums[place - 1], sums[place], shares, confidence, looks) if place else ()
        for each, change in zip_longest(found.found, risen):
            bin_low, bin_high = found.bins.ends(each.at, each.at)
            (low, high), (low_all, high_all) = found.bins.ends(*each.alone), found.bins.ends(*each.together)
            row = {
                "window": one.window,
                "epoch": one.campaign.epoch,
                "reports": found.reports,
                "at": each.share,
                "bin": found.bins.names[each.at],
                "bin_low": bin_low,
                "bin_high": bin_high,
                "interval": found.bins.span(*each.alone),
                "low": low,
                "high": high,
                "interval_all": found.bins.span(*each.together),
                "low_all": low_all,
                "high_all": high_all,
                **({} if change is None else {**_rise(change.alone, ""), **_rise(change.together, "_all")}),
                "repeated": one.campaign.memory,
            }
            rows.append(row)
    return pa.Table.from_pylist(rows, QUANTILES)


def edges_of_next_epoch(results: Sequence[Counted], shares: Sequence[float], where: Where = ()) -> tuple[str, ...]:
    """Return the edges of bins that are narrow around quantiles of all clients, as results show them together.

    UsageError: as in `quantile_table`; or as in `pipelines.jobs.number_bins.edges_near`.
    """
    sums = sums_of(results, where)
    return edges_near(sums.bins, [one.together for one in quantiles(sums, shares, sampled=True).found])


def _rise(interval: tuple[float, float], end: str) -> dict[str, float | None]:
    low, high = (number if math.isfinite(number) else None for number in interval)
    return {f"change_low{end}": low, f"change_high{end}": high}


def mean_table(results: Sequence[Counted], levels: Levels | None = None) -> pa.Table:
    """Return the mean of each result, with the columns MEANS.

    Raises:
        UsageError: for the same reasons as in `hushcount.questions.means.mean_of`.
    """
    range_of(results)
    confidence, looks, rows = (levels or Levels()).confidence, 2 * len(results) - 1, []
    means = [mean_of(one) for one in results]
    for place, (one, mean) in enumerate(zip(results, means, strict=True)):
        change = change_of(means[place - 1], mean) if place else None
        row = {
            "window": one.window,
            "epoch": one.campaign.epoch,
            "reports": mean.reports,
            "mean": mean.of_clients.value,
            "standard_error": mean.of_clients.error,
            **_ends(mean.of_clients, "", confidence, looks),
            **({} if change is None else {"change": change.value, **_ends(change, "change_", confidence, looks)}),
            "repeated": one.campaign.memory,
        }
        rows.append(row)
    return pa.Table.from_pylist(rows, MEANS)


def _ends(found: Measured, name: str, confidence: float, looks: int) -> dict[str, float]:
    (low, high), (low_all, high_all) = found.interval(confidence), found.interval(confidence, looks)
    return {f"{name}low": low, f"{name}high": high, f"{name}low_all": low_all, f"{name}high_all": high_all}


def histogram_table(results: Sequence[Counted], levels: Levels | None = None, where: Where = ()) -> pa.Table:
    """Return the total of each bin over all results, with the columns HISTOGRAM.

    Args:
        where: as in `hushcount.questions.quantiles.sums_of`.

    Raises:
        UsageError: the campaigns have no numbers, or different bins; or as in `totals_table`.
    """
    bins = bins_of(results)
    totals = totals_table(results, [Group(name, (name,), where) for name in bins.names], levels)
    ends = [bins.ends(place, place) for place in range(len(bins))]
    columns = {name: totals[name] for name in TOTALS.names[2:]}
    columns |= {"bin": totals["group"], "from": [low for low, _ in ends], "to": [high for _, high in ends]}
    return pa.table([columns[name] for name in HISTOGRAM.names], schema=HISTOGRAM)
