"""Today's version writes a deployment; a next one, of a newer log, takes it over in the middle of its work.

The next version is today's image with a higher version of entries. Once it has put one, today's ends its writing.
"""

from __future__ import annotations

import json
import os
import shlex
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.containers.build import VERSION
from tests.containers.engine import docker
from tests.containers.standins import ROOT
from tests.support.jobs import write_lines

NEXT_TAG = "hushcount-next:analyzer"
ENTRIES = "/opt/hushcount/pipelines/log/entry_files.py"
RECIPE = f"""
FROM hushcount-analyzer:{VERSION}
USER 0:0
RUN sed -i 's/^FORMAT = 1$/FORMAT = 2/' {ENTRIES} && grep -qx 'FORMAT = 2' {ENTRIES}
USER 10001:10001
"""
CLIENTS = 100
PATIENCE = 600.0
SETTINGS = """
store = "store"
ledger = "ledger.db"
[windows]
length = "10s"
grace = "15m"
patience = "10s"
[collector]
name = "one"
host = "0.0.0.0"
least_free_bytes = 0
"""
PARTIES = {"shuffler": '["shuffler"]', "others": '["aux-server", "analyzer"]'}
"""Two deployment files: the parties of each."""
PREPARE = """
hushcount keys new --out keys
hushcount keys new --role operator --out operator-keys
hushcount campaign new --id words --mechanism grr --epsilon 2 --dictionary words.txt --memory --min-batch 1 \
    --discovery-epsilon 1 --discovery-delta 1e-9 --keys keys --out campaign.json
hushcount campaign sign --campaign campaign.json --keys operator-keys
hushcount campaign policy --campaign campaign.json --keys operator-keys --out policy.json
hushcount campaign publish --config shuffler.toml --campaign campaign.json
hushcount ledger set --ledger ledger.db --campaign words --epsilon 30 --delta 1e-6
"""
COLLECTED = """
import sys
from pathlib import Path
from tests.support.collecting import collect
values = ["alpha", "beta", "nobody", "somebody"] * 25
collect(Path("store"), Path("campaign.json"), values, day=int(sys.argv[1]), seconds=10)
"""
"""What another collector left of a window days ago."""
POSTED = """
import secrets, sys, urllib.request
from pathlib import Path
from hushcount.campaigns.campaign import Campaign
from hushcount.client import Client
from hushcount.memory import ClientMemory
from hushcount.newest import Newest
from hushcount.policy import Policy
campaign, policy = Campaign.read("campaign.json"), Policy.read("policy.json", Newest())
for number in range(int(sys.argv[1])):
    client, token = Client(campaign, policy=policy, memory=ClientMemory()), secrets.token_hex(16)
    made = {"reports": client.reports(["alpha"])[0], "discovery": client.discovery_reports(["alpha"])[0]}
    for stream, row in made.items():
        url = f"http://collector:8080/v1/campaigns/words/{stream}?fingerprint={campaign.fingerprint.hex()}&window=19700101T000000Z"
        headers = {"Client-Token": token, "Content-Type": "application/octet-stream"}
        with urllib.request.urlopen(urllib.request.Request(url, row.tobytes(), headers)) as answer:
            assert answer.status == 202
"""
SEND = """
hushcount send --site http://collector:8080 --plain-http --policy policy.json --folder person \
    --window 10s alpha
"""
"""One person's app, which has a memory and a budget in its folder."""
SHOW = "hushcount ledger show --ledger ledger.db --json"
NEXT = """
hushcount campaign new --id words --after campaign.json --keys keys --out next.json
hushcount campaign sign --campaign next.json --keys operator-keys
hushcount campaign publish --config shuffler.toml --campaign next.json
"""
LOG = """
import urllib.request
print(urllib.request.urlopen("http://collector:8080/v1/campaigns/words/log").read().decode())
"""
LEFT = 100


@pytest.fixture(scope="module")
def newer(images: Mapping[str, str]) -> str:
    """The image of the next version, with all parties in it."""
    assert images["analyzer"].endswith(f":{VERSION}")
    docker("build", "--quiet", "--tag", NEXT_TAG, "-", stdin=RECIPE)
    return NEXT_TAG


