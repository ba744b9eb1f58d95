"""--by and --where: a question of each stratum of axes, or only of reports with some coordinates (docs/adr/0058)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import pyarrow as pa

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import UsageError
from hushcount.questions.counted import Counted, Group, axes_of, parted
from hushcount.questions.sides import added_up
from hushcount.strata import COLUMN, OTHER, Where
from pipelines.console.options import coordinates


@dataclass(frozen=True)
class Stratum:
    """The reports that rows of a breakdown are of.

    Attributes:
        where: their coordinates; none: all reports.
        results: for each result its part that has the public coordinates; None: no atom has them alone.
        private: the coordinates on private axes, which the results only estimate.
    """

    where: Where
    results: tuple[Counted | None, ...]
    private: Where = ()

    @property
    def there(self) -> tuple[Counted, ...]:
        """The results that have the stratum."""
        return tuple(one for one in self.results if one is not None)

    @property
    def columns(self) -> dict[str, str]:
        """The columns for machines, by name: of each axis its coordinate."""
        return {f"{COLUMN}{axis}": value for axis, value in self.where}


@dataclass(frozen=True)
class Breakdown:
    """What the rows of an answer are broken down by.

    Attributes:
        by: the axes; each row of the question becomes a row for each combination of their coordinates.
        where: only reports with these coordinates count.
    """

    by: tuple[str, ...] = ()
    where: Where = ()

    @classmethod
    def of(cls, by: Sequence[str] | None, where: Sequence[str] | None) -> Breakdown:
        """Return the breakdown that options ask for; UsageError: they contradict each other, or have another form."""
        given = coordinates("--where", where)
        if both := next((axis for axis, _ in given if axis in (by or ())), None):
            raise UsageError(f"axis {both!a} is in --by and in --where: leave one of them out")
        return cls(tuple(dict.fromkeys(by or ())), given)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is broken down."""
        return not (self.by or self.where)

    def is_of_cells(self, results: Sequence[Counted]) -> bool:
        """Return whether coordinates on private axes are asked for, which the results only estimate."""
        return not axes_of(results, public=False).isdisjoint((*self.by, *dict(self.where)))

    def groups(self, groups: Sequence[Group], results: Sequence[Counted]) -> tuple[Group, ...]:
        """Return each group in each stratum; a group's name tells its coordinates.

        Strata that no atom has alone, in no result, are left out.

        Raises:
            UsageError: the campaigns of the results have no such axis or coordinate, or list different coordinates.
        """
        made = self._all_groups(groups, results)
        asked = _one_of_each(made)
        there = {asked[place].where for part in parted(asked, results) if part.results for place in part.places}
        if not there:
            raise UsageError("no stratum of these public coordinates has the minimum batch by itself: ask for others")
        return tuple(group for group in made if group.where in there)

    def _all_groups(self, groups: Sequence[Group], results: Sequence[Counted]) -> tuple[Group, ...]:
        if self.is_whole:
            return tuple(groups)
        strata = [(where, _label(where)) for where in self._strata([one.campaign for one in results])]
        own = {axis for group in groups for axis, _ in group.where}
        if both := own.intersection((*self.by, *dict(self.where))):
            raise UsageError(f"axis {min(both)!a} is fixed by a group already: leave it out of --by and --where")
        return tuple(
            Group(f"{group.name}{label}", group.items, (*group.where, *where), group.others)
            for group in groups
            for where, label in strata
        )

    def parts(self, results: Sequence[Counted], *, together: bool = False) -> tuple[Stratum, ...]:
        """Return the strata that rows are of, with the results that have them; one, if nothing is broken down.

        Args:
            together: whether the windows of each campaign file are added up to one result.

        Raises:
            UsageError: there are no reports; or as in `groups`.
        """
        asked = self.groups([Group("", ("",))], results)
        sides: dict[object, list[Counted]] = {}
        for place, one in enumerate(results):
            sides.setdefault(one.campaign.fingerprint if together else place, []).append(one)
        found = {
            place: Stratum(
                asked[place].where, tuple(added_up(side)[0] if side else None for side in part.sides), group.where
            )
            for part in parted(asked, *sides.values())
            for place, group in zip(part.places, part.groups, strict=True)
        }
        return tuple(found[place] for place in range(len(asked)))

    def strata(self, results: Sequence[Counted]) -> int:
        """Return the number of strata, 1 without axes; UsageError as in `groups`."""
        return 1 if self.is_whole else sum(1 for _ in self._strata([one.campaign for one in results]))

    def words(self, results: Sequence[Counted], groups: Sequence[Group]) -> Iterator[str]:
        """Say what the shares of groups are of, and how many reports of public strata are in no row."""
        if not self.is_whole:
            yield self._shares(results)
        yield from self.lost(results, groups)

    def lost(self, results: Sequence[Counted], groups: Sequence[Group] = ()) -> Iterator[str]:
        """Say how many reports of public strata are in no row; `groups`: the rows, beside those of whole strata."""
        asked = self._all_groups([Group("", ("",))], results)
        if (said := left_out(results, (*asked, *groups))) is not None:
            yield said

    def _shares(self, results: Sequence[Counted]) -> str:
        told = axes_of(results, public=True).intersection((*self.by, *dict(self.where)))
        of = f"with the same {' and '.join(sorted(told))}" if told else "of a window"
        return f"share: of all reports {of}{', not of those of a stratum' if self.is_of_cells(results) else ''}"

    def columns(self, table: pa.Table, groups: Iterable[Group], head: str) -> pa.Table:
        """Return a table for machines: names without coordinates, and a column `by.AXIS` for each axis.

        Args:
            groups: those of the rows, as `groups` returns them.
            head: the column of the names.
        """
        if self.is_whole:
            return table
        there = {group.name: group for group in groups}
        rows, place = [there[name] for name in table[head].to_pylist()], table.column_names.index(head)
        asked = len(self.where) + len(self.by)
        plain = [group.name.removesuffix(_label(group.where[-asked:])) for group in rows]
        table = table.set_column(place, head, pa.array(plain, pa.string()))
        for number, axis in enumerate([name for name, _ in self.where] + list(self.by), place + 1):
            values = [dict(group.where)[axis] for group in rows]
            table = table.add_column(number, f"{COLUMN}{axis}", pa.array(values, pa.string()))
        return table

    def _strata(self, campaigns: Sequence[Campaign]) -> Iterator[Where]:
        # "other" is what an axis does not list, so it differs with the list.
        for name in (*self.by, *(axis for axis, value in self.where if value == OTHER)):
            if len({frozenset(one.require_axes().strata.axis(name).values) for one in campaigns}) > 1:
                raise UsageError(
                    f"axis {name} lists other coordinates in some of these results: ask for windows of one epoch, or "
                    "leave it out"
                )
        for name, value in self.where:
            lists = {
                f"epoch {one.epoch} of {one.id}": value in one.require_axes().strata.axis(name).coordinates
                for one in campaigns
            }
            if len({*lists.values()}) > 1:
                lacking = " and ".join(epoch for epoch, there in lists.items() if not there)
                raise UsageError(
                    f"coordinate {value!a} of axis {name} is not listed by {lacking}, but by another of these "
                    "windows: ask for windows of epochs that list it, as --last 1"
                )
        for campaign in campaigns:
            campaign.require_axes().strata.places(dict(self.where))
        chosen = [campaigns[-1].require_axes().strata.axis(name).coordinates for name in self.by]
        for values in product(*chosen):
            yield (*self.where, *zip(self.by, values, strict=True))


