"""The total of each item and group in each day, week or month, with its own limits, as in `hushcount ask total`.

The limits of a total do not follow from the limits of its windows, and clients with a memory repeat their noise, so a
browser cannot add up windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from itertools import pairwise

import numpy as np

from hushcount.arrays import FloatArray
from hushcount.collection.tilings import Tiling
from hushcount.collection.windows import Window
from hushcount.errors import UsageError
from hushcount.oracles.estimates import Levels
from hushcount.questions.counted import Counted, Group, parted
from hushcount.questions.totals import Totals, total
from hushcount.window_starts import UNITS
from pipelines.monitoring.panel_campaign import Shown
from pipelines.pages.series import Grain, Series
from pipelines.questions.selection import declared_groups


@dataclass(frozen=True)
class Period:
    """A day, week or month of a zone, and its windows.

    Attributes:
        places: of the results whose windows begin in the period, among all results.
        partial: whether a window that begins in the period has no result.
    """

    begin: datetime
    end: datetime
    places: tuple[int, ...]
    partial: bool


def longer(shown: Shown, windows: Series) -> Mapping[Grain, Series]:
    """Return the totals of days, weeks (from Monday on) and months; each window belongs to where it begins.

    A grain is left out if it has fewer than two periods, or no period with two windows.

    Args:
        windows: the same items and groups, window by window.
    """
    groups = (*(Group(item, (item,)) for item in shown.source.followed), *declared_groups(shown.source))
    found: dict[Grain, Series] = {}
    for grain in UNITS:
        periods = periods_of(Tiling(grain, str(shown.source.zone)), windows.times)
        if 2 <= len(periods) < len(set(windows.times)):
            found[grain] = _totals(shown, windows, groups, periods)
    return found


def periods_of(tiling: Tiling, times: Sequence[tuple[int, int]]) -> tuple[Period, ...]:
    """Return the periods in which windows begin.

    Args:
        tiling: of the periods: days, weeks or months of a zone.
        times: begin and end of each window, in seconds since 1970.
    """
    places: dict[Window, list[int]] = {}
    for place, (begin, _) in enumerate(times):
        places.setdefault(tiling.window_at(datetime.fromtimestamp(begin, timezone.utc)), []).append(place)
    return tuple(
        Period(one.start, one.end, tuple(own), _lacks(one, sorted({times[place] for place in own})))
        for one, own in places.items()
    )


def _lacks(period: Window, windows: Sequence[tuple[int, int]]) -> bool:
    """Return whether there is room for another window, as long as the shortest, that begins in the period."""
    begin, end = period.start.timestamp(), period.end.timestamp()
    gap = any(before[1] < after[0] for before, after in pairwise(windows))
    shortest = min(ends - starts for starts, ends in windows)
    return gap or windows[0][0] - shortest >= begin or windows[-1][1] < end


def _totals(shown: Shown, windows: Series, groups: tuple[Group, ...], periods: Sequence[Period]) -> Series:
    source = shown.source
    parts = []
    for period in periods:
        part = [source.counted[place] for place in period.places]
        paths = tuple(source.places[place].directory for place in period.places)
        parts.append(shown.known.of((paths, groups), partial(_in_period, part, groups)))
    count, low, high, p_value = np.stack(parts, axis=-1)
    found = p_value <= (1.0 - Levels().confidence) / count.size
    labels = tuple(f"{one.begin.astimezone(source.zone):%Y-%m-%d}" for one in periods)
    times = tuple((int(one.begin.timestamp()), int(one.end.timestamp())) for one in periods)
    reports = tuple(sum(source.counted[place].reports for place in one.places) for one in periods)
    short = tuple(number for number, one in enumerate(periods) if one.partial)
    return Series(windows.items, labels, times, reports, count, low, high, found, windows.first, short)


def _in_period(results: Sequence[Counted], groups: Sequence[Group]) -> FloatArray:
    """Return float64[4, groups]: count, low, high and p-value of totals; NaN: a result lacks an item of the group."""
    numbers = np.full((4, len(groups)), np.nan)
    lacking = {item for one in results for item in one.lacks([item for group in groups for item in group.items])}
    there = [row for row, group in enumerate(groups) if lacking.isdisjoint(group.items)]
    # Apart, because a group may have no error where items have one.
    for many in (False, True):
        rows = [row for row in there if (len(groups[row].items) > 1) == many]
        for part in parted([groups[row] for row in rows], results):
            if part.results and (sums := _total(part.results, part.groups)) is not None:
                numbers[:, [rows[place] for place in part.places]] = sums.count, sums.low, sums.high, sums.p_value
    return numbers


def _total(results: Sequence[Counted], groups: Sequence[Group]) -> Totals | None:
    try:
        return total(results, groups)
    except UsageError:
        # The error of a group may be unknown: the figure of groups says why. Or the period has no reports.
        return None