@dataclass(frozen=True)
class Site:
    """A deployment of one operator, in a directory that containers of either version have as /site.

    Attributes:
        root: the directory.
        name: of its network, and how the names of its containers begin.
    """

    root: Path
    name: str

    def run(self, image: str, commands: str, *words: object, check: bool = True) -> str:
        """Run commands of the shell in a container that ends, and return what they print."""
        command = ("--entrypoint=sh", image, "-ec", commands)
        return docker("run", "--rm", *self._options, *words, *command, check=check).stdout

    def refused(self, image: str, commands: str) -> str:
        """Run commands that must fail, and return what they say."""
        done = docker("run", "--rm", *self._options, "--entrypoint=sh", image, "-ec", commands, check=False)
        assert done.returncode == 1
        return done.stderr

    def left(self, image: str, day: int) -> None:
        """Leave what another collector stored of a day's first window."""
        tests = [f"--volume={ROOT / 'tests'}:/support/tests:ro", "--env=PYTHONPATH=/opt/hushcount:/support"]
        self.run(image, f"python -c {shlex.quote(COLLECTED)} {day}", *tests)

    def bad(self, image: str, party: str) -> list[dict[str, str]]:
        """Return the checks of `hushcount doctor` that are bad, and print them."""
        checks = json.loads(self.run(image, f"hushcount doctor --config {party}.toml --json", check=False))
        found = [check for check in checks if check["verdict"] == "bad"]
        print(found)
        return found

    def counted(self, image: str, party: str) -> dict[str, int]:
        """Return how many reports each hop accepted, by its name; the numbers of the party must agree."""
        (campaign,) = json.loads(self.run(image, f"hushcount status --config {party}.toml --json", check=False))
        assert campaign["differences"] == []
        accepted: dict[str, int] = {}
        for hop in campaign["hops"]:
            accepted[hop["hop"]] = accepted.get(hop["hop"], 0) + hop["accepted"]
        return accepted

    @contextmanager
    def collecting(self, image: str, *, until: str = "TERM") -> Iterator[None]:
        """Run the collector for a block, and end it by a signal."""
        with self._container("collector", image, "collect", "--config", "shuffler.toml") as name:
            ask = "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/readyz')"
            wait_for(lambda: not docker("exec", name, "python", "-c", ask, check=False).returncode, "the collector")
            yield
            docker("kill", "--signal", until, name)
            docker("wait", name)

    @contextmanager
    def watching(self, image: str, party: str, number: int = 1) -> Iterator[None]:
        """Run a schedule for a block; `number` tells it from others of the party."""
        words = ("run", "--config", f"{party}.toml", "--watch", "--every", "1s")
        with self._container(f"{party}-{number}", image, *words) as name:
            yield
            docker("kill", "--signal", "TERM", name)
            assert docker("wait", name).stdout.strip() == "0"
            said = [line for line in docker("logs", name).stderr.splitlines() if "error" in line]
            # Of two schedules of one party, one waits.
            assert [line for line in said if "another run is at work" not in line] == []

    @contextmanager
    def _container(self, service: str, image: str, *words: object) -> Iterator[str]:
        name = f"{self.name}-{service}"
        docker("run", "--detach", "--name", name, "--network-alias", service, *self._options, image, *words)
        try:
            yield name
        except BaseException:
            print(docker("logs", name, check=False).stderr)
            raise
        finally:
            docker("rm", "--force", name)

    @property
    def _options(self) -> list[str]:
        user = f"--user={os.getuid()}:{os.getgid()}"
        return [f"--network={self.name}", user, f"--volume={self.root}:/site", "--workdir=/site"]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    name = f"hushcount-upgrade-{uuid.uuid4().hex[:8]}"
    write_lines(tmp_path / "words.txt", ["alpha", "beta", "gamma"])
    for file, parties in PARTIES.items():
        (tmp_path / f"{file}.toml").write_text(f"parties = {parties}\n{SETTINGS}")
    docker("network", "create", name)
    try:
        yield Site(tmp_path, name)
    finally:
        docker("network", "rm", name)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"{what} was not ready in {PATIENCE:.0f} s"
        time.sleep(0.5)


