"""Results that are added up: the windows of one campaign file are one tally."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from hushcount.errors import UsageError
from hushcount.oracles.tally import Tally
from hushcount.questions.counted import Counted, Group
from hushcount.senders import Senders, weakest


def added_up(results: Sequence[Counted]) -> tuple[Counted, ...]:
    """Return one result for each campaign file: its windows' tallies are added.

    So all that is said of one result holds for several: exact laws of few supports, the collisions that all windows of
    a pool share, and the answers that clients repeat from one window to the next. A client that remembers may have sent
    one answer in every window of the file, so its equal reports add up over them: `Var <= l^2` of one, at equal windows
    the worst case exactly.

    Columns of items that not all windows have are left out.

    Raises:
        UsageError: there are no results, or no reports.
    """
    files: dict[bytes, list[Counted]] = {}
    for one in results:
        if one.reports:
            files.setdefault(one.campaign.fingerprint, []).append(one)
    if not files:
        raise UsageError(f"{len(results)} results hold 0 reports, must hold at least 1: choose windows that have some")
    return tuple(_added(same) for same in files.values())


def require_counted(results: Sequence[Counted], groups: Sequence[Group]) -> None:
    """Raise UsageError if a result says nothing of an item of a group."""
    for result in results:
        for group in groups:
            missing = result.lacks(group.items)
            if missing:
                where = f"campaign {result.campaign.id}, epoch {result.campaign.epoch}"
                raise UsageError(
                    f"item {missing[0]!a} of group {group.name!a} was not counted in {where}: leave it out, or ask for "
                    "windows that counted it"
                )


def _added(same: list[Counted]) -> Counted:
    first = same[0]
    if len(same) == 1:
        return same[0]
    items = reduce(np.intersect1d, (one.tally.items for one in same))
    counts = sum(_columns(one.tally, items) for one in same)
    reports, tallies = sum(one.reports for one in same), [one.tally for one in same]
    added = Tally(np.asarray(counts), reports, items, _senders(tallies))
    result = replace(first, tally=added, window=f"{same[0].window} to {same[-1].window}")
    # The dictionary of the file, which may be large, is read once.
    result.__dict__.update({name: value for name, value in first.__dict__.items() if name == "dictionary"})
    return result


def _columns(tally: Tally, items: np.ndarray) -> np.ndarray:
    if len(items) == len(tally.items) and np.array_equal(items, tally.items):
        return tally.counts
    order = np.argsort(tally.items)
    return tally.counts[:, order[np.searchsorted(tally.items, items, sorter=order)]]


def _senders(tallies: Sequence[Tally]) -> Senders:
    way = weakest(tally.senders.way for tally in tallies)
    reports, discovery = (
        sum(tally.senders.allotments(stream) for tally in tallies) for stream in ("reports", "discovery")
    )
    return Senders(way, reports, discovery)
