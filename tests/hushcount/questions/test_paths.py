"""Roll-ups of items that are paths: which items a node holds, whatever strangers call them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcount.errors import UsageError
from hushcount.questions.selecting import by_prefix, parent_of


def tree(items: list[str], separator: str = "/", depth: int = 9, *, from_right: bool = False) -> dict[str, list[str]]:
    return {group.name: list(group.items) for group in by_prefix(items, separator, depth, from_right=from_right)}


def test_paths_are_summed_at_each_level() -> None:
    items = ["a/b/c", "a/b", "b", "a/bc", "ab"]
    assert tree(items) == {
        "a": ["a/b/c", "a/b", "a/bc"],
        "a/b": ["a/b/c", "a/b"],
        "a/b/c": ["a/b/c"],
        "a/bc": ["a/bc"],
        "ab": ["ab"],
        "b": ["b"],
    }
    assert list(tree(items)) == ["a", "a/b", "a/b/c", "a/bc", "ab", "b"]
    assert tree(items, depth=1) == {"a": ["a/b/c", "a/b", "a/bc"], "b": ["b"], "ab": ["ab"]}


def test_children_follow_their_parent() -> None:
    # "!" sorts before "/": by names alone, a!b would come between a and its child.
    assert list(tree(["a!b", "a/b", "a"])) == ["a", "a/b", "a!b"]


def test_domains_are_read_from_the_right() -> None:
    items = ["x.example.org", "example.org", "y.org", "org.", "1.com"]
    assert tree(items, ".", from_right=True) == {
        "org": ["x.example.org", "example.org", "y.org"],
        "example.org": ["x.example.org", "example.org"],
        "x.example.org": ["x.example.org"],
        "y.org": ["y.org"],
        "org.": ["org."],
        "com": ["1.com"],
        "1.com": ["1.com"],
    }
    assert parent_of("x.example.org", ".", from_right=True) == "example.org"
    assert parent_of("org", ".", from_right=True) is None


def test_empty_parts_are_parts() -> None:
    assert tree(["/a/b", "/a", "a//b", "a/b", "/", "//", "a::b"]) == {
        "/": ["/", "//"],
        "//": ["//"],
        "/a": ["/a/b", "/a"],
        "/a/b": ["/a/b"],
        "a": ["a//b", "a/b"],
        "a/": ["a//b"],
        "a//b": ["a//b"],
        "a/b": ["a/b"],
        "a::b": ["a::b"],
    }


NAMES = st.text(alphabet="ab/.", min_size=1, max_size=12)


@settings(max_examples=50)
@given(
    st.lists(NAMES, unique=True, max_size=12),
    st.sampled_from(["/", ".", "//", "ab", "./", "aba"]),
    st.integers(1, 5),
    st.booleans(),
)
def test_every_item_is_in_its_nodes_and_in_no_other(
    items: list[str], separator: str, depth: int, from_right: bool
) -> None:
    nodes = tree(items, separator, depth, from_right=from_right)
    for name, inside in nodes.items():
        # Where a separator overlaps itself, as in "///", the one nearer to the top counts.
        if separator not in ("//", "aba"):
            assert inside == [item for item in items if _under(item, name, separator, from_right)]
        above = parent_of(name, separator, from_right=from_right)
        # Drill-down loses nothing, and finds no node without its parent.
        assert above is None or set(inside) <= set(nodes[above])
    for item in items:
        assert 1 <= sum(item in inside for inside in nodes.values()) <= depth


def _under(item: str, name: str, separator: str, from_right: bool) -> bool:
    if item == name:
        return True
    return item.endswith(separator + name) if from_right else item.startswith(name + separator)


def test_long_hostile_items_have_a_bounded_number_of_nodes() -> None:
    assert len(by_prefix(["/" * 4096], "/", 64)) == 64


def test_what_is_out_of_range_is_one_sentence(subtests: pytest.Subtests) -> None:
    for separator, depth, said in (
        ("", 1, "separator is empty"),
        ("/", 0, r"depth is 0,.*64"),
        ("/", 65, r"depth is 65,.*64"),
    ):
        with subtests.test(separator=separator, depth=depth), pytest.raises(UsageError, match=said):
            by_prefix(["a"], separator, depth)
