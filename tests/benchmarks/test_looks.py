"""The benchmark of looks makes what a run would have left, and starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks import looks
from benchmarks.moto_store import moto, requests
from pipelines.deployment.settings import Deployment


def test_a_look_at_copies_finds_nothing_wrong_on_a_disk_and_in_a_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    looks.make(tmp_path, 2, 3)
    deployment = Deployment.read(tmp_path / "copies" / "deployment.toml")
    looks.measure("disk", "run", deployment, dict(os.environ))
    with moto(tmp_path / "copies" / "store") as (address, environment):
        looks.measure("moto", "status", looks.in_store(deployment), environment, address)
        assert requests(address).total() == 0
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == ["disk", "moto"]