WHOLE = Breakdown()


def left_out(results: Sequence[Counted], groups: Sequence[Group]) -> str | None:
    """Say how many reports are of public strata that no group has alone; None: there are none.

    A stratum below the minimum batch is counted together with others, so its own count is never shown.
    """
    parts = [part.where for part in parted(_one_of_each(groups), results) if part.where]
    if not (lost := sum(one.beside(parts) for one in results)):
        return None
    return (
        f"{lost:,} reports are in no row: their public strata are below the minimum batch, and counted together with "
        "others"
    )


def _one_of_each(groups: Iterable[Group]) -> list[Group]:
    """Return a group of each of the groups' coordinates, because a million groups share few of them."""
    return list({group.where: group for group in groups}.values())


def require_plain(items: Iterable[str], listed: Collection[str]) -> None:
    """Raise UsageError if an item is named as a row of a breakdown is, and no dictionary lists it."""
    for item in items:
        name, _, where = item.rstrip("]").rpartition(" [")
        if name and item.endswith("]") and "=" in where and item not in listed:
            cure = " ".join(f"--where {one!a}" for one in where.split(", "))
            raise UsageError(f"item {item!a} names a coordinate: give --item {name!a} {cure}")


def text_of(where: Iterable[tuple[str, str]]) -> str:
    """Return coordinates as tables and sentences name them."""
    return ", ".join(f"{axis}={value}" for axis, value in where)


def _label(where: Where) -> str:
    return f" [{text_of(where)}]"
