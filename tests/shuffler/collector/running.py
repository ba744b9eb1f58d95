"""Run the real collector as a process of its own, on a real deployment, and talk to it over real sockets."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from functools import cache
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.envelopes import envelope_dtype
from hushcount.collection.epochs import epoch_folder
from hushcount.collection.manifests import Manifest, read_manifest
from hushcount.collection.tilings import Tiling
from hushcount.wire.blocks import read_block, read_header
from service.passes import PassTaker
from tests.shuffler.collector.collector_process import start_collector
from tests.support import patient
from tests.support.jobs import done, write_lines

LONG = "365d"
"""A window that does not end while a test runs, but once a year; or when `Running.pass_by` lets it."""
LENGTH = timedelta(days=365)
"""Of such a window."""
TAKER = PassTaker("none", "collector", "one", Tiling(LENGTH))
METRICS_TOKEN = "m" * 32
STREAM = {"content-type": "application/octet-stream"}
_START_SECONDS = 120.0
_HTTP = patient.Client(limits=httpx.Limits(max_keepalive_connections=0))
"""One for all requests: the certificates that each client reads cost more than a request. No connection stays open."""


@dataclass(frozen=True)
class Site:
    """A deployment on disk: its file, its campaigns, its keys, its store."""

    base: Path

    @property
    def config(self) -> Path:
        return self.base / "deployment.toml"

    @property
    def journal(self) -> Path:
        return self.base / "journal"

    @property
    def segments(self) -> Path:
        return self.base / "store" / "segments"

    def campaign_file(self, campaign: str = "words", epoch: int = 1) -> Path:
        return self.base / "campaigns" / campaign / f"epoch-{epoch:06d}.json"

    def campaign(self, campaign: str = "words", epoch: int = 1) -> Campaign:
        return Campaign.read(self.campaign_file(campaign, epoch))

    def fingerprint(self, campaign: str = "words", epoch: int = 1) -> str:
        """Return the fingerprint of a campaign file as posts name it; of a file that is not there, a made-up one."""
        there = self.campaign_file(campaign, epoch).exists()
        return self.campaign(campaign, epoch).fingerprint.hex() if there else f"{epoch:064x}"

    def windows(self, campaign: str = "words", epoch: int = 1) -> list[Path]:
        home = self.segments / campaign / epoch_folder(self.campaign(campaign, epoch))
        return sorted(home.iterdir()) if home.exists() else []

    def stored(self, stream: str = "reports", campaign: str = "words", epoch: int = 1) -> list[np.ndarray[Any, Any]]:
        """Return the envelopes of every segment in the store."""
        return [
            read_segment(path)
            for window in self.windows(campaign, epoch)
            for path in sorted((window / stream).glob("*.blocks"))
        ]

    def sealed(self, stream: str = "reports", campaign: str = "words", epoch: int = 1) -> list[bytes]:
        """Return every sealed report in the store, copies included."""
        return [
            bytes(row[40:])
            for rows in self.stored(stream, campaign, epoch)
            for row in rows.view(np.uint8).reshape(len(rows), -1)
        ]

    def manifests(self, campaign: str = "words", epoch: int = 1) -> list[Manifest]:
        return [
            read_manifest(path.read_bytes(), path.name)
            for window in self.windows(campaign, epoch)
            for path in window.glob("*.manifest.json")
        ]


def read_segment(path: Path) -> np.ndarray[Any, Any]:
    """Return the envelopes of a segment, every block of it checked."""
    with path.open("rb") as stream:
        header = read_header(stream, path.name)
        blocks = [read_block(stream, header, index) for index in range(header.blocks)]
    assert all(block is not None for block in blocks), f"{path} is damaged"
    return np.frombuffer(b"".join(block or b"" for block in blocks), envelope_dtype(header.record_bytes - 40))


def make_site(base: Path, *, window: str = LONG, collector: dict[str, Any] | None = None, **epochs: Any) -> Site:
    """Make a deployment with one campaign, `words`, of both streams, whose epoch 1 has begun."""
    shutil.copytree(_first_site().name, base, dirs_exist_ok=True)
    site = Site(base)
    write_config(site, window, collector or {})
    return site


@cache
def _first_site() -> TemporaryDirectory[str]:
    """Make what all sites have alike, once: their keys, and their campaign of one epoch."""
    directory = TemporaryDirectory(prefix="site-")
    site = Site(Path(directory.name))
    done("keys", "new", "--out", site.base / "keys")
    add_campaign(site, "words", 1)
    write_collection(site, "words", [{"epoch": 1, "begins": "2020-01-01T00:00:00Z"}])
    return directory


def make_started_site(base: Path) -> Site:
    """Make what a collector has that was started before: its journal directory is there."""
    site = make_site(base)
    site.journal.mkdir()
    return site


def write_config(site: Site, window: str, collector: dict[str, Any]) -> None:
    """Write the deployment file."""
    # Most tests post without a token: what that makes of the results is not their subject.
    settings = {"authentication": "none", "least_free_bytes": 0, "metrics_token": metrics_reader(site), **collector}
    table = {"name": "one", "port": 0, "journal": str(site.journal), **settings}
    lines = ['store = "store"', "[windows]", f'length = "{window}"', 'grace = "1h"', "[collector]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in table.items()]
    site.config.write_text("\n".join(lines) + "\n")


def metrics_reader(site: Site) -> str:
    """Write the file of who may read the metrics, and return its name."""
    path = site.base / "metrics"
    path.write_text(f"prometheus sha256:{hashlib.sha256(METRICS_TOKEN.encode()).hexdigest()}\n")
    path.chmod(0o600)
    return path.name


def add_campaign(site: Site, campaign: str, epoch: int, *, discovery: bool = True, dictionary: bool = True) -> None:
    """Write a campaign file."""
    path = site.campaign_file(campaign, epoch)
    path.parent.mkdir(parents=True, exist_ok=True)
    words = path.with_name("words.txt")
    if not words.exists():
        write_lines(words, [f"word-{number}" for number in range(20)])
    options = ["--dictionary", words] if dictionary else ["--open-domain"]
    if discovery:
        options += ["--discovery-epsilon", 2, "--max-value-bytes", 16, "--hash", "keyed"]
    before = [site.campaign_file(campaign, earlier) for earlier in range(1, epoch)]
    if before and before[-1].exists():
        options += ["--after", before[-1], *([] if discovery else ["--no-discovery"])]
    done(
        "campaign", "new", "--id", campaign, "--epoch", epoch, "--mechanism", "ais", "--epsilon", 4, *options,
        "--min-batch", 50, "--keys", site.base / "keys", "--out", path,
    )  # fmt: skip


def write_collection(site: Site, campaign: str, epochs: list[dict[str, Any]]) -> None:
    """Replace the collection file in one step, as `hushcount run` does."""
    path = site.base / "campaigns" / campaign / "collection.json"
    named = [{"file": f"epoch-{part['epoch']:06d}.json", **part} for part in epochs]
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"epochs": named}))
    fresh.replace(path)


@dataclass
class Running:
    """A collector process."""

    process: BaseProcess
    port: int
    log: Path
    ahead: Synchronized[float]
    site: Site
    _asking: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def path(self, stream: str = "reports", campaign: str = "words", epoch: int = 1) -> str:
        query = f"fingerprint={self.site.fingerprint(campaign, epoch)}&window=19700101T000000Z"
        return f"/v1/campaigns/{campaign}/{stream}?{query}"

    def post(self, body: bytes, stream: str = "reports", **options: Any) -> httpx.Response:
        headers = {**STREAM, **options.pop("headers", {})}
        return _HTTP.post(self.url + self.path(stream, **options), content=body, headers=headers)

    def get(self, path: str, **options: Any) -> httpx.Response:
        """Get a path; the metrics as whoever may read them, if no other headers are given."""
        if path == "/metrics":
            options = {"headers": {"authorization": f"Bearer {METRICS_TOKEN}"}, **options}
        return _HTTP.get(self.url + path, **options)

    def events(self) -> list[dict[str, Any]]:
        """Return the lines of its log; every one must be JSON."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def pass_by(self, time: timedelta) -> None:
        """Let time pass for the collector: so much later it is from now on."""
        self.ahead.value += time.total_seconds()

    def ended(self, seconds: float = 0.0) -> bool:
        """Return whether it ended, within so many seconds; may be called in any thread."""
        with self._asking:
            self.process.join(seconds)
            return self.process.exitcode is not None

    def stop(self) -> int:
        """End it as an operator does, and return its exit status."""
        os.kill(self.pid, signal.SIGTERM)
        assert self.ended(120.0)
        assert self.process.exitcode is not None
        return self.process.exitcode

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        assert self.ended(120.0)


