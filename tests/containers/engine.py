"""A Docker engine: the one that runs on this machine, or one that is started here if root may install and start it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

PLUGINS = {"compose": "docker-compose", "buildx": "docker-buildx"}
"""The client's commands that compose files and recipes need, and Debian's packages of them."""
_LOG = Path("/var/log/hushcount-dockerd.log")
_START_SECONDS = 90.0


class NoEngineError(Exception):
    """No Docker engine runs here and none can be started; the text says why."""


def docker(
    *arguments: object, check: bool = True, timeout: float | None = None, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a docker command and return what it printed.

    Args:
        check: Whether a status other than 0 is an AssertionError, with all that the command printed.
        timeout: Seconds after which it is killed.
        stdin: What it reads.
    """
    command = ["docker", *map(str, arguments)]
    done = subprocess.run(  # noqa: S603  # our own images
        command,
        capture_output=True,
        text=True,
        errors="replace",
        input=stdin,
        timeout=timeout,
        check=False,
        env={**os.environ, "DOCKER_BUILDKIT": "1"},
    )
    assert not check or done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}\n{done.stderr}"
    return done


def ensure_engine() -> None:
    """Find a running engine or start one.

    Raises:
        NoEngineError: Neither is possible.
    """
    if not _answers():
        _start()


def install(*packages: str) -> None:
    """Install Debian packages on this machine, as root.

    Raises:
        NoEngineError: This user may not, or the packages cannot be had.
    """
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NoEngineError(f"{', '.join(packages)} cannot be installed: that needs root and apt-get")
    for command in (("apt-get", "update", "-qq"), ("apt-get", "install", "-y", "-qq", *packages)):
        done = subprocess.run(  # noqa: S603  # Debian's packages
            command,
            capture_output=True,
            text=True,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            timeout=600,
            check=False,
        )
        if done.returncode:
            raise NoEngineError(f"{' '.join(command)} failed: {done.stderr.strip()[-300:]}")


def missing_plugins() -> list[str]:
    """Return the commands of PLUGINS that the docker client does not have."""
    return [name for name in PLUGINS if docker(name, "version", check=False).returncode]


def _answers() -> bool:
    return shutil.which("docker") is not None and docker("info", check=False).returncode == 0


def _start() -> None:
    if os.geteuid() != 0:
        raise NoEngineError("no Docker engine answers, and only root may start one")
    if shutil.which("dockerd") is None or shutil.which("docker") is None:
        install("docker.io")
    # It outlives this program: the next one finds it.
    with _LOG.open("wb") as log:
        started = subprocess.Popen(["dockerd"], stdout=log, stderr=log, start_new_session=True)  # noqa: S607
    end = time.monotonic() + _START_SECONDS
    while not _answers():
        if started.poll() is not None or time.monotonic() > end:
            raise NoEngineError(f"dockerd did not start: {_LOG} says why")
        time.sleep(0.5)


if __name__ == "__main__":
    try:
        ensure_engine()
    except NoEngineError as error:
        sys.exit(f"SKIPPED: {error}: images and containers were NOT built and NOT run")
