"""Every pin of the images has a wheel for their Python, as the package index says: make check-deploy.

Skipped, with the reason, where no index answers. Nothing is downloaded but what the index says of each package.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import Marker

from tests.deploy.conftest import DEPLOY, ROOT, images_python

LOCKS = (ROOT / "requirements.lock", *sorted((DEPLOY / "images").glob("*.lock")))
# Of Debian 12, on which the images stand: glibc 2.36.
PLATFORMS = (*(f"manylinux_2_{minor}_x86_64" for minor in range(36, 4, -1)), "manylinux2014_x86_64", "linux_x86_64")


@pytest.fixture(scope="module", autouse=True)
def index() -> None:
    command = [sys.executable, "-m", "pip", "index", "versions", "google-apitools"]
    if subprocess.run(command, capture_output=True, check=False).returncode:  # noqa: S603  # asks, installs nothing
        pytest.skip("no package index answers: that every pin of the images has a wheel was NOT checked")


def pins(python: str) -> list[str]:
    """Return NAME==VERSION of all that is installed there; pip by itself goes by the Python that runs it."""
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "os_name": "posix",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
    }
    lines = re.findall(
        r"^([\w.\[\]-]+==[^ \\\n;]+)(?: ;([^\\\n]+))?", "\n".join(path.read_text() for path in LOCKS), re.MULTILINE
    )
    return sorted({pin for pin, marker in lines if not marker.strip() or Marker(marker.strip()).evaluate(environment)})


def wheels(python: str, wanted: list[str], directory: Path) -> dict[str, Any]:
    """Return pip's report of what it would install, and what it said: wheels only, for that Python on Linux."""
    (directory / "pins.txt").write_text("\n".join(wanted))
    report = directory / "report.json"
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--ignore-installed"]
    # Of the Python that runs pip, which is not the images'; a lock holds no version that another one is needed for.
    command += ["--ignore-requires-python", "--only-binary", ":all:", "--target", str(directory / "none")]
    command += ["--implementation", "cp", "--python-version", python]
    command += [f"--abi={abi}" for abi in (f"cp{python.replace('.', '')}", "abi3", "none")]
    command += [f"--platform={platform}" for platform in PLATFORMS]
    command += ["--report", str(report), "-r", str(directory / "pins.txt")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # installs nothing
    found = json.loads(report.read_text())["install"] if report.exists() else []
    return {"found": found, "said": done.stderr}


def test_every_pin_of_the_images_has_a_wheel_that_the_lock_knows(tmp_path: Path) -> None:
    wanted = pins(images_python())
    assert {"apache-beam", "numba", "google-apitools", "boto3"} <= {
        pin.partition("==")[0].partition("[")[0] for pin in wanted
    }
    made = wheels(images_python(), wanted, tmp_path)
    assert len(made["found"]) == len(wanted), made["said"]
    hashes = "\n".join(path.read_text() for path in LOCKS)
    for one in made["found"]:
        assert one["download_info"]["url"].endswith(".whl")
        assert f"sha256:{one['download_info']['archive_info']['hashes']['sha256']}" in hashes, one["metadata"]["name"]


def test_a_pin_of_which_there_is_a_source_only_is_found(tmp_path: Path) -> None:
    made = wheels(images_python(), ["google-apitools==0.5.31"], tmp_path)
    assert made["found"] == []
    assert "google-apitools==0.5.31" in made["said"]
