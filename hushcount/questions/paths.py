"""Items that are paths: a group for each node of their tree, so that they can be summed at every level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hushcount.errors import UsageError
from hushcount.questions.counted import Group

MOST_DEPTH = 64


def by_prefix(items: Iterable[str], separator: str, depth: int, *, from_right: bool = False) -> tuple[Group, ...]:
    """Return a group for every node of the tree of items, down to `depth`; children follow their parent.

    A node's name is the text of its items up to a separator, or all of it: `a/b/c` is in `a`, `a/b` and `a/b/c`. An
    item that is a node itself, such as `a/b` beside `a/b/c`, counts in that node. Nothing is tidied: `a//b` and `a/b`
    are two items, and the first lies in the node `a/`. Only the empty text is no node: `/a` begins with `/a`.

    Args:
        items: distinct.
        separator: not empty; such as `/`, `.`, `::`.
        depth: levels, 1..64: an item has at most so many nodes. Deeper items count in their node of that level.
        from_right: the last part is the top: `x.example.org` is in `org`, `example.org` and `x.example.org`.

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
