"""deploy/kubernetes: what each pod may use and how it is watched, and how services are asked whether they can serve."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushcount.formats.reading import parse_toml
from pipelines.deployment.settings import Deployment
from service.application import PATHS
from tests.deploy.conftest import DEPLOY
from tests.deploy.manifests import EVERYONE, Resource, containers, pods, resources

PROBES = {"startupProbe", "readinessProbe", "livenessProbe"}
HTTP = {"reports": ("/readyz", "/healthz"), "evaluations": ("/readyz", "/healthz"), 8081: ("/config", "/config")}
"""What is asked at the ports that speak HTTP: whether it is ready, and whether it lives. 8081 is the JobManager's."""
TCP = {"jobs", "pool", 6122}
"""Ports that speak something else: Beam's two, and the TaskManager's."""


def runs_on(template: Resource) -> bool:
    """Return whether a pod runs until somebody stops it."""
    return template["spec"].get("restartPolicy", "Always") == "Always"


def test_every_container_asks_for_what_it_needs_and_gets_no_more(subtests: pytest.Subtests) -> None:
    for party in EVERYONE:
        with subtests.test(party=party):
            for name, template in pods(party):
                for container in containers(template):
                    # Flink's operator gives its own container what jobManager.resource and taskManager.resource say.
                    if container["name"] != "flink-main-container":
                        assert {"memory", "cpu"} <= set(container["resources"]["limits"]), name
                        assert {"memory", "cpu"} <= set(container["resources"]["requests"]), name
                # A full disk of a node ends its pods.
                assert all(
                    "sizeLimit" in volume.get("emptyDir", {"sizeLimit": None}) for volume in template["spec"]["volumes"]
                )
            for flink in resources(party, "FlinkDeployment"):
                assert all(
                    {"memory", "cpu"} <= set(flink["spec"][one]["resource"]) for one in ("jobManager", "taskManager")
                )


def test_every_container_that_runs_on_is_watched(subtests: pytest.Subtests) -> None:
    for party in EVERYONE:
        with subtests.test(party=party):
            seen = set()
            for name, template in pods(party):
                for container in template["spec"]["containers"]:
                    assert set(container) & PROBES == (PROBES if runs_on(template) else set()), (
                        name,
                        container["name"],
                    )
                    named = {port["name"] for port in container.get("ports", ())}
                    for probe in set(container) & PROBES:
                        ((kind, asked),) = [
                            item for item in container[probe].items() if item[0] in ("httpGet", "tcpSocket")
                        ]
                        assert asked["port"] in named or isinstance(asked["port"], int), (name, probe)
                        if asked["port"] in TCP:
                            assert kind == "tcpSocket"
                        else:
                            assert asked["path"] == HTTP[asked["port"]][probe != "readinessProbe"], (name, probe)
                        seen.add(asked["port"])
            jobs = {8081, *TCP}
            assert seen == {"shuffler": {"reports", *jobs}, "evaluator": {"evaluations"}}.get(party, jobs)
            assert {path for port in ("reports", "evaluations") for path in HTTP[port]} <= set(PATHS)


def test_what_does_not_run_on_ends_at_a_deadline(subtests: pytest.Subtests) -> None:
    for party in EVERYONE:
        with subtests.test(party=party):
            for one in resources(party, "CronJob"):
                assert one["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"] > 0
                assert not runs_on(one["spec"]["jobTemplate"]["spec"]["template"])


def test_every_service_of_every_deployment_file_tells_clients_apart() -> None:
    """They say so, so that nobody who edits the file takes the cap away unawares."""
    seen = set()
    for path in DEPLOY.rglob("*.toml"):
        for name, table in parse_toml(path.read_bytes(), str(path)).items():
            if name in ("collector", "evaluator"):
                assert table["authentication"] == "client-token", path
                seen.add((path.parent.name, name))
    assert seen >= {("shuffler", "collector"), ("compose", "collector"), ("evaluator", "evaluator")}


def test_the_evaluator_reads_what_is_mounted_and_copies_its_keys_into_memory(tmp_path: Path) -> None:
    (found,) = resources("evaluator", "ConfigMap")
    (tmp_path / "deployment.toml").write_text(found["data"]["deployment.toml"])
    deployment = Deployment.read(tmp_path / "deployment.toml")
    settings = deployment.file.evaluator
    assert settings is not None
    (template,) = [template for name, template in pods("evaluator") if name == "evaluator"]
    (copies,), (serves,) = template["spec"]["initContainers"], template["spec"]["containers"]
    volumes = {volume["name"]: volume for volume in template["spec"]["volumes"]}
    mounted = {mount["mountPath"]: mount for mount in serves["volumeMounts"]}
    assert mounted[str(deployment.campaigns)]["name"] == "campaigns"
    assert not mounted[settings.counts].get("readOnly")
    folder = mounted[str(Path(settings.keys).parent)]
    assert volumes[folder["name"]]["emptyDir"]["medium"] == "Memory"
    assert folder["readOnly"]
    assert settings.verifier_token == f"{settings.keys}/verifier"
    # Only what copies them has the Secret, and it makes files that only their owner reads.
    secrets = {name for name, volume in volumes.items() if "secret" in volume}
    assert secrets == {mount["name"] for mount in copies["volumeMounts"]} - {folder["name"]}
    assert not secrets & {mount["name"] for mount in serves["volumeMounts"]}
    assert copies["command"][-1] == f"install -d -m 0700 {settings.keys}; install -m 0600 /secret/* {settings.keys}"
    ports = {port["port"] for one in resources("evaluator", "Service") for port in one["spec"]["ports"]}
    assert ports == {settings.port} == {port["containerPort"] for port in serves["ports"]}
