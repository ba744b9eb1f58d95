"""One collector that runs while the tests of a file talk to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.shuffler.collector.running import Running, Site, make_site, running


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return make_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def collector(site: Site) -> Iterator[Running]:
    with running(site) as started:
        yield started
