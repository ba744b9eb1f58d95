"""One store with two platforms as campaigns of their own, whose truth is known; nobody writes to it."""

from __future__ import annotations

import pytest

from tests.support.collecting import collect
from tests.support.jobs import values_of, write_lines
from tests.support.site import Site

ITEMS = ("editor/theme/dark", "editor/theme/light", "editor/font", "shop", "shop/cart", "help")
ELSE = "in no dictionary"
GROUPS = """
[analyzer.groups]
themes = { prefix = "editor/theme/" }
reading = { items = ["help", "editor/font"] }
"""
USUAL = {"editor/theme/dark": 60, "editor/theme/light": 50, "editor/font": 30, "shop": 40, "shop/cart": 20}
IOS = (
    {**USUAL, ELSE: 400},
    {**USUAL, ELSE: 400},
    # Planted: dark rises by what was in no dictionary, and nothing else changes.
    {**USUAL, "editor/theme/dark": 260, ELSE: 200},
)
"""True counts of each day."""
ANDROID = {**USUAL, "shop": 240, ELSE: 200}
"""True counts of the last day; its dictionary has no "help"."""
SAMPLED = {**USUAL, ELSE: 400}
"""True counts of the last two days of a campaign with a sample of 5 %."""


@pytest.fixture(scope="session")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(tmp_path_factory.mktemp("asked"), tail=GROUPS)
    ios, android = (
        site.add(name, dictionary=write_lines(site.root / f"{name}.txt", items), epsilon=4.0)
        for name, items in (("ios", ITEMS), ("android", ITEMS[:-1]))
    )
    for day, truth in enumerate(IOS):
        collect(site.store, ios, values_of(truth), day=day)
    collect(site.store, android, values_of(ANDROID), day=len(IOS) - 1)
    web = site.add("web", "--sample", "5%", dictionary=write_lines(site.root / "web.txt", ITEMS), epsilon=4.0)
    for day in range(len(IOS) - 2, len(IOS)):
        collect(site.store, web, values_of(SAMPLED), day=day)
    assert site.run(len(IOS) + 0.1).problems == []
    return site
