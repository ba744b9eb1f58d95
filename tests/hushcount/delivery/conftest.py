from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hushcount.delivery.fake_collector import FakeCollector, collecting


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with collecting() as one:
        yield one
