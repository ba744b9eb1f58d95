"""One deployment that faults befall, one after the other, and a table of what came of each."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.containers.accounts import LAST, reconciled
from tests.containers.acts import seconds_until_well
from tests.containers.clients import clients_of
from tests.containers.deployment import Site, lay_out
from tests.containers.engine import docker
from tests.containers.standins import RECIPES

SCHEDULES = ("shuffler", "aux-server", "analyzer")
HANDING_ON = ("shuffler-hand-on", "aux-server-hand-on")
SERVICES = ("proxy", "collector", *SCHEDULES, *HANDING_ON)
CLIENTS = 60
JUNK = 3
"""Reports of bytes that nobody can open, beside those of each fault's clients."""
MINIMUM = 20
WINDOW = 20.0
SETTLES = 900.0
HEAD = ("fault", "acknowledged", "sent again", "counted", "dropped", "seconds until well")


@dataclass
class Trial:
    """The deployment, and a row for each fault.

    Attributes:
        junk: reports that were acknowledged and that nobody can open.
        true_faults: checks of `doctor` that may be bad from now on.
    """

    site: Site
    junk: int = 0
    true_faults: set[str] = field(default_factory=set)
    rows: list[tuple[object, ...]] = field(default_factory=list)

    @contextmanager
    def befalls(self, fault: str, *services: str) -> Iterator[None]:
        """Let clients post while the block makes a fault; wait until all is acknowledged and the services are well."""
        clients = clients_of(self.site, CLIENTS, junk=JUNK).start()
        while clients.done < clients.total // 3:
            time.sleep(0.02)
        yield
        seconds = seconds_until_well(self.site, services or SERVICES)
        clients.join(SETTLES)
        for stream, number in clients.acknowledged.items():
            self.site.acknowledged[stream] += number
        self.junk += JUNK
        again = ", ".join(f"{number} {reason}" for reason, number in sorted(clients.again.items()))
        self.rows.append((fault, clients.done, again or "-", "", "", f"{seconds:.1f}"))

    def post(self) -> None:
        """Let clients post undisturbed into one window, so that no part of their reports is below the minimum batch."""
        while time.time() % WINDOW > WINDOW / 2:
            time.sleep(0.1)
        with self.befalls("none"):
            pass
        self.rows.pop()

    def reconcile(self, after: str) -> None:
        """Check that everything acknowledged is counted or dropped with a reason, each report once."""
        self.post()
        self.site.wait_until_counted(SETTLES, self.post)
        found = reconciled(self.site, Counter({"not_opened": self.junk}))
        for party in SCHEDULES:
            bad = [check for check in self.site.doctor(party) if check["verdict"] == "bad"]
            assert {check["name"] for check in bad} <= self.true_faults, bad
        for stream in LAST:
            account = found[stream]
            dropped = ", ".join(f"{number} {why}" for why, number in account.dropped.items()) or "-"
            row = (self.site.acknowledged[stream], f"{account.copies} copies", account.counted, dropped, "")
            self.rows.append((f"**after {after}: {stream}, all so far**", *row))

    def table(self) -> str:
        """Return all rows."""
        lines = [HEAD, ("---",) * len(HEAD), *self.rows]
        return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


@dataclass(frozen=True)
class Clocks:
    """What containers take for the time."""

    folder: Path

    def set(self, service: str, seconds: int) -> None:
        """Set a container's clock ahead; it sees it within a second or two."""
        (self.folder / service).write_text(f"{seconds:+d}\n")

    def of(self, service: str) -> dict[str, object]:
        """Return what a compose file says of a service, so that it takes its time from here."""
        self.set(service, 0)
        settings = {
            "LD_PRELOAD": "/clock/libfaketime.so.1",
            "FAKETIME_TIMESTAMP_FILE": f"/clock/{service}",
            "FAKETIME_CACHE_DURATION": "1",
            # A machine's clock may be set; the time since it started is not.
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        return {"environment": settings, "volumes": [f"{self.folder}:/clock:ro"]}


def lay_out_trial(directory: Path, project: str, base: str) -> tuple[Site, Clocks]:
    """Make a deployment with clocks to be set, and small volumes to be filled.

    Args:
        base: image of the Python that parties' images are made from.
    """
    fewest = ("--min-batch", str(MINIMUM))
    site = lay_out(directory, project, length=f"{WINDOW:.0f}s", grace="25m", every="2", campaign=fewest)
    clocks = Clocks(directory / "clocks")
    clocks.folder.mkdir()
    recipe = RECIPES / "faketime.Dockerfile"
    docker("build", "--quiet", f"--build-arg=BASE={base}", "--file", recipe, "--tag", "hushcount-faketime", RECIPES)
    made = docker("create", "hushcount-faketime", "true").stdout.strip()
    docker("cp", f"{made}:/libfaketime.so.1", clocks.folder)
    docker("rm", made)
    overlay = {
        "services": {
            **{service: clocks.of(service) for service in ("collector", "shuffler", "analyzer")},
            # A volume in memory lasts as long as a container has it: this one is never killed.
            "keeper": {
                "image": "hushcount-shuffler:${VERSION:-0.1.0}",
                "user": "10001:10001",
                "entrypoint": ["sleep", "infinity"],
                "init": True,
                "network_mode": "none",
                "volumes": ["journal:/journal", "analyzer-state:/analyzer-state"],
                "depends_on": {"volumes": {"condition": "service_started"}},
            },
        },
        "volumes": {
            # The collector wants 256 MiB of it free.
            "journal": _in_memory("300m"),
            "analyzer-state": _in_memory("16m"),
        },
    }
    (directory / "faults.yaml").write_text(json.dumps(overlay))
    return replace(site, files=(*site.files, "faults.yaml")), clocks


def _in_memory(size: str) -> dict[str, object]:
    """Return a volume of this size for a compose file."""
    options = {"type": "tmpfs", "device": "tmpfs", "o": f"size={size},uid=10001,gid=10001"}
    return {"driver": "local", "driver_opts": options}
