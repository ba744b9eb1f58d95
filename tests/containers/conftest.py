"""What tests on containers share: an engine and our images, or a skip that says why there are none."""

from __future__ import annotations

import os

import pytest

from tests.containers.build import build_all
from tests.containers.engine import NoEngineError
from tests.deploy.conftest import chain

__all__ = ["chain"]
# It removes the containers of a killed test, from an image of its own that may be out of reach; ours end by themselves.
os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")


@pytest.fixture(scope="session")
def images() -> dict[str, str]:
    """The parties' images by name, built if they are not, and the published ones or stand-ins of other services."""
    return _built("parties")


@pytest.fixture(scope="session")
def flink_images(images: dict[str, str]) -> dict[str, str]:
    """These, and what a Flink cluster needs."""
    return {**images, **_built("flink")}


@pytest.fixture(scope="session")
def dataflow_images() -> dict[str, str]:
    """Dataflow's image, and the one that it is made from."""
    return _built("dataflow")


def _built(group: str) -> dict[str, str]:
    try:
        return build_all(print, group)
    except NoEngineError as error:
        pytest.skip(f"{error}: the containers were NOT run")
