"""Sites that tests of the audit share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.collecting import collect
from tests.support.site import Site, values


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(tmp_path_factory.mktemp("whole"))
    collect(site.store, site.campaign, values(200), day=0)
    site.run(1.1)
    return site


@pytest.fixture
def site(whole: Site, tmp_path: Path) -> Site:
    """A site of its own after a window of 200 reports."""
    return whole.copied(tmp_path / "site")
