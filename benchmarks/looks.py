"""The cost of one look: of `status` over a year of hourly windows, and of `run` for 200 campaigns with nothing due.

`python -m benchmarks.looks status` or `run`. Each look is a command in its own process, so imports are included.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from benchmarks.copies import LENGTH, Copies, hours_before, make_deployment, party_alone
from benchmarks.moto_store import BUCKET, moto, requests
from pipelines.deployment.settings import PARTIES, Deployment

_LOOKS = 3
_WATCH = """
import sys, time
from pathlib import Path
from pipelines.deployment.settings import Deployment
from pipelines.log.log import Logs
from pipelines.schedule.run import run
deployment = Deployment.read(Path(sys.argv[1]))
logs = Logs(deployment)
run(deployment, logs=logs)
began, cpu = time.monotonic(), time.process_time()
run(deployment, logs=logs)
print(f"{time.monotonic() - began:.2f} s, {time.process_time() - cpu:.2f} of CPU")
"""
"""The second look of one process, as in `hushcount run --watch`."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("look", choices=("status", "run"))
    parser.add_argument("--campaigns", type=int, help="number of campaigns; by default 1 for status, 200 for run")
    parser.add_argument("--windows", type=int, help="windows of each campaign; by default 8,760 for status, 3 for run")
    parser.add_argument("--folder", type=Path, help="keep the deployment in this folder for later calls")
    asked = parser.parse_args()
    campaigns = asked.campaigns or (1 if asked.look == "status" else 200)
    windows = asked.windows or (8760 if asked.look == "status" else 3)
    with tempfile.TemporaryDirectory(prefix="hushcount-looks-") as made:
        folder = asked.folder or Path(made)
        if not (folder / "copies" / "deployment.toml").exists():
            make(folder, campaigns, windows)
        deployment = Deployment.read(folder / "copies" / "deployment.toml")
        apart = PARTIES if asked.look == "status" else ()
        deployments = [deployment, *(party_alone(deployment, party) for party in apart)]
        sys.stdout.write(f"{asked.look}: {campaigns:,} campaigns, {windows:,} windows of each\n")
        for one in deployments:
            measure(f"disk, {one.path.stem}", asked.look, one, dict(os.environ))
        with moto(folder / "copies" / "store") as (address, environment):
            for one in deployments:
                measure(f"moto, {one.path.stem}", asked.look, in_store(one), environment, address)


def in_store(deployment: Deployment) -> Deployment:
    """Write and return the same deployment with its store in moto."""
    path = deployment.path.with_suffix(".s3.toml")
    path.write_text(deployment.path.read_text().replace('store = "store"', f'store = "s3://{BUCKET}"'))
    return Deployment.read(path)


def make(folder: Path, campaigns: int, windows: int) -> None:
    """Write a deployment with `windows` windows of each campaign; the last one ended at least an hour ago."""
    first, copies = folder / "first", folder / "copies"
    first.mkdir(parents=True)
    copies.mkdir()
    written = Copies(make_deployment(first), copies)
    end = datetime.now(timezone.utc).replace(minute=0, second=0, microsecond=0) - LENGTH
    for number in range(campaigns):
        written.write(f"campaign-{number:03d}", [*hours_before(end, windows)])


def measure(name: str, look: str, deployment: Deployment, environment: Mapping[str, str], address: str = "") -> None:
    """Print the cost of a look: of the first one, which may have work to do, and of the best later one."""
    command = [sys.executable, "-m", "pipelines", look, "--config", str(deployment.path)]
    took = []
    for number in range(_LOOKS):
        if address:
            requests(address)
        # The first run may have work to do, such as missing charges in the ledger.
        took.append(_once(command, environment, strict=number > 0))
    wall, cpu = min(took[1:])
    asked = ""
    counts = requests(address) if address else {}
    if look == "run":
        command = [sys.executable, "-c", _WATCH, str(deployment.path)]
        watch = subprocess.run(command, env=dict(environment), capture_output=True, text=True, check=True)  # noqa: S603  # ours
        asked = f"; again in one process: {watch.stdout.strip()}"
    if address:
        asked += "; requests: " + ", ".join(f"{number:,} {kind}" for kind, number in sorted(counts.items()))
    sys.stdout.write(f"{name}: {wall:.2f} s, {cpu:.2f} of CPU, {took[0][0]:.2f} s the first time{asked}\n")


def _once(command: Sequence[str], environment: Mapping[str, str], strict: bool) -> tuple[float, float]:
    began, before = time.monotonic(), os.times()
    done = subprocess.run(  # noqa: S603  # our own command
        command, env=dict(environment), capture_output=True, text=True, check=False
    )
    after = os.times()
    if done.returncode and strict:
        raise SystemExit(f"{command} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - began, cpu


if __name__ == "__main__":
    main()
