"""deploy/README.md from nothing to a first answer: its commands in one shell, in a copy of what the recipe reads."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.containers.deployment import DEPLOY, ROOT, documented, free_port, machine
from tests.containers.site import Site

MINUTES = 10
"""The heading's promise, with images that are cached."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a checkout has that the images are made from, and deploy/."""
    lines = (DEPLOY / "images" / "party.Dockerfile.dockerignore").read_text().splitlines()
    names = {line[1:].partition("/")[0] for line in lines if line.startswith("!")}
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tmp_path)
    return tmp_path


@pytest.fixture
def tried(checkout: Path, images: Mapping[str, str]) -> Iterator[tuple[Site, str]]:
    """The deployment of the page's commands, and all that they printed."""
    project, port = f"hushcount-try-{os.getpid()}", free_port()
    variables = machine(project, port, images)
    # The copy lies in the checkout.
    del variables["CHECKOUT"]
    site = Site(checkout / "try", project, port, ("compose.yaml", "try-out.yaml"))
    began = time.monotonic()
    try:
        ran = subprocess.run(  # noqa: S603  # the page's own lines
            ["sh", "-ec", documented("./try-out.sh")],  # noqa: S607
            cwd=checkout, env={**os.environ, **variables}, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL, timeout=60 * MINUTES,
        )  # fmt: skip
        sys.stdout.write(f"{ran.stdout}\n{time.monotonic() - began:.0f} s\n")
        # The page's variables were those of its shell: later commands need them too.
        with (site.directory / ".env").open("a") as settings:
            settings.writelines(f"{name}={value}\n" for name, value in variables.items())
        assert ran.returncode == 0, f"{ran.stderr}\n{site.logs()}"
        yield site, ran.stdout
    finally:
        site.down(volumes=True)


def test_the_first_answer_comes_by_the_documented_commands_alone(tried: tuple[Site, str]) -> None:
    site, printed = tried
    answer = json.loads(site.hushcount("analyzer", "ask", "top", "--json").stdout)
    listed = (site.directory / "settings.txt").read_text().split()
    assert {row["item"] for row in answer["rows"]} <= set(listed)
    assert [row for row in answer["rows"] if row["detected"]]
    assert printed
