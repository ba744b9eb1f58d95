"""A store that run filled: a window with two epochs, late reports, an open domain, and counts of discovered values."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.collecting import collect
from tests.support.jobs import write_lines
from tests.support.site import Site

HALF = 200


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Return the site; nobody writes to it."""
    site = Site(tmp_path_factory.mktemp("exports"))
    first = site.campaign
    collect(site.store, first, ["alpha"] * HALF + ["beta"] * 60, day=0)
    listed = write_lines(site.root / "listed.txt", ["dark-mode", "=1+1", "nobody's"])
    # It shares cells, and its clients repeat their answers.
    pool = ("--set", "k=32", "--set", "m=64")
    path = _more(site, "settings", "--memory", *pool, mechanism="gcms", dictionary=listed)
    collect(site.store, path, ["new"] * HALF + ["dark-mode"] * HALF, day=0)
    collect(site.store, _more(site, "open", *pool, mechanism="gcms"), ["new"] * HALF, day=0)
    site.run(1.1)
    # What comes late counts in the next window, under the campaign file that it was made for.
    collect(site.store, first, ["alpha"] * 70, day=0, collector="two")
    collect(site.store, site.publish(2), ["alpha"] * 2 * HALF, day=1)
    site.run(2.1)
    return site


def _more(site: Site, name: str, *options: object, **more: object) -> Path:
    return site.add(name, *options, "--discovery-counts", epsilon=4.0, discovery=1.0, **more)
