"""The files of deploy/compose as docker compose reads them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pipelines.deployment.settings import Deployment
from tests.deploy.conftest import compose_command
from tests.deploy.test_schedules import COMPOSE


def read(*names: str) -> dict[str, Any]:
    files = [word for name in names for word in ("-f", str(COMPOSE / name))]
    command = [*compose_command(), *files, "config", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # reads files
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert isinstance(made, dict)
    return made


def test_every_container_is_restricted_and_says_whether_it_is_healthy(subtests: pytest.Subtests) -> None:
    for files in (
        ("compose.yaml",),
        ("evaluator.yaml",),
    ):
        with subtests.test(files=files):
            for name, service in read(*files)["services"].items():
                assert service["read_only"] is True, name
                assert service["cap_drop"] == ["ALL"], name
                assert service["security_opt"] == ["no-new-privileges:true"], name
                assert service["user"] == ("0:0" if name == "volumes" else "10001:10001"), name
                assert ("healthcheck" in service) == (name != "volumes"), name
                assert "mem_limit" in service or name == "volumes", name
                after = {other: one["condition"] for other, one in service.get("depends_on", {}).items()}
                assert after == ({} if name == "volumes" else {"volumes": "service_completed_successfully"}), name


def test_an_evaluator_alone_has_its_own_key_and_the_way_to_its_proxy() -> None:
    made = read("evaluator.yaml")
    services = made["services"]
    assert set(services) == {"volumes", "proxy", "evaluator"}
    assert set(services["evaluator"]["networks"]) == {"front"}
    assert made["networks"]["front"]["internal"] is True
    bound = {mount["target"]: mount for mount in services["evaluator"]["volumes"] if mount["type"] == "bind"}
    assert all(mount["read_only"] for mount in bound.values())
    part = Deployment.read(COMPOSE / "evaluator.toml").file.evaluator
    assert part is not None
    assert {part.keys, str(Path(str(part.verifier_token)).parent), "/campaigns"} < set(bound)
    assert services["proxy"]["environment"]["UPSTREAM"] == f"evaluator:{part.port}"
