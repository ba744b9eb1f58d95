"""deploy/kubernetes as kustomize renders it, for the tests of it: resources, pods, and what schemas say of them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.conftest import DEPLOY, kubeconform_command

FOLDER = DEPLOY / "kubernetes"
PARTIES = ("shuffler", "aux-server", "analyzer")
"""Those that run jobs."""
EVERYONE = (*PARTIES, "evaluator")
Resource = dict[str, Any]


@cache
def rendered(party: str) -> str:
    return kustomized(FOLDER / party)


def kustomized(folder: Path) -> str:
    """Return what kustomize makes of a folder; skip, with the reason, where it is not installed."""
    tool = shutil.which("kubectl")
    if tool is None:
        pytest.skip("kubectl is not installed: the Kubernetes manifests were NOT rendered or checked")
    done = subprocess.run(  # noqa: S603  # renders files, asks no cluster
        [tool, "kustomize", folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def parsed(party: str) -> tuple[Resource, ...]:
    """Return all resources of a party, which nobody changes: to read them takes long."""
    return tuple(resources_of(rendered(party)))


def resources_of(text: str) -> list[Resource]:
    return [one for one in yaml.safe_load_all(text) if one]


def resources(party: str, *kinds: str) -> list[Resource]:
    return [one for one in parsed(party) if not kinds or one["kind"] in kinds]


def merged(below: Any, above: Any) -> Any:
    """Return a pod template with a further one over it, as Flink's operator merges them: lists by name."""
    if isinstance(below, dict) and isinstance(above, dict):
        return {
            key: merged(below[key], above[key]) if key in below and key in above else above.get(key, below.get(key))
            for key in {**below, **above}
        }
    if isinstance(below, list) and isinstance(above, list):
        over = {one["name"]: one for one in above}
        kept = [merged(one, over.pop(one["name"])) if one["name"] in over else one for one in below]
        return [*kept, *over.values()]
    return above


def pods(party: str) -> Iterator[tuple[str, Resource]]:
    """Yield name and template of every pod of a party."""
    for one in resources(party):
        yield from templates(one)


def containers(template: Resource) -> list[Resource]:
    """Return the containers of a pod, those that run before the others too."""
    return [*template["spec"].get("initContainers", ()), *template["spec"]["containers"]]


def templates(one: Resource) -> list[tuple[str, Resource]]:
    """Return name and template of the pods of a resource."""
    name, spec = one["metadata"]["name"], one.get("spec", {})
    if one["kind"] in ("Deployment", "StatefulSet"):
        return [(name, spec["template"])]
    if one["kind"] == "CronJob":
        return [(name, spec["jobTemplate"]["spec"]["template"])]
    if one["kind"] == "FlinkDeployment":
        return [
            (f"flink-{part.lower()}", merged(spec["podTemplate"], spec[part]["podTemplate"]))
            for part in ("jobManager", "taskManager")
        ]
    return []


def schema_faults(text: str, directory: Path) -> str:
    """Return what kubeconform says of manifests; nothing where they are as Kubernetes' own schemas have it."""
    (directory / "all.yaml").write_text(text)
    command = [*kubeconform_command(), str(directory / "all.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # reads files
    assert done.returncode == 0 or done.stdout
    return done.stdout + done.stderr
