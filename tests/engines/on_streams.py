"""A stream on Prism and Flink beside runs: it carries out what they decide, and they go on without it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from pipelines.jobs import together
from pipelines.streaming import ordering
from tests.engines.conftest import Engines, Servers
from tests.support.collecting import collect
from tests.support.jobs import files_under
from tests.support.plain_engine import instead_of_beam
from tests.support.site import Site, account_at, site_of, values

DAYS = 4
MOST_SECONDS = 300.0
PARTIES = ("shuffler", "aux-server", "analyzer")

# Workers that are threads of this process end with an exception when their engine hangs up, in jobs that are done too.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what a run does itself be done at once: the stream has the engine."""
    instead_of_beam(monkeypatch.setattr)


@contextmanager
def streaming(site: Site, options: tuple[str, ...]) -> Iterator[subprocess.Popen[bytes]]:
    """Run `hushcount job stream` on an engine while a block runs."""
    _, runner, _, *given = options
    config = site.root / "stream.toml"
    config.write_text(f"{site.config.read_text()}\n[engine]\nrunner = {json.dumps(runner)}\noptions = {given}\n")
    leases = [site.store / "orders" / party / "stream.lease.json" for party in PARTIES]
    hushcount = Path(sys.executable).with_name("hushcount")
    command = [str(hushcount), "job", "stream", "--config", str(config), "--every", "1s", "--places", "3"]
    with subprocess.Popen(command) as running:  # noqa: S603  # our own
        try:
            deadline = time.monotonic() + MOST_SECONDS
            while not all(_is_of(one, running) for one in leases):
                assert time.monotonic() < deadline, "the stream does not hold its leases"
                time.sleep(0.1)
            yield running
        finally:
            if running.poll() is None:
                running.send_signal(signal.SIGTERM)
                running.wait(MOST_SECONDS)


def _is_of(lease: Path, running: subprocess.Popen[bytes]) -> bool:
    assert running.poll() is None
    return lease.exists() and json.loads(lease.read_text())["process"].startswith(f"{running.pid}-")


def only_by_stream(patch: pytest.MonkeyPatch) -> None:
    def run_graph(jobs: object, engine: object, console: object) -> None:
        raise AssertionError("the run ran a graph itself")

    patch.setattr(together, "_run_graph", run_graph)


def tally(site: Site, day: int) -> dict[str, list[object]]:
    with np.load(site.files("results", day) / "tally.npz") as file:
        return {name: file[name].tolist() for name in file.files}


@pytest.mark.parametrize("engine", ["Prism", "Flink, embedded", "Flink, worker pool"])
def test_a_day_after_the_other_and_days_that_waited(options: Engines, tmp_path: Path, engine: str) -> None:
    site = site_of(tmp_path / "site", discovery=True)
    with streaming(site, options[engine]) as running, pytest.MonkeyPatch.context() as patch:
        only_by_stream(patch)
        for day in range(DAYS):
            collect(site.store, site.campaign, values(150 + day), day=day)
            if day != 1:
                # The second day waits for the third.
                assert site.run(day + 1.5, sure=True).problems == []
        assert running.poll() is None
    assert running.returncode == 0
    alone = site.copied(tmp_path / "alone")
    for name in ("log", "orders", "attempts", "shuffled", "released", "found", "results", "estimates", "stated"):
        for path in (alone.store / name).rglob("*"):
            if path.is_file():
                path.unlink()
    (alone.root / "ledger.db").unlink()
    assert alone.run(DAYS + 0.5, sure=True).problems == []
    for day in range(DAYS):
        assert site.result(day)["received"] == 150 + day
        assert site.result(day)["streams"] == alone.result(day)["streams"]
        assert tally(site, day) == tally(alone, day)
        found = site.files("found", day) / "found.csv"
        assert found.read_bytes() == (alone.files("found", day) / "found.csv").read_bytes()
    assert account_at(site, DAYS + 0.6, digests=True).differences == []
    assert not [name for name in files_under(site.store) if name.startswith("attempts/")]
    assert all(name.endswith(".done") for name in files_under(site.store) if name.startswith("orders/"))


def test_a_stream_that_is_killed_and_goes_on_in_its_engine_does_no_harm(
    options: Engines, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, site = options["Flink, worker pool"], site_of(tmp_path, discovery=True)
    try:
        for day in range(2):
            collect(site.store, site.campaign, values(150 + day), day=day)
        with streaming(site, engine) as first:
            real = ordering._await

            def killed(*arguments: object) -> None:
                first.kill()
                first.wait()
                real(*arguments)  # type: ignore[arg-type]

            with monkeypatch.context() as patch:
                patch.setattr(ordering, "_await", killed)
                assert site.run(3.1, sure=True).problems == []
        with streaming(site, engine), monkeypatch.context() as patch:
            only_by_stream(patch)
            for day in (2, 3):
                collect(site.store, site.campaign, values(150 + day), day=day)
                assert site.run(day + 1.5, sure=True).problems == []
    finally:
        for job in servers.cluster.ask("/jobs")["jobs"]:
            if job["status"] == "RUNNING":
                cancel = f"http://{servers.cluster.rest}/jobs/{job['id']}"
                urllib.request.urlopen(urllib.request.Request(cancel, method="PATCH"), timeout=10).close()  # our own
    assert [site.result(day)["received"] for day in range(4)] == [150, 151, 152, 153]
    assert account_at(site, 4.6, digests=True).differences == []
    # What the first one wrote after its command was killed is swept.
    assert site.run(4.7, sure=True).problems == []
    assert not [name for name in files_under(site.store) if name.startswith("attempts/")]
