"""A choice says which items a group has: by name, glob, prefix or file, of a dictionary or of an open domain."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from hushcount.errors import UsageError
from hushcount.numbers import Bins
from hushcount.questions.selecting import CHOICES, Choice, select

LISTED = ("shop-b", "Shop-c", "news", "shop-a", "[x]", "caf\u00e9")


def test_choices(subtests: pytest.Subtests) -> None:
    cases = [
        ({"glob": "shop-*"}, ("shop-b", "shop-a")),
        ({"glob": "?hop-[bc]"}, ("shop-b", "Shop-c")),
        ({"glob": "[[]x]"}, ("[x]",)),
        # Of the whole item, and no path: a star passes everything.
        ({"glob": "hop"}, ()),
        ({"prefix": "shop-"}, ("shop-b", "shop-a")),
        ({"prefix": "[x"}, ("[x]",)),
        ({"prefix": "cafe\u0301"}, ("caf\u00e9",)),
        ({"glob": "*\u0301"}, ()),
        # Names come as they were given, once each.
        ({"items": ("news", "other", "cafe\u0301", "caf\u00e9")}, ("news", "other", "caf\u00e9")),
        ({"file": "list.txt"}, ("shop-a", "nobody")),
    ]
    for choice, items in cases:
        with subtests.test(choice=choice, items=items):
            assert select(LISTED, Choice(**choice), {"list.txt": ["shop-a", "nobody", "shop-a"]}) == items


def test_bins_from_an_edge_on() -> None:
    bins = Bins(("0", "100", "500.5"), "ms").names
    assert select(bins, Choice(at_least=100)) == ("100 to 500.5 ms", "500.5 ms or more")
    assert select(bins[::-1], Choice(at_least=500.5)) == ("500.5 ms or more",)
    assert select(Bins(("1", "2", "3")).names, Choice(at_least=2)) == ("2", "3 or more")
    # A limit within a bin would count reports on both sides of it.
    for number in (101.0, -1.0, 600.0):
        assert select((*bins, "dark-mode", "600-watt"), Choice(at_least=number)) == ()


def test_an_open_domain_has_named_items_only() -> None:
    assert select(None, Choice(items=("a",))) == ("a",)
    assert select(None, Choice(file="f"), {"f": ["b"]}) == ("b",)
    for choice in (Choice(glob="a*"), Choice(prefix="a"), Choice(at_least=0.0)):
        with pytest.raises(UsageError, match=r"('a\*?'|0.0) .*dictionary"):
            select(None, choice)
    with pytest.raises(UsageError, match="'f' of a group"):
        select(LISTED, Choice(file="f"))


def test_choices_that_are_none(subtests: pytest.Subtests) -> None:
    cases = [
        ({"a": {}}, "a group has nothing"),
        ({"a": {"glob": "x", "prefix": "y"}}, "glob and prefix"),
        ({"a": {"items": []}}, r"items\b.*\n.*at least 1 "),
        ({"a": {"at_least": float("nan")}}, "at_least"),
        ({"a": {"glob": "*a" * 9}}, "glob has 9 .* 8 "),
        ({"a/b": {"glob": "x"}}, "pattern"),
        ({"\n": {"glob": "x"}}, "pattern"),
        ({f"g{number}": {"glob": "x"} for number in range(1001)}, " 1000 items"),
    ]
    for groups, said in cases:
        with subtests.test(groups=groups, said=said), pytest.raises(ValidationError, match=said):
            CHOICES.validate_python(groups)
