"""The subject of every question: a result, and groups of items in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hushcount.arrays import IntArray, UInt64Array
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary, known_items
from hushcount.campaigns.parts import NumberPart
from hushcount.errors import UsageError
from hushcount.estimating import estimated, summed
from hushcount.oracles.estimates import Estimate
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.tally import Tally
from hushcount.strata import Where


@dataclass(frozen=True)
class Group:
    """Items that are counted together: distinct, in their canonical spelling (`items.canonical`), at least one.

    Attributes:
        where: axes with a coordinate: only reports with these coordinates count. Without, those of all strata do.
        others: whether values that the dictionary does not list count too.
    """

    name: str
    items: tuple[str, ...]
    where: Where = ()
    others: bool = False

    def __post_init__(self) -> None:
        if not self.items:
            raise UsageError(f"group {self.name!a} is empty, must hold at least 1 item")
        if len(set(self.items)) != len(self.items):
            raise UsageError(f"group {self.name!a} names an item twice: remove one")


@dataclass(frozen=True, eq=False)
class Counted:
    """One result: a tally, its campaign file, and the name of its window ("" without a window)."""

    campaign: Campaign
    tally: Tally
    window: str = ""

    @property
    def reports(self) -> int:
        """n, the reports that were counted."""
        return self.tally.reports

    @cached_property
    def dictionary(self) -> Dictionary | None:
        """The campaign's dictionary; None in an open domain."""
        return self.campaign.read_dictionary()

    def lacks(self, items: Sequence[str]) -> tuple[str, ...]:
        """Return the items that this result did not count: not in its dictionary, or without a column."""
        dictionary = self.dictionary
        if dictionary is not None:
            return tuple(item for item in items if item not in dictionary)
        if not self._mechanism.encoder.by_item:
            return ()
        there = np.isin(known_items(self._mechanism, None, items), self.tally.items)
        return tuple(item for item, counted in zip(items, there, strict=True) if not counted)

    def estimate(self, items: Sequence[str]) -> Estimate:
        """Return the estimate of each item; UsageError or ValueError if the result lacks an item."""
        return estimated(self.campaign, self.tally, known_items(self._mechanism, self.dictionary, items))

    def sums(self, groups: Sequence[Group]) -> Estimate:
        """Return the estimate of each group's sum, with its own error; UsageError or ValueError as in `estimate`."""
        return summed(
            self.campaign, self.tally, self.numbers(groups), self.dictionary, [group.where for group in groups]
        )

    def numbers(self, groups: Sequence[Group]) -> list[UInt64Array]:
        """Return the dictionary's numbers of each group's items; UsageError or ValueError as in `estimate`."""
        # All at once, because ten thousand groups of one item would take ten thousand times as many steps.
        if self.campaign.number is not None and self.campaign.number.mean and any(group.others for group in groups):
            raise UsageError(
                f"campaign {self.campaign.id} asks for a mean and counts no items: hushcount ask mean --where"
            )
        every = known_items(self._mechanism, self.dictionary, [item for group in groups for item in group.items])
        numbers = np.split(every, np.cumsum([len(group.items) for group in groups])[:-1])
        other = np.array([self.campaign.other], dtype=np.uint64)
        return [np.append(each, other) if group.others else each for each, group in zip(numbers, groups, strict=True)]

    def sizes(self, groups: Sequence[Group]) -> IntArray:
        """Return int64[g]: how many items of the mechanism each group is, which are cells if the campaign has axes."""
        axes = self.campaign.axes
        strata = {
            one: 1 if axes is None else len(axes.strata.places(dict(one))) for one in {each.where for each in groups}
        }
        return np.array([(len(group.items) + group.others) * strata[group.where] for group in groups], dtype=np.int64)

    def within(self, where: Where) -> Counted | None:
        """Return the result of the atoms that lie within the strata of public coordinates; None if there is none.

        UsageError: the campaign has no such axis or coordinate.
        """
        if not where:
            return self
        tally = self.tally.within(self._public(where))
        if tally is None:
            return None
        part = replace(self, tally=tally)
        if "dictionary" in self.__dict__:
            part.__dict__["dictionary"] = self.dictionary
        return part

    def beside(self, parts: Sequence[Where]) -> int:
        """Return how many reports are of atoms that have strata of public coordinates, but lie within none of them."""
        return self.tally.beside([self._public(where) for where in parts]) if self.tally.atoms else 0

    def _public(self, where: Where) -> frozenset[int]:
        return frozenset(self.campaign.require_axes().public.places(dict(where)).tolist())

    @property
    def _mechanism(self) -> Mechanism:
        return self.campaign.require_frequency()


@dataclass(frozen=True)
class Parted:
    """Groups of the same public coordinates, and the parts of results that have them.

    Attributes:
        where: the public coordinates; none: all reports.
        sides: the results of each side that have an atom within the strata of `where`.
        groups: the groups without their public coordinates.
        places: of the groups among all.
    """

    where: Where
    sides: tuple[tuple[Counted, ...], ...]
    groups: tuple[Group, ...]
    places: tuple[int, ...]

    @property
    def results(self) -> tuple[Counted, ...]:
        """The results of the first side."""
        return self.sides[0]


def axes_of(results: Sequence[Counted], *, public: bool) -> frozenset[str]:
    """Return the names of the public axes, or of the private ones, that some results have."""
    return frozenset(name for one in results for name in one.campaign.axes_that_are(public=public))


def parted(groups: Sequence[Group], *sides: Sequence[Counted]) -> list[Parted]:
    """Return groups by their public coordinates, since each of these has other reports (docs/adr/0059).

    UsageError: a campaign has no such axis or coordinate, or an axis of a group is public in some campaigns only.
    """
    results = [one for side in sides for one in side]
    public, private = axes_of(results, public=True), axes_of(results, public=False)
    if both := public & private & {axis for group in groups for axis, _ in group.where}:
        raise UsageError(f"axis {min(both)!a} is public in some of these results only: ask for windows of one epoch")
    found: dict[Where, list[int]] = {}
    for place, group in enumerate(groups):
        found.setdefault(tuple(one for one in group.where if one[0] in public), []).append(place)
    return [
        Parted(
            where,
            tuple(tuple(part for one in side if (part := one.within(where)) is not None) for side in sides),
            tuple(_without(groups[place], public) for place in places),
            tuple(places),
        )
        for where, places in found.items()
    ]


def _without(group: Group, axes: frozenset[str]) -> Group:
    """Return a group without its coordinates on some axes."""
    # Not by `replace`, which takes five times as long: there may be a million groups.
    return Group(group.name, group.items, tuple(one for one in group.where if one[0] not in axes), group.others)


def shared_number(results: Sequence[Counted], *, mean: bool, otherwise: str) -> NumberPart:
    """Return the section on numbers that all results have.

    Args:
        mean: whether clients must have reported for a mean; else by bins.
        otherwise: what is wrong with the values, and the cure.

    Raises:
        UsageError: a campaign has no numbers, or of the other kind, or sections differ.
    """
    parts = {one.campaign.number for one in results}
    part = parts.pop() if len(parts) == 1 else None
    if part is None or part.mean != mean:
        named = ", ".join(sorted({f"{one.campaign.id}, epoch {one.campaign.epoch}" for one in results}))
        raise UsageError(f"values of {named} {otherwise}")
    return part
