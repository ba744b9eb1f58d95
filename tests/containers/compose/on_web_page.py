"""People report from a page in a real browser, through the proxy, to the collector in its container."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter

import pytest

from examples.web.pages import Pages
from tests.browser.chromium import EXECUTABLE, chromium
from tests.browser.deployment import BUILT, HERE
from tests.containers.compose.conftest import say
from tests.containers.compose.on_compose import settle
from tests.containers.deployment import ITEMS, ROOT, Site

PEOPLE = 400


@pytest.fixture(scope="module")
def page() -> Pages:
    if not (EXECUTABLE.exists() and shutil.which("npm")):
        pytest.skip("chromium or npm is missing: NO page reported to a container")
    subprocess.run(["make", "build/web/index.js"], cwd=ROOT, check=True)  # noqa: S607
    return Pages([HERE, BUILT])


def name_origin(site: Site, origin: str) -> None:
    """Do what the documentation says: name the page's origin in the collector's settings, and start it again."""
    settings = site.directory / "shuffler.toml"
    text = settings.read_text()
    assert text.count("[collector]\n") == 1
    # Written in place: a container has mounted this very file.
    settings.write_text(text.replace("[collector]\n", f'[collector]\norigins = ["{origin}"]\n'))
    site.docker_compose("restart", "collector")
    site.up()


def test_a_page_reports_if_its_origin_is_named_and_not_before(site: Site, page: Pages) -> None:
    page.collector = f"https://localhost:{site.port}"
    policy = json.loads((site.directory / "policy.json").read_text())

    def crowd(values: list[str]) -> dict[str, object]:
        return {"site": page.collector, "policy": policy, "values": values, "atOnce": 20}

    with page.serving(), chromium() as browser:
        # Other clients of this deployment trust its authority by its certificate; a browser would have to import it.
        tab = browser.device(page.origin, ignoreHTTPSErrors=True)
        said = tab.run("(one) => people.crowd(one).then(() => 'reported', String)", crowd(ITEMS[:1]))
        assert "the collector refuses this origin" in said
        name_origin(site, page.origin)
        done = tab.run("people.crowd", crowd(ITEMS * (PEOPLE // len(ITEMS))))
        assert browser.faults() == []
    streams = len(site.acknowledged)
    assert done == {"sent": streams * PEOPLE, "tokens": PEOPLE} | dict.fromkeys(
        ("waiting", "dropped", "answered", "blank"), 0
    )
    say(f"{PEOPLE} people reported from a page in Chromium: {done['sent']} reports were acknowledged")
    for stream in site.acknowledged:
        site.acknowledged[stream] += PEOPLE
    settle(site, Counter())
    assert site.received() == site.acknowledged
    assert all(not hop["rejected"] for hop in site.status("analyzer")["hops"])
