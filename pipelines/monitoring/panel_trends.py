"""The share of every item and group in every window, packed so that a browser can search ten thousand items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from hushcount.arrays import FloatArray, IntArray
from hushcount.errors import UsageError
from hushcount.oracles.estimates import Estimate, Levels
from hushcount.oracles.sight import sight_of
from hushcount.privacy.unit import repeats_of, unit_of
from hushcount.questions.counted import Counted, Group, parted
from pipelines.monitoring.panel_campaign import Shown
from pipelines.monitoring.panel_periods import longer
from pipelines.pages.figures import Block, Prose, Trend
from pipelines.pages.series import Series
from pipelines.questions.selection import declared_groups

_FIRST = 5
_REPEATED = (
    "Clients repeat their answers: windows of one epoch have nearly the same errors, and their mean is no more exact "
    "than a single window."
)


def trend_of(shown: Shown) -> Block:
    """Return the figure of all items that the campaign counts, or a sentence if it counts no named items."""
    key, heading, source = f"{shown.key}-trend", "Items over windows", shown.source
    items, groups = source.followed, declared_groups(source)
    if not items:
        return Prose(key, heading, ("The domain is open and no item is known by its name: name items to follow.",))
    results, confidence = source.counted, Levels().confidence
    series = _each_window(shown, items, groups)
    notes = (
        f"The share of reports that hold an item, with a {100 * confidence:g} % interval for each window alone: among "
        "many windows some intervals miss. An empty dot: the item is not detected in this window.",
        *(["Groups that the deployment names are found as \u201cgroup NAME\u201d."] if groups else []),
        *([_REPEATED] if any(one.campaign.memory for one in results) else []),
    )
    says = () if series.first else (_unseen(results[-1], series.count.size),)
    return Trend(key, heading, says, {"window": series, **longer(shown, series)}, notes)


def _each_window(shown: Shown, items: Sequence[str], groups: Sequence[Group]) -> Series:
    results, confidence = shown.source.counted, Levels().confidence
    names = (*items, *(f"group {group.name}" for group in groups))
    count, low, high, p_value = np.stack(
        [
            shown.known.of((place.directory, tuple(items), tuple(groups)), partial(_in_result, result, items, groups))
            for place, result in zip(shown.source.places, results, strict=True)
        ],
        axis=-1,
    )
    found = p_value <= (1.0 - confidence) / count.size
    reports = tuple(one.reports for one in results)
    largest = np.max(np.where(found, count / np.array(reports), -np.inf), axis=1)[: len(items)]
    first = tuple(int(place) for place in np.argsort(-largest, kind="stable")[:_FIRST] if found[place].any())
    windows = [shown.windows[one.window] for one in results]
    labels = tuple(
        name if windows.count(name) == 1 else f"{name} epoch {one.campaign.epoch}"
        for name, one in zip(windows, results, strict=True)
    )
    times = tuple(shown.times[one.window] for one in results)
    return Series(names, labels, times, reports, count, low, high, found, first)


def _in_result(result: Counted, items: Sequence[str], groups: Sequence[Group]) -> FloatArray:
    """Return float64[4, items and groups]: count, low, high and p-value in a result; NaN: it did not count the item."""
    # Not by `total`, whose groups of one item give the same numbers, but take four times as long.
    numbers = np.full((4, len(items) + len(groups)), np.nan)
    for rows, estimate in _estimates(result, items, groups):
        numbers[:, rows] = estimate.count, *estimate.interval(Levels().confidence), estimate.p_values()
    return numbers


def _unseen(newest: Counted, looks: int) -> str:
    """Say that no item is detected, and what the reports of the newest window could show."""
    campaign, senders = newest.campaign, newest.tally.senders
    counted = "people" if unit_of(campaign, senders, "reports").counted == "clients" else "reports"
    sight = sight_of(
        campaign.require_frequency(),
        newest.reports,
        looks,
        repeats=repeats_of(campaign, senders) * campaign.cells_an_item,
    )
    return f"No item is detected, so none is drawn. {sight.words(counted)} Search for an item to draw it in any case."


def _estimates(result: Counted, items: Sequence[str], groups: Sequence[Group]) -> Iterator[tuple[IntArray, Estimate]]:
    """Yield the rows and estimates of items that a result counted, and of groups with all their items counted."""
    lacking = set(result.lacks(items))
    rows = np.array([place for place, item in enumerate(items) if item not in lacking], dtype=np.int64)
    if rows.size:
        yield rows, result.estimate([items[place] for place in rows])
    whole = [place for place, group in enumerate(groups) if not result.lacks(group.items)]
    if not whole:
        return
    for part in parted([groups[place] for place in whole], [result]):
        for one in part.results:
            try:
                sums = one.sums(part.groups)
            except UsageError:
                # The figure of groups gives the reason for missing groups.
                return
            yield np.array([whole[place] for place in part.places], dtype=np.int64) + len(items), sums
