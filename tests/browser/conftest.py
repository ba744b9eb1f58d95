"""One browser for all tests; each test has a deployment of its own, and devices of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.chromium import Chromium, chromium


@pytest.fixture(scope="session")
def _running() -> Iterator[Chromium]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def browser(_running: Chromium) -> Iterator[Chromium]:
    """The browser; at the end nothing may have gone wrong in a page, nor broken its content security policy."""
    yield _running
    _running.close()
    assert _running.faults() == []
