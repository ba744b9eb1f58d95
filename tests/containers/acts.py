"""What a machine may do to a container: kill, pause, cut off, fill, and set a clock; and how long until it is well."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.containers.deployment import Site
from tests.containers.engine import docker

_KILL = "kill -9 $(cat /proc/1/task/1/children)"
"""The container's first process only waits for this one: it ends, and the engine starts the container again."""
RUNS = "/var/lib/hushcount/state/ledger.db.runs"
_LOOK_SECONDS = 0.2
_LONGEST_SECONDS = 600.0
"""Until something must have happened: a machine may be busy with other tests."""


def kill(site: Site, service: str, once: str = "true") -> None:
    """Kill a container's program by SIGKILL as soon as a shell command in the container succeeds."""
    command = f"until {once}; do sleep 0.1; done; {_KILL}"
    docker("exec", site.container(service), "sh", "-c", command, check=False, timeout=_LONGEST_SECONDS)


def kill_at_work(site: Site, service: str) -> None:
    """Kill a schedule in the middle of a job that charges the ledger."""
    kill(site, service, f'[ -n "$(ls -A {RUNS} 2>/dev/null)" ]')


@contextmanager
def paused(site: Site, service: str) -> Iterator[None]:
    """Stop a container's processes for a block: they keep their connections and answer nobody."""
    docker("pause", site.container(service))
    try:
        yield
    finally:
        docker("unpause", site.container(service))


@contextmanager
def cut_off(site: Site, network: str, *services: str) -> Iterator[None]:
    """Take containers from a network for a block; when they are back, each has another address."""
    name = f"{site.project}_{network}"
    squatters = [f"{site.project}-squatter-{service}" for service in services]
    for service in services:
        docker("network", "disconnect", name, site.container(service))
    try:
        yield
    finally:
        try:
            for squatter, service in zip(squatters, services, strict=True):
                image = state(site, service)["Config"]["Image"]
                where = (f"--network={name}", f"--name={squatter}", "--entrypoint=sleep")
                docker("run", "--detach", "--rm", *where, image, 600)
            for service in services:
                docker("network", "connect", f"--alias={service}", name, site.container(service))
        finally:
            for squatter in squatters:
                docker("rm", "--force", squatter, check=False)


@contextmanager
def filled(container: str, path: str) -> Iterator[None]:
    """Fill the file system of a path to the last byte for a block."""
    docker("exec", container, "sh", "-c", f"dd if=/dev/zero of={path}/filler bs=64k 2>/dev/null; true")
    try:
        yield
    finally:
        docker("exec", container, "rm", f"{path}/filler")


def state(site: Site, service: str) -> dict[str, Any]:
    """Return what the engine says of a service's container."""
    (found,) = json.loads(docker("inspect", site.container(service)).stdout)
    assert isinstance(found, dict)
    return found


def is_well(site: Site, service: str) -> bool:
    """Return whether a container runs, and is healthy if it has a health check."""
    now = state(site, service)["State"]
    return bool(now["Running"]) and not now["Paused"] and now.get("Health", {}).get("Status", "healthy") == "healthy"


def seconds_until_well(site: Site, services: Sequence[str], seconds: float = _LONGEST_SECONDS) -> float:
    """Wait until containers are well, and return how long that took."""
    began = time.monotonic()
    while not all(is_well(site, service) for service in services):
        assert time.monotonic() - began < seconds, f"not well: {services}\n{site.logs(*services)}"
        time.sleep(_LOOK_SECONDS)
    return time.monotonic() - began


def wait_for_line(site: Site, service: str, text: str, since: float, seconds: float = _LONGEST_SECONDS) -> None:
    """Wait until a container has printed a text after a moment, in seconds since 1970."""
    end = time.monotonic() + seconds
    while text not in (said := printed(site, service, since)):
        assert time.monotonic() < end, f"{service} did not say {text!r} but\n{said}"
        time.sleep(_LOOK_SECONDS)


def wait_until_at(site: Site, service: str, step: str, seconds: float = _LONGEST_SECONDS) -> None:
    """Wait until a schedule is in the middle of a step: nothing that it prints came after the step's beginning."""
    end = time.monotonic() + seconds
    while f": {step}" not in (said := docker("logs", "--tail=1", site.container(service)).stderr):
        assert time.monotonic() < end, f"{service} did not come to {step!r}; at last it said {said}"
        time.sleep(_LOOK_SECONDS)


def printed(site: Site, service: str, since: float) -> str:
    """Return what a container printed after a moment, in seconds since 1970."""
    done = docker("logs", f"--since={since:.3f}", site.container(service))
    return done.stdout + done.stderr
