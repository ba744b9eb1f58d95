"""deploy/compose/stores.yaml laid over compose.yaml, as docker compose reads both: what each party has and reaches."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipelines.deployment.settings import Deployment
from tests.deploy.conftest import compose_command
from tests.deploy.test_schedules import COMPOSE, INSIDE, JOBS, options

STEPS = {"volumes", "buckets"}
"""Services that end."""


@pytest.fixture(scope="module")
def merged() -> dict[str, Any]:
    return read("compose.yaml", "stores.yaml")


def read(*names: str) -> dict[str, Any]:
    files = [word for name in names for word in ("-f", str(COMPOSE / name))]
    command = [*compose_command(), *files, "config", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # reads files
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert isinstance(made, dict)
    return made


def owner(service: str) -> str:
    """Return the party whose service it is."""
    return "shuffler" if service == "collector" else service.removesuffix("-hand-on")


def test_every_container_is_restricted_and_says_whether_it_is_healthy(subtests: pytest.Subtests) -> None:
    for files in (
        ("compose.yaml",),
        ("compose.yaml", "stores.yaml"),
        ("evaluator.yaml",),
    ):
        with subtests.test(files=files):
            for name, service in read(*files)["services"].items():
                assert service["read_only"] is True, name
                assert service["cap_drop"] == ["ALL"], name
                assert service["security_opt"] == ["no-new-privileges:true"], name
                assert service["user"] == ("0:0" if name == "volumes" else "10001:10001"), name
                assert ("healthcheck" in service) == (name not in STEPS), name
                assert "mem_limit" in service or name == "volumes", name
                for after, condition in service.get("depends_on", {}).items():
                    assert (
                        condition["condition"] == f"service_{'completed_successfully' if after in STEPS else 'healthy'}"
                    ), name


def test_a_party_reaches_the_store_alone(merged: dict[str, Any]) -> None:
    networks = {name: set(service.get("networks") or ()) for name, service in merged["services"].items()}
    for party in JOBS:
        assert merged["networks"][party].items() >= INSIDE.items()
        inside = {name for name, found in networks.items() if party in found}
        own = {name for name in networks if owner(name) == party}
        assert inside == own | {"store"}
    assert networks["collector"] == {"front", "shuffler"}
    for name in ("shuffler", "shuffler-hand-on", "aux-server", "aux-server-hand-on", "analyzer"):
        assert networks[name] == {owner(name)}


def test_each_service_has_the_credentials_of_its_party_and_no_other(merged: dict[str, Any]) -> None:
    for name, service in merged["services"].items():
        secrets = {secret["source"] for secret in service.get("secrets", ())}
        if owner(name) in JOBS:
            assert secrets == {f"{owner(name)}-aws"}
        assert not [text for text in (service.get("environment") or {}).values() if len(text or "") > 60]


def test_with_and_without_stores_a_party_has_the_same_settings(subtests: pytest.Subtests) -> None:
    for party in JOBS:
        with subtests.test(party=party):
            with_stores, plain = (
                Deployment.read(path).file for path in (COMPOSE / "stores" / f"{party}.toml", COMPOSE / f"{party}.toml")
            )
            other = {"store", "paths", "engine"}
            assert with_stores.model_dump(exclude=other) == plain.model_dump(exclude=other)
            assert with_stores.store == f"s3://{party}"


def test_what_one_party_hands_on_is_where_the_next_one_reads(merged: dict[str, Any]) -> None:
    words = {party: merged["services"][f"{party}-hand-on"]["command"] for party in ("shuffler", "aux-server")}
    reads = {party: Deployment.read(COMPOSE / "stores" / f"{party}.toml").file.paths for party in JOBS}
    assert reads == {
        "shuffler": {},
        "aux-server": {
            "shuffled": "s3://to-aux-server/shuffled",
            "stated/shuffler": "s3://to-aux-server/stated/shuffler",
            "receipts/aux-server": "s3://aux-server-receipts/receipts/aux-server",
        },
        "analyzer": {
            "shuffled": "s3://to-analyzer/shuffled",
            "released": "s3://released-to-analyzer/released",
            "stated/shuffler": "s3://to-analyzer/stated/shuffler",
            "stated/aux-server": "s3://released-to-analyzer/stated/aux-server",
            "receipts/analyzer": "s3://analyzer-receipts/receipts/analyzer",
        },
    }
    assert {party: options(given, "--hand") for party, given in words.items()} == {
        "shuffler": {
            f"shuffled/discovery={reads['aux-server']['shuffled']}",
            f"shuffled/reports={reads['analyzer']['shuffled']}",
            "stated=s3://to-aux-server/stated",
            "stated=s3://to-analyzer/stated",
        },
        "aux-server": {f"released/bins={reads['analyzer']['released']}", "stated=s3://released-to-analyzer/stated"},
    }
    assert {party: options(given, "--fetch") for party, given in words.items()} == {
        "shuffler": {f"receipts/{party}={reads[party][f'receipts/{party}']}" for party in ("aux-server", "analyzer")},
        "aux-server": {f"receipts/analyzer={reads['analyzer']['receipts/analyzer']}"},
    }


def test_each_bucket_has_the_owner_that_writes_there_and_the_readers_that_need_it(merged: dict[str, Any]) -> None:
    (script,) = merged["services"]["buckets"]["command"]
    made = [line.split() for line in script.splitlines() if line.startswith("make ")]
    assert {name: (owner, *"".join(readers).split(",")) for _, name, owner, *readers in made} == {
        "shuffler": ("shuffler", ""),
        "aux-server": ("aux-server", ""),
        "analyzer": ("analyzer", ""),
        "to-aux-server": ("shuffler", "aux-server"),
        "to-analyzer": ("shuffler", "analyzer"),
        "released-to-analyzer": ("aux-server", "analyzer"),
        "aux-server-receipts": ("aux-server", "shuffler"),
        "analyzer-receipts": ("analyzer", "shuffler", "aux-server"),
    }


def test_secrets_are_made_once_and_for_their_owner_alone(tmp_path: Path, merged: dict[str, Any]) -> None:
    command = [sys.executable, str(COMPOSE / "stores" / "new_secrets.py")]
    subprocess.run(command, cwd=tmp_path, check=True)  # noqa: S603  # our own script
    made = {path.name: path for path in (tmp_path / "secrets").iterdir()}
    assert set(made) == {Path(secret["file"]).name for secret in merged["secrets"].values()}
    assert {stat.S_IMODE(os.stat(path).st_mode) for path in made.values()} == {0o600}
    before = {name: path.read_bytes() for name, path in made.items()}
    assert len({before[f"{party}.aws"].rpartition(b" = ")[2] for party in JOBS}) == len(JOBS)
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603
    assert again.returncode == 1
    assert "secrets exists" in again.stderr
    assert {name: path.read_bytes() for name, path in made.items()} == before


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
