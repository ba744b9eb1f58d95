"""The share of every item in every window, packed so that a browser can search ten thousand items."""

from __future__ import annotations

import numpy as np

from hushcount.oracles.estimates import Levels
from pipelines.dashboard.campaign import Shown
from pipelines.pages.figures import Block, Prose, Trend
from pipelines.pages.series import Series

_FIRST = 5
_REPEATED = (
    "Clients repeat their answers: windows of one epoch have much the same errors, and their mean is no more exact "
    "than one of them."
)


def trend_of(shown: Shown) -> Block:
    """Return the figure of all items that the campaign follows; sentences if it follows none by name."""
    key, heading, source = f"{shown.key}-trend", "Items over windows", shown.source
    items = source.followed
    if not items:
        return Prose(key, heading, ("The domain is open and no item is known by its name: name items to follow.",))
    results, confidence = source.counted, Levels().confidence
    count, low, high = (np.full((len(items), len(results)), np.nan) for _ in range(3))
    largest = np.full(len(items), -np.inf)
    for number, result in enumerate(results):
        lacking = set(result.lacks(items))
        rows = np.array([place for place, item in enumerate(items) if item not in lacking], dtype=np.int64)
        if not rows.size:
            continue
        estimate = result.estimate([items[place] for place in rows])
        count[rows, number] = estimate.count
        low[rows, number], high[rows, number] = estimate.interval(confidence)
        detected = estimate.detected(1.0 - confidence, count.size)
        largest[rows] = np.fmax(largest[rows], np.where(detected, estimate.count / result.reports, -np.inf))
    order = np.argsort(-largest, kind="stable")[:_FIRST]
    # Without a detected item, the first ones show what is drawn.
    first = tuple(int(place) for place in order if np.isfinite(largest[place])) or tuple(range(min(len(items), 2)))
    names = [shown.windows[one.window] for one in results]
    labels = tuple(
        name if names.count(name) == 1 else f"{name} epoch {one.campaign.epoch}"
        for name, one in zip(names, results, strict=True)
    )
    reports = tuple(one.reports for one in results)
    says = (
        f"The share of reports that hold an item, with {100 * confidence:g} % intervals of each window alone: among "
        "many windows some intervals miss. The largest detected items are drawn first; search for others.",
        *([_REPEATED] if any(one.campaign.memory for one in results) else []),
    )
    return Trend(key, heading, says, Series(items, labels, reports, count, low, high, first))
