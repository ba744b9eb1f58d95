"""hushcount ask mean, ask quantile and ask histogram: how large the numbers are that clients reported."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import Any

import pyarrow as pa

from hushcount.errors import UsageError
from hushcount.oracles.estimates import Levels
from hushcount.questions.counted import Counted, Group
from hushcount.questions.means import Measured, change_of, mean_of, range_of
from hushcount.questions.quantiles import bins_of, changes, quantiles, sums_of
from pipelines.jobs.number_bins import edges_near
from pipelines.jobs.table_files import schema_of
from pipelines.questions.breakdown import WHOLE, Breakdown, Stratum
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
rose since the window before, in the same stratum; both are null if there is none. Columns that end in "_all" hold for
all rows together, quantiles and changes. If the number of numbers is not significantly above 0 among all rows, there
may be none: then the quantile is unknown, `bin` is null, the interval is of any number, and no change is known.
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

`change`: against the window before in the same stratum, null if there is none. Columns that end in "_all" hold for all
rows together, means and changes.
"""
HISTOGRAM = schema_of("bin", "from", "to", *TOTALS.names[2:])
"""Columns of a table with one row for each bin, the lowest first; `from` and `to`: its ends, null where it has none."""


def quantile_table(strata: Sequence[Stratum], shares: Sequence[float], levels: Levels | None = None) -> pa.Table:
    """Return the quantiles of each result of some strata, with the columns QUANTILES and one for each axis.

    Raises:
        UsageError: for the same reasons as in `hushcount.questions.quantiles`, or numbers have different units.
    """
    if len(units := {bins_of([one]).unit for stratum in strata for one in stratum.there}) > 1:
        raise UsageError(f"numbers are in {' and '.join(map(repr, sorted(units)))}: ask for windows of one unit")
    looks = len(shares) * _looks(strata)
    rows = [row for stratum in strata for row in _quantiles_of(stratum, shares, levels or Levels(), looks)]
    return _table(strata, rows, QUANTILES)


def _looks(strata: Sequence[Stratum]) -> int:
    """Return how many intervals hold together, of numbers and of their changes."""
    return sum(len(stratum.there) + sum(None not in both for both in pairwise(stratum.results)) for stratum in strata)


def _table(strata: Sequence[Stratum], rows: Sequence[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    axes = [pa.field(name, pa.string()) for name in strata[0].columns]
    return pa.Table.from_pylist(rows, pa.schema([*list(schema)[:2], *axes, *list(schema)[2:]]))


def _quantiles_of(stratum: Stratum, shares: Sequence[float], levels: Levels, looks: int) -> Iterator[dict[str, Any]]:
    sums = [None if one is None else sums_of([one], stratum.private) for one in stratum.results]
    for one, before, after in zip(stratum.results, (None, *sums), sums, strict=False):
        if one is None or after is None:
            continue
        found = quantiles(after, shares, levels.confidence, looks)
        risen = () if before is None else changes(before, after, shares, levels.confidence, looks)
        for each, change in zip_longest(found.found, risen):
            bin_low, bin_high = found.bins.ends(each.at, each.at) if found.are_known else (None, None)
            (low, high), (low_all, high_all) = found.bins.ends(*each.alone), found.bins.ends(*each.together)
            yield {
                "window": one.window,
                "epoch": one.campaign.epoch,
                **stratum.columns,
                "reports": found.reports,
                "at": each.share,
                "bin": found.bins.names[each.at] if found.are_known else None,
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


def edges_of_next_epoch(strata: Sequence[Stratum], shares: Sequence[float]) -> tuple[str, ...]:
    """Return the edges of bins that are narrow around the quantiles of all clients of each stratum.

    They are those of the results with the newest bins, together.

    UsageError: as in `hushcount.questions.quantiles.sums_of`; or as in `pipelines.jobs.number_bins.edges_near`.
    """
    bins = bins_of([max((one for each in strata for one in each.there), key=lambda one: one.window)])
    alike = [[one for one in each.there if bins_of([one]) == bins] for each in strata]
    sums = [sums_of(results, each.private) for each, results in zip(strata, alike, strict=True) if results]
    found = [quantiles(each, shares, looks=len(sums) * len(shares), sampled=True) for each in sums]
    if not (known := [one for each in found if each.are_known for one in each.found]):
        raise UsageError("these quantiles are unknown, because there may be no numbers: ask for more windows")
    return edges_near(bins, [one.together for one in known])


def _rise(interval: tuple[float, float], end: str) -> dict[str, float | None]:
    low, high = (number if math.isfinite(number) else None for number in interval)
    return {f"change_low{end}": low, f"change_high{end}": high}


def mean_table(strata: Sequence[Stratum], levels: Levels | None = None) -> pa.Table:
    """Return the mean of each result of some strata, with the columns MEANS and one for each axis.

    Raises:
        UsageError: for the same reasons as in `hushcount.questions.means.mean_of`.
    """
    range_of([one for stratum in strata for one in stratum.there])
    confidence, looks, rows = (levels or Levels()).confidence, _looks(strata), []
    for stratum in strata:
        means = [None if one is None else mean_of(one) for one in stratum.results]
        for one, before, mean in zip(stratum.results, (None, *means), means, strict=False):
            if one is None or mean is None:
                continue
            change = None if before is None else change_of(before, mean)
            row = {
                "window": one.window,
                "epoch": one.campaign.epoch,
                **stratum.columns,
                "reports": mean.reports,
                "mean": mean.of_clients.value,
                "standard_error": mean.of_clients.error,
                **_ends(mean.of_clients, "", confidence, looks),
                **({} if change is None else {"change": change.value, **_ends(change, "change_", confidence, looks)}),
                "repeated": one.campaign.memory,
            }
            rows.append(row)
    return _table(strata, rows, MEANS)


def _ends(found: Measured, name: str, confidence: float, looks: int) -> dict[str, float]:
    (low, high), (low_all, high_all) = found.interval(confidence), found.interval(confidence, looks)
    return {f"{name}low": low, f"{name}high": high, f"{name}low_all": low_all, f"{name}high_all": high_all}


def histogram_table(
    results: Sequence[Counted], groups: Sequence[Group] | None = None, levels: Levels | None = None
) -> pa.Table:
    """Return the total of each bin over all results, with the columns HISTOGRAM.

    Args:
        groups: the bins, each once or in several strata, as `bin_groups` and a breakdown make them; None: each once.

    Raises:
        UsageError: the campaigns have no numbers, or different bins; or as in `totals_table`.
    """
    bins, groups = bins_of(results), groups or bin_groups(results)
    totals, items = totals_table(results, groups, levels), {group.name: group.items[0] for group in groups}
    places = [bins.names.index(items[name]) for name in totals["group"].to_pylist()]
    ends = [bins.ends(place, place) for place in places]
    columns = {name: totals[name] for name in TOTALS.names[2:]}
    columns |= {"bin": totals["group"], "from": [low for low, _ in ends], "to": [high for _, high in ends]}
    return pa.table([columns[name] for name in HISTOGRAM.names], schema=HISTOGRAM)


def bin_groups(results: Sequence[Counted], of: Breakdown = WHOLE) -> tuple[Group, ...]:
    """Return each bin as a group, the lowest first, stratum by stratum.

    UsageError: the campaigns have no numbers, or different bins; or as in `Breakdown.groups`.
    """
    groups = of.groups([Group(name, (name,)) for name in bins_of(results).names], results)
    strata = [*dict.fromkeys(group.where for group in groups)]
    return tuple(sorted(groups, key=lambda group: strata.index(group.where)))
