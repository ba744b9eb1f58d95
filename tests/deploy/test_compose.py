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
        ("issuer.yaml",),
        ("aux-server.yaml",),
        ("compose.yaml", "without-aux-server.yaml"),
        ("compose.yaml", "try-out.yaml"),
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


@pytest.mark.parametrize("party", ["evaluator", "issuer"])
def test_a_server_alone_has_its_own_key_and_the_way_to_its_proxy(party: str) -> None:
    made = read(f"{party}.yaml")
    services = made["services"]
    assert set(services) == {"volumes", "proxy", party}
    assert set(services[party]["networks"]) == {"front"}
    assert made["networks"]["front"]["internal"] is True
    bound = {mount["target"]: mount for mount in services[party]["volumes"] if mount["type"] == "bind"}
    assert all(mount["read_only"] for mount in bound.values())
    part = getattr(Deployment.read(COMPOSE / f"{party}.toml").file, party)
    secrets = {part.keys, str(Path(part.verifier_token if party == "evaluator" else part.secret).parent)}
    assert secrets | ({"/campaigns"} if party == "evaluator" else set()) < set(bound)
    assert services["proxy"]["environment"]["UPSTREAM"] == f"{party}:{part.port}"


def test_an_auxiliary_server_alone_keeps_its_keys_in_volumes_and_starts_nothing_else() -> None:
    services = read("aux-server.yaml")["services"]
    assert set(services) == {"volumes", "aux-server", "aux-server-hand-on"}
    keys = ("keys", "signing-keys", "campaigns")
    mounted = {name: {one["source"] for one in service["volumes"]} & set(keys) for name, service in services.items()}
    assert mounted == {"volumes": set(keys), "aux-server": set(keys), "aux-server-hand-on": set()}
    by_target = {one["target"]: one for one in services["aux-server"]["volumes"]}
    for name in keys:
        assert (by_target[f"/{name}"]["source"], by_target[f"/{name}"]["read_only"]) == (name, True)
    assert {service.get("network_mode") for service in services.values()} == {"none"}


def test_what_two_organisations_exchange_has_the_same_folders_at_both() -> None:
    folders = [
        {name: one["driver_opts"]["device"] for name, one in read(*files)["volumes"].items() if "driver_opts" in one}
        for files in (("aux-server.yaml",), ("compose.yaml", "without-aux-server.yaml"))
    ]
    at = COMPOSE / "exchange"
    assert (
        folders[0]
        == folders[1]
        == {
            "to-aux-server": f"{at}/to-aux-server/outputs",
            "analyzer-receipts": f"{at}/to-aux-server/receipts",
            "released-to-analyzer": f"{at}/from-aux-server/outputs",
            "aux-server-receipts": f"{at}/from-aux-server/receipts",
        }
    )
    assert not [name for name in read("compose.yaml", "without-aux-server.yaml")["services"] if "aux" in name]


def test_each_image_is_built_by_one_service_from_the_recipe_of_the_parties() -> None:
    for files, targets in (
        (("compose.yaml",), {"shuffler", "shuffler-signing", "aux-server", "analyzer"}),
        (("evaluator.yaml",), {"evaluator"}),
        (("issuer.yaml",), {"issuer"}),
        (("aux-server.yaml",), {"aux-server"}),
    ):
        services = [
            service for service in read(*files)["services"].values() if not service["image"].startswith("caddy:")
        ]
        built = [service for service in services if "build" in service]
        assert {one["image"] for one in built} == {one["image"] for one in services}
        assert {one["build"]["target"] for one in built} == targets
        for one in built:
            assert one["image"].startswith(f"hushcount-{one['build']['target']}:")
            assert one["build"]["dockerfile"] == "deploy/images/party.Dockerfile"
            # The recipe's own, published bases, unless somebody names others.
            assert {name for name, value in one["build"].get("args", {}).items() if value} == set()
