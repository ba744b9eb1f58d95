"""Choose the items of a question by name, glob, prefix, file or declared group, or choose each node of a path tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hushcount.errors import UsageError
from hushcount.items import canonical
from hushcount.questions.counted import Counted, Group
from hushcount.questions.selecting import CHOICES, Choice, by_prefix, select
from pipelines.files.item_files import read_names
from pipelines.questions.breakdown import require_plain
from pipelines.questions.sources import Source

ALL = "all listed items"
EVERYTHING = "all reports"
_NAMED = 3
"""The number of items that the name of a sum lists."""


@dataclass(frozen=True)
class Chosen:
    """The items that a question is about; each choice makes a separate group.

    Attributes:
        items: names of items.
        declared: names of groups of the deployment (`[analyzer.groups]`).
        glob, prefix: choose the items of the dictionary that match the glob, or begin with the prefix.
        file: path of a file of items, one a line or a .csv with the column item.
        everything: choose all items of the dictionary.
        separator: separates the levels of items that are paths; each node of the paths is a group. The paths are the
            items that the other fields choose, or all items of the dictionary if the other fields choose none.
        depth: number of levels of the paths.
        from_right: whether the last part of a path is the top, as in domain names.
    """

    items: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    glob: str | None = None
    prefix: str | None = None
    file: str | None = None
    everything: bool = False
    separator: str | None = None
    depth: int = 1
    from_right: bool = False

    @classmethod
    def of(
        cls,
        items: Sequence[str] | None,
        declared: Sequence[str] | None,
        *others: str | bool | int | None,
    ) -> Chosen:
        """Return the choice for the values of options, which are given in the order of the fields."""
        return cls(tuple(items or ()), tuple(declared or ()), *others)  # type: ignore[arg-type]  # as the fields are

    @property
    def names(self) -> bool:
        """Whether the user chose the rows of the answer, so that they keep their order."""
        return not self.is_nothing and self.separator is None

    @property
    def is_nothing(self) -> bool:
        """Whether no item is chosen."""
        return not (self.items or self.declared or self.glob or self.prefix or self.file or self.everything)


def read_groups(sources: Sequence[Source], chosen: Chosen, *, together: bool) -> tuple[Group, ...]:
    """Return the groups that a question names, in the order of `Chosen`.

    A glob and a prefix choose from the items that every dictionary of the sources has, so that both sides of a
    comparison add up the same items.

    Args:
        sources: at least one source; declared groups are the groups in the first source's deployment file.
        together: whether `items` are one group; otherwise each item is a group.

    Raises:
        UsageError: a group is unknown or empty, a file cannot be read, or there is no dictionary to choose from.
    """
    listed = common_items(sources)
    require_plain(map(canonical, chosen.items), [item for source in sources for item in source.followed])
    if chosen.separator is None:
        return tuple(_groups(sources[0], chosen, listed, together))
    if chosen.is_nothing:
        if listed is None:
            raise UsageError(
                f"--by-prefix {chosen.separator!a} sums the items of a dictionary, but this campaign has none: choose "
                "items by --file"
            )
        items = listed
    else:
        groups = _groups(sources[0], chosen, listed, together)
        items = tuple(dict.fromkeys(item for group in groups for item in group.items))
    return by_prefix(items, chosen.separator, chosen.depth, from_right=chosen.from_right)


def all_reports(source: Source) -> Group:
    """Return the group of all values, listed or not; UsageError: the domain is open."""
    listed = common_items([source])
    if not listed:
        raise UsageError("--by alone counts all reports of a dictionary's campaign, and this one has no dictionary")
    return Group(EVERYTHING, listed, others=True)


def common_items(sources: Sequence[Source]) -> tuple[str, ...] | None:
    """Return the items that every result's dictionary has, in the newest dictionary's order; None in an open domain."""
    dictionaries = {id(one.dictionary): one.dictionary for source in sources for one in source.counted}
    newest = sources[-1].dictionary
    if newest is None or None in dictionaries.values():
        return None
    others = [one for one in dictionaries.values() if one is not None and one is not newest]
    return tuple(item for item in newest.items if all(item in one for one in others))


def each_item(sources: Sequence[Source]) -> tuple[Group, ...]:
    """Return one group for each item that all results counted: listed items, or in an open domain followed items.

    Raises:
        UsageError: no item was counted in all results.
    """
    items: Sequence[str] | None = common_items(sources)
    if items is None:
        items = tuple(dict.fromkeys(item for source in sources for item in source.followed))
        results = [one for source in sources for one in source.counted]
        lacking = {item for one in results for item in one.lacks(items)}
        items = [item for item in items if item not in lacking]
    if not items:
        raise UsageError("no item was counted in all of these results: give --item, or choose other results")
    return tuple(Group(item, (item,)) for item in items)


def declared_groups(source: Source) -> tuple[Group, ...]:
    """Return the groups of the deployment that have an item in this campaign.

    The deployment's groups are for all its campaigns; in a campaign without a dictionary a glob or a prefix chooses no
    items.
    """
    listed = common_items([source])
    found = [
        Group(name, items, tuple(choice.where.items()))
        for name, choice in source.choices.items()
        if (items := _select(choice, listed or (), source.base))
    ]
    return tuple(group for group in found if are_of(source.counted, group))


def are_of(results: Sequence[Counted], group: Group) -> bool:
    """Return whether the campaigns of results have the coordinates of a group, with one list for each axis."""
    axes = [() if one.campaign.axes is None else one.campaign.axes.strata.axes for one in results]
    listed = [{axis.name: frozenset(axis.coordinates) for axis in each} for each in axes]
    return all(
        len({each.get(name) for each in listed}) == 1 and value in listed[0].get(name, ())
        for name, value in group.where
    )


def counted_in_all(groups: Sequence[Group], results: Sequence[Counted]) -> tuple[tuple[Group, ...], dict[str, int]]:
    """Return the groups without the items that some result did not count, and the number of lost items by group name.

    Raises:
        UsageError: a group has no item that all results counted.
    """
    lacking = {item for one in results for group in groups for item in one.lacks(group.items)}
    kept, lost = [], {}
    for group in groups:
        items = tuple(item for item in group.items if item not in lacking)
        if not items:
            raise UsageError(
                f"item {group.items[0]!a} was not counted in all of these results: correct its name, leave it out, or "
                "choose other results"
            )
        if len(items) < len(group.items):
            lost[group.name] = len(group.items) - len(items)
        kept.append(replace(group, items=items) if group.name in lost else group)
    return tuple(kept), lost


def _groups(source: Source, chosen: Chosen, listed: Sequence[str] | None, together: bool) -> Iterator[Group]:
    items = tuple(dict.fromkeys(map(canonical, chosen.items)))
    if together and items:
        more = f" + {len(items) - _NAMED:,} more" if len(items) > _NAMED + 1 else ""
        yield Group(" + ".join(items[:_NAMED] if more else items) + more, items)
    else:
        yield from (Group(item, (item,)) for item in items)
    for name in dict.fromkeys(chosen.declared):
        if name not in source.choices:
            there = ", ".join(sorted(source.choices)) or "none"
            raise UsageError(f"group is {name!a}, must be one of [analyzer.groups] of the deployment: {there}")
        yield _group(name, source.choices[name], listed, source.base)
    if chosen.glob is not None:
        yield _group(chosen.glob, _choice(glob=chosen.glob), listed, Path())
    if chosen.prefix is not None:
        yield _group(f"{chosen.prefix}*", _choice(prefix=chosen.prefix), listed, Path())
    if chosen.file is not None:
        yield _group(Path(chosen.file).name, _choice(file=chosen.file), listed, Path())
    if chosen.everything:
        if not listed:
            raise UsageError("--all sums the items of a dictionary, but this campaign has none: choose items by --file")
        yield Group(ALL, tuple(listed))


def _choice(**given: str) -> Choice:
    """Return the choice that an option makes; UsageError: the choice is invalid, as it is in a deployment file."""
    from pydantic import ValidationError

    from hushcount.formats.models import explain

    ((name, value),) = given.items()
    try:
        return CHOICES.validate_python({"one": given})["one"]
    except ValidationError as error:
        raise UsageError(explain(error, f"--{name} {value!a}").rstrip(".")) from None


def _group(name: str, choice: Choice, listed: Sequence[str] | None, base: Path) -> Group:
    items = _select(choice, listed, base)
    if not items and choice.file is not None:
        raise UsageError(f"file {choice.file!a} holds no item, must hold at least 1, one a line")
    if not items:
        raise UsageError(f"{choice.pattern} matches none of the {len(listed or ()):,} listed items")
    return Group(name, items, tuple(choice.where.items()))


def _select(choice: Choice, listed: Sequence[str] | None, base: Path) -> tuple[str, ...]:
    read: Mapping[str, Sequence[str]] = {} if choice.file is None else {choice.file: read_names(base / choice.file)}
    return select(listed, choice, read)
