"""A choice says which items a group has: by name, glob, prefix or file, of a dictionary or of an open domain."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from hushcount.errors import UsageError
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


def test_an_open_domain_has_named_items_only() -> None:
    assert select(None, Choice(items=("a",))) == ("a",)
    assert select(None, Choice(file="f"), {"f": ["b"]}) == ("b",)
    for choice in (Choice(glob="a*"), Choice(prefix="a")):
        with pytest.raises(UsageError, match=r"'a\*?' .*dictionary"):
            select(None, choice)
    with pytest.raises(UsageError, match="'f' of a group"):
        select(LISTED, Choice(file="f"))


def test_choices_that_are_none(subtests: pytest.Subtests) -> None:
    cases = [
        ({"a": {}}, "a group has nothing"),
        ({"a": {"glob": "x", "prefix": "y"}}, "glob and prefix"),
        ({"a": {"items": []}}, r"items\b.*\n.*at least 1 "),
        ({"a": {"glob": "*a" * 9}}, "glob has 9 .* 8 "),
        ({"a/b": {"glob": "x"}}, "pattern"),
        ({"\n": {"glob": "x"}}, "pattern"),
        ({f"g{number}": {"glob": "x"} for number in range(1001)}, " 1000 items"),
    ]
    for groups, said in cases:
        with subtests.test(groups=groups, said=said), pytest.raises(ValidationError, match=said):
            CHOICES.validate_python(groups)
