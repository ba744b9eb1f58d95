"""Addresses: all spellings of one address are one text, what may be a secret is left out, and nothing is an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hushcount.campaigns.parts import MOST_SUFFIXES, UrlPart
from hushcount.errors import FormatError
from hushcount.formats.reading import validated
from hushcount.items import fault_of_item
from hushcount.urls import ID, OTHER, Suffixes, address_of, is_id, item_of_url

WPT: list[Any] = json.loads(Path(__file__).with_name("wpt_urltestdata.json").read_text(encoding="utf-8"))
"""The web platform's tests of URLs: web-platform-tests, url/resources/urltestdata.json; revised BSD licence."""
RULES = Suffixes(frozenset(("*.ck", "!www.ck", "com", "co.uk", "github.io", "io", "uk")))
SPELLINGS = (
    "https://www.example.com/news/today", "http://www.example.com/news/today",
    "HTTPS://WWW.Example.Com:443/news/today/",
    "https://www.example.com./news//today?from=me#top", "https://www.example.com/x/../news/%74oday",
    "https:\\\\www.example.com\\news\\today;jsessionid=1", " https://www.example\uff0ecom/news/./today\n",
)  # fmt: skip
_BITS = st.sampled_from(
    ["/", "..", ".", "%2e", "%2F", "%40", "%25", ";", "?", "#", "@", ":", "\\", "%", "\t", "a", "B", "\u00e9", "\u05d0",
     "1234",
     "co.uk", "example", "deadbeefdeadbeef",
     "%ff", "\ud800", "\u0378", "xn--", ":id", "~", "https://", "A1"]
)  # fmt: skip
URLS = st.one_of(st.text(), st.lists(_BITS, max_size=12).map(lambda bits: "https://www.example.com/" + "".join(bits)))


def test_all_spellings_of_one_address_are_one_text() -> None:
    assert {item_of_url(url, 8, None) for url in SPELLINGS} == {"www.example.com/news/today"}
    assert {item_of_url(url, None, RULES) for url in SPELLINGS} == {"example.com"}


@settings(max_examples=400, deadline=None)
@given(URLS, st.one_of(st.none(), st.integers(1, 8)), st.sampled_from([16, 24, 64, 4096]), st.booleans())
@example("https://a.b/..;", 1, 64, False)
def test_the_text_of_an_address_is_an_item_that_fits_and_stands_for_itself(
    url: str, segments: int | None, most: int, is_site: bool
) -> None:
    suffixes = RULES if is_site and segments is None else None
    item = item_of_url(url, segments, suffixes, most)
    if item != OTHER:
        assert len(item) <= most
        assert fault_of_item(item) is None
        assert item_of_url(f"https://{item}", segments, suffixes, most) == item


SECRET = st.text("abcdefgh", min_size=4)


@settings(max_examples=200, deadline=None)
@given(SECRET)
def test_query_fragment_parameters_and_user_info_are_told_of_no_address(secret: str) -> None:
    hidden = f"zz{secret}zz"
    for url in (
        f"https://a.b/c?{hidden}", f"https://a.b/c#{hidden}", f"https://a.b/c;{hidden}/d", f"https://a.b/c%3b{hidden}",
        f"https://a.b/c={hidden}", f"https://a.b/c%3d{hidden}",
        f"https://{hidden}@a.b/c", f"https://a.b/{hidden}@c", f"https://a.b/{hidden}%40c", f"https://a.b/{hidden}%2540c",
    ):  # fmt: skip
        assert hidden not in item_of_url(url, 8, None)


def test_hosts_of_the_web_platforms_tests_are_theirs_or_other() -> None:
    cases = [one for one in WPT if isinstance(one, dict) and one["base"] is None]
    web = [one for one in cases if one["input"].strip().lower().startswith(("http:", "https:"))]
    told = {one["input"]: found for one in web if (found := address_of(one["input"])) is not None}
    assert len(web) > 200
    assert len(told) > 60
    for one in web:
        found = told.get(one["input"])
        # A label in Punycode is taken as it is.
        if found is not None and "xn--pokxncvks" not in found.host:
            assert not one.get("failure"), one["input"]
            assert one["hostname"].rstrip(".") == found.host
    others = [one for one in cases if one.get("protocol") not in (None, "http:", "https:")]
    assert len(others) > 100
    assert all(address_of(one["input"]) is None for one in others)


@pytest.mark.parametrize(
    ("segment", "is_one"),
    [
        ("news", False), ("2026-11", False), ("2026-11-29", True), ("top-10-things-to-do-before-lunch", False),
        ("me@x", True),
        ("550e8400-e29b-41d4-a716-446655440000", True), ("dGhpcyBpcyBhIHNlY3JldA==", True),
        ("4f2a9c", False),
        ("nC8QJJoZ", True),
        ("a1b2c3d4", True),
        ("a1b2c3d", False), ("z" * 40, False),
        ("v1.2.3", False), ("eyJhbGciOiJIUzI1NiJ9.e30", True), ("%41", True), ("\u0967" * 8, True), ("\u0378", True),
    ],
)  # fmt: skip
def test_what_looks_like_an_id(segment: str, is_one: bool) -> None:
    assert is_id(segment) is is_one
    assert item_of_url(f"https://a.b/{segment.replace('%', '%25')}", 1, None) == f"a.b/{ID if is_one else segment}"


def test_a_list_of_too_many_suffixes_is_refused() -> None:
    rules = [f"{number:05}" for number in range(MOST_SUFFIXES + 1)]
    with pytest.raises(FormatError, match="suffixes"):
        validated(UrlPart, {"take": "site", "suffixes": rules}, "it")
    assert len(UrlPart(take="site", suffixes=tuple(rules[1:])).suffixes or ()) == MOST_SUFFIXES
