"""The site of `make docs` in a real Chromium, opened from its files: the menu, nothing cut, two schemes, the search."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.browser.chromium import Chromium, Tab

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
GROUPS = list(runpy.run_path(str(ROOT / "docs" / "site.py"))["NAV"])
# What is wider than the window, unless it scrolls by itself, and the code that is cut although its lines go on below.
CUT = """() => {
  const wide = [...document.querySelectorAll(".md-main *")].filter((one) => one.checkVisibility()
    && one.getBoundingClientRect().right > innerWidth && !one.closest("pre, table, .md-sidebar"));
  const code = [...document.querySelectorAll("[class*=language-]:not(.language-text) code")];
  return [...wide, ...code.filter((one) => one.scrollWidth > one.clientWidth)].map((one) => one.outerHTML.slice(0, 99));
}"""


def opened(browser: Chromium, page: str = "index.html", **options: object) -> Tab:
    return browser.device((SITE / page).as_uri(), viewport={"width": 1280, "height": 900}, **options)


def test_the_menu_has_four_groups(browser: Chromium) -> None:
    tab = opened(browser)
    shown = tab.run("() => [...document.querySelectorAll('.md-tabs__link')].map((one) => one.textContent.trim())")
    assert shown == GROUPS
    assert len(GROUPS) == 4


def test_nothing_is_cut_in_a_window_of_1280_pixels_nor_on_a_phone(browser: Chromium) -> None:
    first = opened(browser, javaScriptEnabled=False)  # a third of the time: no page reads the index of the search
    for page in sorted(SITE.rglob("*.html")):
        tab = first.another(page.as_uri())
        for width in (1280, 390):
            tab.size(width)
            assert tab.run(CUT) == [], f"{page}, {width} pixels"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_site_has_the_scheme_of_its_reader(browser: Chromium, scheme: str) -> None:
    tab = opened(browser, colorScheme=scheme)
    background = tab.run("() => getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")


def test_the_search_finds_without_a_server(browser: Chromium) -> None:
    browser.requests()
    tab = opened(browser, "docs/operators.html")
    tab.click(".md-search__input")
    tab.type("minimum batch")
    # Each letter is a search of its own, so the results of fewer letters may be shown first.
    found = """async (wanted) => {
      for (const until = performance.now() + 20_000; performance.now() < until; ) {
        const links = [...document.querySelectorAll(".md-search-result__link")].map((one) => one.href);
        if (links.some((link) => link.startsWith(wanted) && link.endsWith("#minimum-batch"))) return links;
        await new Promise((done) => setTimeout(done, 20));
      }
      return [];
    }"""
    assert tab.run(found, (SITE / "docs" / "glossary.html").as_uri())
    assert [url for url in browser.requests() if not url.startswith("file:")] == []
