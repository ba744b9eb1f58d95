"""One deployment, of which all is shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.containers.deployment import Site, lay_out

WINDOW = 20
"""Seconds of a window."""
LAID_OUT: dict[str, Any] = {"length": f"{WINDOW}s", "grace": "30m", "campaign": ("--min-batch", "100")}
"""Few reports then wait for others at the end of a wave."""


def say(text: str) -> None:
    sys.stdout.write(f"{text.rstrip()}\n")


@pytest.fixture(scope="package")
def site(images: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("compose") / "site"
    made = lay_out(directory, f"hushcount-{os.getpid()}", images=images, **LAID_OUT)
    with made.running():
        say("$ docker compose up --detach --wait; docker compose ps")
        say(made.docker_compose("ps", "--format", "table {{.Service}}\t{{.Status}}").stdout)
        yield made
