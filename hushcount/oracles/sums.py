"""Sums over groups of items, each with the error of the sum itself.

A report's scores of several items depend on each other, so the error of a sum does not follow from those of its items.
It follows from the law of T, the sum of one report's scores over the group: the encoder's `group_law`. Of a group and
all other items the fewer are counted, because all counts together are n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from hushcount.arrays import IntArray, UInt64Array
from hushcount.oracles.encoders.base import Encoder, Grouped, Scored
from hushcount.oracles.estimates import Estimate
from hushcount.oracles.group_estimates import Rest, Rows, Sums, SupportSums
from hushcount.oracles.groups import Groups


def sums(
    encoder: Encoder,
    scored: Callable[[UInt64Array], Scored],
    groups: Sequence[UInt64Array],
    everything: UInt64Array | None,
) -> Estimate:
    """Return the estimate of the sum of each group: `Mechanism.sums`.

    Args:
        encoder: of the reports.
        scored: from items, uint64[c], to their scores in the tally.
        groups: uint64[size] each.
        everything: all items that clients can hold, uint64[d]; None if that is unknown.
    """
    asked = Groups.of(groups)
    single = asked.sizes == 1.0
    if single.all():
        return encoder.estimate(scored(asked.items))
    n, rests = scored(asked.items[:1]).tally.reports, {} if everything is None else _rests(asked, everything)
    whole = np.array([place for place, rest in rests.items() if not len(rest)], dtype=np.int64)
    turned = np.array([place for place, rest in rests.items() if len(rest)], dtype=np.int64)
    direct = np.setdiff1d(np.arange(len(asked)), np.concatenate([whole, turned]))
    parts: list[tuple[IntArray, Estimate]] = []
    if len(whole):
        none = np.zeros(len(whole))
        parts.append((whole, Rest.of(Sums(none, none, none, none, none), n)))
    others = _estimates(encoder, scored, Groups.of([rests[int(place)] for place in turned]))
    parts.extend((turned[where], Rest.of(estimate, n)) for where, estimate in others)
    parts.extend((direct[where], found) for where, found in _estimates(encoder, scored, asked.chosen(direct)))
    return Rows.of(parts)


def _rests(groups: Groups, everything: UInt64Array) -> dict[int, UInt64Array]:
    """Return, by a group's place, all items that are not in it: only if these are fewer.

    Then they have less error, or as much. Only the number of items decides: a choice by what was counted would prefer
    the higher or the lower of two estimates.

    Raises:
        ValueError: a group has an item that nobody can hold.
    """
    if not np.isin(groups.items, everything).all():
        raise ValueError("a group has an item that clients cannot hold")
    left = (len(everything) - groups.sizes).astype(np.int64)
    return {
        place: np.setdiff1d(everything, items, assume_unique=True)
        for place, items in enumerate(groups.each())
        if len(items) > max(1, left[place])
    }


def _estimates(
    encoder: Encoder, scored: Callable[[UInt64Array], Scored], groups: Groups
) -> Iterator[tuple[IntArray, Estimate]]:
    """Yield the estimates of groups, with their places: of single items those of `Encoder.estimate`."""
    for places in (np.flatnonzero(groups.sizes == 1.0), np.flatnonzero(groups.sizes > 1.0)):
        if len(places):
            chosen = groups.chosen(places)
            single = len(chosen.items) == len(chosen)
            items = scored(chosen.items)
            yield places, encoder.estimate(items) if single else _estimate(encoder, Grouped.of(items, chosen))


def _estimate(encoder: Encoder, asked: Grouped) -> Estimate:
    n, law, squares = asked.scored.tally.reports, encoder.group_law(asked), encoder.group_collisions(asked)
    noise = np.sqrt(law.noise(n, asked.held / n))
    count, collisions = asked.count, np.sqrt(squares)
    item = asked.scored.law
    if item.least < 0.0 or item.clash > 0.0:
        null = np.sqrt(law.noise(n, 0.0) + encoder.group_collisions(asked, held=False))
        return Sums(count, noise, collisions, null, encoder.group_lean(asked))
    moments = (np.asarray(each) for each in (law.own, law.other, law.own_spread, law.far_spread))
    return SupportSums(count, noise, collisions, asked.scores, n, *moments)