def account(shown: str) -> tuple[Any, list[Any]]:
    """Return what `ledger show --json` says of campaigns and of charges, but for which reservation is stale."""
    data = json.loads(shown)
    return data["campaigns"], data["charges"]


def test_the_next_version_goes_on_where_todays_stopped_and_todays_writes_no_more(
    site: Site, images: Mapping[str, str], newer: str
) -> None:
    old, new = images["analyzer"], newer
    site.run(old, PREPARE)
    site.left(old, -2)
    site.run(old, "for party in shuffler others; do hushcount run --config $party.toml --clock-is-right; done")
    # A batch that is shuffled, and goes no further.
    site.left(old, -1)
    site.run(old, "hushcount run --config shuffler.toml")
    posted = f"python -c {shlex.quote(POSTED)}"
    clients = CLIENTS
    with site.collecting(old, until="KILL"):
        site.run(old, f"{posted} {CLIENTS}; {SEND}")
        sent = time.time()
        # What was acknowledged in the window that is open is in a journal only.
        while not list((site.root / "journal").rglob("*.journal")):
            site.run(old, f"{posted} 1")
            clients += 1
    spent, memory = account(site.run(old, SHOW)), remembered(site.root)

    assert account(site.run(new, f"hushcount ledger check --ledger ledger.db > checked; {SHOW}")) == spent
    with site.collecting(new):
        # A person has one report of a stream in a window of ten seconds.
        wait_for(lambda: time.time() // 10.0 > sent // 10.0, "the next window")
        site.run(new, f"{posted} {CLIENTS}; {SEND}")
        # The person's answer to the value is the one that the client drew before.
        assert remembered(site.root) == memory
        site.run(new, NEXT)
        log = f"python -c {shlex.quote(LOG)}"
        wait_for(lambda: epochs(site.run(new, log)) == [1, 2], "the log of two epochs")
        expected = 2 * LEFT + clients + CLIENTS + 2
        # What was left is days old, and nothing came since.
        site.run(new, "for party in shuffler others; do hushcount run --config $party.toml --clock-is-right; done")
        with site.watching(new, "shuffler"), site.watching(new, "shuffler", 2), site.watching(new, "others"):
            wait_for(
                lambda: site.counted(new, "others").get("analyze", 0) >= expected, f"results of {expected} reports"
            )
            # Once nobody closes windows any more, status and doctor say so.
            assert site.counted(new, "shuffler") == {"shuffle": 2 * expected}
            for party in PARTIES:
                # For a moment a window may be due that the run is about to close.
                wait_for(lambda party=party: site.bad(new, party) == [], f"no bad check of {party}")
    assert site.counted(new, "others") == {"release": expected, "discover": expected, "analyze": expected}
    (campaign,), charges = account(site.run(new, SHOW))
    assert (campaign["limit"], charges[: len(spent[1])]) == (spent[0][0]["limit"], spent[1])
    batches = list((site.root / "store" / "shuffled" / "words").iterdir())
    assert len(charges) == 2 * len(batches)
    for party in PARTIES:
        before = entries(site.root)
        said = site.refused(old, f"hushcount run --config {party}.toml")
        assert "is of version 2, this is version 1: use the newer hushcount" in said
        assert entries(site.root) == before


def entries(root: Path) -> dict[str, bytes]:
    """Return the entries of all logs, by name."""
    return {str(path): path.read_bytes() for path in (root / "store" / "log").rglob("[0-9]*.json")}


def epochs(log: str) -> list[int]:
    return [entry["epoch"] for entry in json.loads(log)["entries"]]


def remembered(root: Path) -> dict[str, bytes]:
    """Return what the person's memory holds, by file."""
    there = {path.name: path.read_bytes() for path in (root / "person").rglob("memory.json")}
    assert there
    return there