def start(site: Site, ahead: timedelta = timedelta(), command: str = "collect") -> Running:
    """Start the command, so much later than now, and wait until it listens."""
    log = site.base / f"log-{time.monotonic_ns()}.txt"
    process, shared = start_collector(site.config, log, ahead.total_seconds(), command)
    collector = Running(process, 0, log, shared, site)
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        for line in log.read_text().splitlines():
            if '"event": "started"' in line:
                return replace(collector, port=json.loads(line)["port"])
        assert not collector.ended(0.005), f"the collector ended: {log.read_text()}"
    collector.kill()
    raise AssertionError(f"the collector did not start: {log.read_text()}")


@contextmanager
def running(site: Site, ahead: timedelta = timedelta(), command: str = "collect") -> Iterator[Running]:
    """Run a collector for a block, so much later than now; one that no test has stopped is killed, which is quick."""
    collector = start(site, ahead, command)
    try:
        yield collector
    finally:
        if not collector.ended():
            collector.kill()


def limit_files(collector: Running, most_bytes: int) -> None:
    """Let the kernel refuse the process's files beyond a length: a real failure, in the middle of a write."""
    resource.prlimit(collector.pid, resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))


def wait_for(condition: Callable[[], object], seconds: float = 120.0, what: str = "it") -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen in {seconds} s"
        time.sleep(0.01)


def now_text(seconds: float = 0.0) -> str:
    """Return the moment so many seconds from now, as collection files have it."""
    return datetime.fromtimestamp(time.time() + seconds, timezone.utc).isoformat().replace("+00:00", "Z")
