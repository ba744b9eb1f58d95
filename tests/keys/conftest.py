"""The key services that tests of keys ask: see tests/support/fake_kms.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.fake_kms import FakeServices, fake_services, moto_kms


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    with moto_kms() as url:
        yield url


@pytest.fixture
def fake(moto: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeServices]:
    """The services, and credentials for them in the environment."""
    with fake_services(tmp_path_factory.mktemp("credentials"), moto) as services:
        yield services
