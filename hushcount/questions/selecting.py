"""Choose the items of a group by names, a glob, a prefix or a file.

If items are paths, each node of their tree can be a group, so that items can be summed at every level.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import translate
from typing import Annotated

from pydantic import Field, TypeAdapter, model_validator

from hushcount.campaigns.parts import Identifier
from hushcount.errors import UsageError
from hushcount.formats.models import Part, text_of
from hushcount.items import MOST_ITEM_BYTES, canonical
from hushcount.numbers import begin_of
from hushcount.questions.counted import Group
from hushcount.strata import MOST_AXES

MOST_GROUPS = 1000
MOST_WILDCARDS = 8
GroupName = Annotated[
    str,
    text_of(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", "must be 1 to 64 of a-z, A-Z, 0-9, '.', '_' and '-', no sign first"),
]
_Pattern = Annotated[str, Field(min_length=1, max_length=MOST_ITEM_BYTES)]


class Choice(Part):
    """A group has exactly one of items, glob, prefix, at_least and file; in an open domain `items` or `file`."""

    items: tuple[str, ...] | None = Field(default=None, min_length=1, max_length=100_000, description="the items")
    glob: _Pattern | None = Field(
        default=None, description="items of the dictionary that match, with `*`, `?` and `[abc]`, as in `shop-*`"
    )
    prefix: _Pattern | None = Field(default=None, description="items of the dictionary with this beginning, as `fr/`")
    at_least: float | None = Field(
        default=None,
        ge=-1e21,
        le=1e21,
        description="bins of numbers from this edge on, as `500`: their share rises as high percentiles do",
    )
    file: str | None = Field(
        default=None, min_length=1, description="file of items, one a line or a .csv with the column item"
    )
    where: dict[Identifier, str] = Field(
        default_factory=dict,
        max_length=MOST_AXES,
        description='only reports with these coordinates, as in `{platform = "linux"}`, of campaigns with these axes',
    )

    @model_validator(mode="after")
    def _check(self) -> Choice:
        ways = ("items", "glob", "prefix", "at_least", "file")
        given = [name for name in ways if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"a group has {' and '.join(given) or 'nothing'}, must have one of {', '.join(ways)}")
        # Every wildcard may multiply the time to match an item by the item's length.
        if self.glob is not None and self.glob.count("*") > MOST_WILDCARDS:
            raise ValueError(f"glob has {self.glob.count('*')} wildcards '*', must have at most {MOST_WILDCARDS}")
        return self

    @property
    def pattern(self) -> str:
        """By what the items are chosen from a dictionary, and the text of it."""
        way = next(name for name in ("glob", "prefix", "at_least") if getattr(self, name) is not None)
        return f"{way} {getattr(self, way)!a}"


Choices = Annotated[dict[GroupName, Choice], Field(max_length=MOST_GROUPS)]
"""Groups by name, as `[analyzer.groups]` of a deployment file has them."""
CHOICES: TypeAdapter[dict[str, Choice]] = TypeAdapter(Choices)


def select(
    listed: Sequence[str] | None, choice: Choice, read: Mapping[str, Sequence[str]] | None = None
) -> tuple[str, ...]:
    """Return the items of a choice, distinct and canonical; a glob or prefix keeps the order of the dictionary.

    Named items keep their order, and need not be in the dictionary. A glob must match the whole item, and case matters.
    If no bin begins at `at_least`, there are no items.

    Args:
        listed: the items of the dictionary; None in an open domain.
        read: the items in each file, by the path that a choice names.

    Raises:
        UsageError: a choice from a dictionary in an open domain, or a file that was not read.
    """
    named = choice.items
    if choice.file is not None:
        if read is None or choice.file not in read:
            raise UsageError(f"file {choice.file!a} of a group was not read: name its items")
        named = tuple(read[choice.file])
    if named is not None:
        return tuple(dict.fromkeys(map(canonical, named)))
    if listed is None:
        raise UsageError(
            f"{choice.pattern} chooses from a dictionary, but this campaign has no dictionary: name items, or give a "
            "file"
        )
    if choice.at_least is not None:
        lower = {item: begin_of(item) for item in listed}
        chosen = tuple(item for item, begin in lower.items() if begin is not None and begin >= choice.at_least)
        return chosen if choice.at_least in lower.values() else ()
    if choice.glob is not None:
        matches = re.compile(translate(canonical(choice.glob))).match
        return tuple(item for item in listed if matches(item))
    start = canonical(choice.prefix or "")
    return tuple(item for item in listed if item.startswith(start))


MOST_DEPTH = 64


def by_prefix(items: Iterable[str], separator: str, depth: int, *, from_right: bool = False) -> tuple[Group, ...]:
    """Return a group for every node of the tree of items, down to `depth`; children follow their parent.

    A node's name is the text of its items up to a separator, or the whole text: `a/b/c` is in `a`, `a/b` and `a/b/c`.
    An item that is a node itself, such as `a/b` beside `a/b/c`, counts in the node of its own name. Separators are not
    merged, so `a//b` and `a/b` are two items, the first in the node `a/`. The empty text is never a node, so the top
    node of `/a` is `/a`.

    Args:
        items: distinct.
        separator: not empty; such as `/`, `.`, `::`.
        depth: levels, 1..64, and so the most nodes of an item. Deeper items count in their node of the last level.
        from_right: whether the last part of an item is its top node: `x.example.org` is in `org`, `example.org` and
            `x.example.org`.

    Raises:
        UsageError: a separator or depth out of range.
    """
    if not separator:
        raise UsageError("separator is empty, must be at least 1 character, such as /")
    if not 1 <= depth <= MOST_DEPTH:
        raise UsageError(f"depth is {depth}, must be in 1..{MOST_DEPTH} levels")
    nodes: dict[str, list[str]] = {}
    paths: dict[str, tuple[str, ...]] = {}
    for item in items:
        above: tuple[str, ...] = ()
        for name in _nodes(item, separator, depth, from_right):
            above = paths.setdefault(name, (*above, name))
            nodes.setdefault(name, []).append(item)
    return tuple(Group(name, tuple(nodes[name])) for name in sorted(nodes, key=paths.__getitem__))


def parent_of(name: str, separator: str, *, from_right: bool = False) -> str | None:
    """Return the name of the node above a node; None at the top."""
    above = list(_nodes(name, separator, len(name), from_right))[:-1]
    return above[-1] if above else None


def _nodes(item: str, separator: str, depth: int, from_right: bool) -> Iterator[str]:
    """Yield the nodes of an item, the top first."""
    found, place = 0, len(item) if from_right else 0
    while found < depth:
        place = item.rfind(separator, 0, place) if from_right else item.find(separator, place)
        name = item if place < 0 else item[place + len(separator) :] if from_right else item[:place]
        if name:
            yield name
            found += 1
        if place < 0:
            return
        place += 0 if from_right else len(separator)
