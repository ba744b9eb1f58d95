"""How many reports a collector takes: `python -m benchmarks.collector --seconds 60`.

The real command runs in its own process. Reports are random bytes of the right length; each one is synced to disk
before it is acknowledged. Client and server share the machine's cores.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.inputs import Setting, make_place
from hushcount.campaigns.campaign import Campaign

_SETTING = Setting("ais", 1000)
_START_SECONDS = 60.0
_PROBES = 500


@dataclass(frozen=True)
class Case:
    """The posts that are sent.

    Attributes:
        name: for the table.
        reports: number of reports in each post.
        posts: number of posts in a second.
        connections: number of connections that the posts share.
    """

    name: str
    reports: int
    posts: float
    connections: int


CASES = (Case("single reports", 1, 5000, 64), Case("batches of 100", 100, 500, 16))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="duration of each case")
    parser.add_argument("--factor", type=float, default=1.0, help="multiply the rates by this")
    parser.add_argument("--journal", type=Path, help="directory for journals, on another disk")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".", prefix=".collector-") as directory:
        found = [measure(Path(directory), case, given.seconds, given.factor, given.journal) for case in CASES]
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for row in found:
        print(
            ", ".join(f"{name} {value:,.1f}" if isinstance(value, float) else f"{value}" for name, value in row.items())
        )


def measure(directory: Path, case: Case, seconds: float, factor: float, journals: Path | None = None) -> dict[str, Any]:
    """Start a collector, send a case to it, stop it, and return the figures."""
    base = directory.absolute() / case.name.replace(" ", "-")
    journal = (journals or base).absolute() / f"journal-{os.getpid()}-{case.reports}"
    campaign = _deploy(base, journal)
    length = campaign.sealed_bytes("reports")
    path = f"/v1/campaigns/bench/reports?fingerprint={campaign.fingerprint.hex()}&window=19700101T000000Z"
    try:
        with serving(base, "collect") as (pid, port):
            before = cpu_seconds(pid)
            sent = subprocess.run(  # noqa: S603  # our own module
                [sys.executable, "-m", "benchmarks.collector_load", str(port), path,
                 str(length * case.reports), str(case.posts * factor), str(seconds), str(case.connections)],
                stdout=subprocess.PIPE, check=True,
            )  # fmt: skip
            result = json.loads(sent.stdout)
            used = cpu_seconds(pid) - before
            disk = _sync_ms(journal)
    finally:
        shutil.rmtree(journal, ignore_errors=True)
    accepted = result["accepted"] * case.reports
    return {
        "case": case.name,
        "reports_per_second": result["per_second"] * case.reports,
        "refused": result["refused"],
        "p50_ms": result["p50_ms"],
        "p99_ms": result["p99_ms"],
        "longest_ms": result["longest_ms"],
        "disk_p50_ms": disk[0],
        "disk_p99_ms": disk[1],
        "server_cpu_us_per_report": 1e6 * used / accepted,
        "server_cores": used / seconds,
        "client_cpu_us_per_post": result["client_cpu_us"],
    }


def _deploy(base: Path, journal: Path) -> Campaign:
    """Write a deployment with one campaign, and return the campaign."""
    folder = base / "campaigns" / "bench"
    place = make_place(folder, _SETTING)
    place.campaign_path.rename(folder / "epoch-000001.json")
    epoch = {"epoch": 1, "file": "epoch-000001.json", "begins": "2020-01-01T00:00:00Z"}
    (folder / "collection.json").write_text(json.dumps({"epochs": [epoch]}))
    (base / "deployment.toml").write_text(
        'store = "store"\n[windows]\nlength = "1d"\ngrace = "1d"\n[collector]\nname = "bench"\nport = 0\n'
        f'journal = "{journal}"\nleast_free_bytes = 0\n'
    )
    return Campaign.read(folder / "epoch-000001.json")


@contextmanager
def serving(base: Path, command: str) -> Iterator[tuple[int, int]]:
    """Run a server of the deployment in a directory until the block ends; yield its process id and its port."""
    log = base / "log"
    with log.open("wb") as stream:
        server = subprocess.Popen(  # noqa: S603  # our own command
            [sys.executable, "-m", "pipelines", command, "--config", str(base / "deployment.toml")], stderr=stream
        )
    try:
        yield server.pid, _port_of(log, server)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(120)


def _port_of(log: Path, server: subprocess.Popen[bytes]) -> int:
    """Return the port in the server's log that it listens on."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        for line in log.read_text().splitlines():
            if '"event": "started"' in line:
                return int(json.loads(line)["port"])
        time.sleep(0.05)
    raise SystemExit(f"the server did not start: {log.read_text()}")


def _sync_ms(directory: Path) -> tuple[float, float]:
    """Return median and 99th percentile of the milliseconds that this disk needs to sync a small write, when idle."""
    path, times = directory / "probe", []
    with path.open("wb", buffering=0) as stream:
        for _ in range(_PROBES):
            began = time.perf_counter()
            stream.write(os.urandom(4096))
            os.fdatasync(stream.fileno())
            times.append(1e3 * (time.perf_counter() - began))
    path.unlink()
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
