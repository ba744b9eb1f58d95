"""Containers as pods of deploy/kubernetes: user, limits and file systems as the manifests say, volumes for claims."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from docker.types import Mount

from tests.containers.engine import docker
from tests.deploy.conftest import DEPLOY

MANIFESTS = DEPLOY / "kubernetes"
OURS = "10001:10001"
"""The user of our images, and the group of all pods' volumes."""


def spec_of(file: str) -> dict[str, Any]:
    """Return the `spec` of the first resource of a file of manifests."""
    resource: dict[str, Any] = next(yaml.safe_load_all((MANIFESTS / file).read_text(encoding="utf-8")))
    return dict(resource["spec"])


def named(parts: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the one container, probe or volume of this name."""
    (found,) = (one for one in parts if one["name"] == name)
    return found


def restricted(
    pod: dict[str, Any], container: dict[str, Any], volumes: Mapping[str, str], memory: str | None = None
) -> dict[str, Any]:
    """Return how docker starts a container of a pod: who runs it, what it may do and write.

    Args:
        volumes: docker volumes by the names of the pod's. An emptyDir that is not among them is a volume of the
            container's own, and anything else is not mounted.
        memory: its limit, where the container does not say so itself.
    """
    who = {**pod["securityContext"], **container["securityContext"]}
    own = [volume["name"] for volume in pod["volumes"] if "emptyDir" in volume]
    return {
        "user": f"{who['runAsUser']}:{who['runAsGroup']}",
        "group_add": [str(pod["securityContext"]["fsGroup"])],
        "read_only": who["readOnlyRootFilesystem"],
        "cap_drop": who["capabilities"]["drop"],
        "security_opt": ["no-new-privileges"],
        "mem_limit": (memory or container["resources"]["limits"]["memory"]).lower().removesuffix("i"),
        "mounts": [
            Mount(mount["mountPath"], volumes.get(mount["name"]), read_only=mount.get("readOnly", False))
            for mount in container["volumeMounts"]
            if mount["name"] in {*volumes, *own}
        ],
    }


@dataclass(frozen=True)
class Volume:
    """A docker volume in the place of a claim or a store.

    Attributes:
        name: docker's.
        image: one of ours, with which files come in and out.
    """

    name: str
    image: str

    def put(self, source: Path, into: str = ".", owner: str = OURS, mode: str = "u+rwX") -> None:
        """Copy what is in a folder of this machine into a folder of it; no key directory goes with it."""
        change = f"chown -R {owner} /volume/{into} && chmod -R {mode} /volume/{into}"
        with tempfile.TemporaryDirectory() as scratch, self._beside("sh", "-c", change) as container:
            ignore = shutil.ignore_patterns("keys")
            shutil.copytree(source, Path(scratch) / into, ignore=ignore, dirs_exist_ok=True)
            docker("cp", f"{scratch}/.", f"{container}:/volume")
            docker("start", "--attach", container)

    def take(self, name: str, target: Path) -> Path:
        """Copy a file or folder to this machine, where it gets this user's."""
        with self._beside("true") as container:
            docker("cp", f"{container}:/volume/{name}", target)
        return target

    @contextmanager
    def _beside(self, program: str, *words: str) -> Iterator[str]:
        """Make a container that has it and is not started yet, and yield its id."""
        options = ("--user=0:0", f"--volume={self.name}:/volume", f"--entrypoint={program}")
        container = docker("create", *options, self.image, *words).stdout.strip()
        try:
            yield container
        finally:
            docker("rm", "--force", container)


@contextmanager
def volume(image: str) -> Iterator[Volume]:
    """Make a volume that the group of all pods may write to, as fsGroup has it, and remove it after the block."""
    name = f"hushcount-test-{uuid.uuid4()}"
    docker("volume", "create", name)
    try:
        give = f"chown {OURS} /volume && chmod 2775 /volume"
        docker("run", "--rm", "--user=0:0", f"--volume={name}:/volume", "--entrypoint=sh", image, "-c", give)
        yield Volume(name, image)
    finally:
        docker("volume", "rm", name)
