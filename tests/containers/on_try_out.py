"""deploy/README.md from nothing to a first answer: its commands in one shell, in a copy of what the recipe reads."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.containers.deployment import DEPLOY, ROOT, documented, machine
from tests.containers.site import Site
from tests.support.ports import free_port
from tests.support.statistics import deviations

PEOPLE = 20_000
MINIMUM = 20
"""Fewer reports wait for a later window."""
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
    """What is printed as the truth is compared with the answer: wrong by chance with probability 1e-6."""
    site, printed = tried
    items = (site.directory / "settings.txt").read_text().split()
    found = dict(re.findall(r"^ *(\S+) +([\d,]+) *$", printed.partition("true counts")[2], re.MULTILINE))
    truth = {item: int(found[item].replace(",", "")) for item in items}
    assert PEOPLE / 2 < sum(truth.values()) <= PEOPLE
    # Up to 19 reports of another window wait for others.
    site.wait_until(lambda: site.numbers("analyzer")["analyze", "reports"] > PEOPLE - MINIMUM, "all counts", 300)
    rows = ask(site, "item", *(word for item in items for word in ("--item", item)))
    for item, count in truth.items():
        own = [row for row in rows if row["item"] == item]
        error = math.sqrt(sum(row["standard_error"] ** 2 + row["collision_error"] ** 2 for row in own))
        assert abs(sum(row["count"] for row in own) - count) < deviations(len(items)) * error + MINIMUM, item
    assert {row["item"] for row in ask(site, "top") if row["detected"]} >= {max(truth, key=truth.__getitem__)}
    assert {row["item"] for row in ask(site, "new")} == {f"unlisted-{rank}" for rank in range(1, 6)}


def ask(site: Site, question: str, *options: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(site.hushcount("analyzer", "ask", question, *options, "--json").stdout)[
        "rows"
    ]
    return rows


def test_a_second_call_in_one_directory_changes_nothing(tmp_path: Path) -> None:
    shutil.copy(DEPLOY / "compose" / "try-out.sh", tmp_path)
    (tmp_path / "campaign.json").write_text("{}")
    ran = subprocess.run(  # noqa: S603  # our own script
        [tmp_path / "try-out.sh"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "campaign.json" in ran.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["campaign.json", "try-out.sh"]
