"""Counts of refusals: each request once, through full disks and damaged files, and none of them ends the collector."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from hushcount.collection.windows import duration
from tests.shuffler.collector.in_process import collector_of
from tests.shuffler.collector.running import (
    LENGTH,
    LONG,
    Running,
    Site,
    add_campaign,
    make_site,
    running,
    start,
    wait_for,
    write_collection,
)
from tests.shuffler.collector.test_damage import metric


def noted(site: Site, campaign: str = "words") -> Path:
    """Return the file of counts of a campaign in the newest window."""
    return max(site.journal.glob(f"2*/{campaign}/*/refused.json"))


def counts(site: Site, campaign: str = "words") -> Any:
    return json.loads(noted(site, campaign).read_bytes())["refused"]


def test_what_was_written_before_the_disk_failed_is_not_counted_again(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", window=LONG)
    for campaign in ("early", "late"):
        add_campaign(site, campaign, 1)
        write_collection(site, campaign, [{"epoch": 1, "begins": "2020-01-01T00:00:00Z"}])
    with running(site) as collector:
        # A folder in the place of the file: neither read nor written.
        broken = noted(site)
        data = broken.read_bytes()
        broken.unlink()
        broken.mkdir()
        for campaign in ("early", "words", "late"):
            for _ in range(3):
                assert collector.post(b"x", campaign=campaign).status_code == 400
        wait_for(lambda: "cannot be written" in collector.get("/readyz").text)
        # Some more looks of the collector.
        time.sleep(0.3)
        broken.rmdir()
        broken.write_bytes(data)
        wait_for(lambda: collector.get("/readyz").status_code == 200)
        assert collector.stop() == 0
    assert [counts(site, campaign) for campaign in ("early", "words", "late")] == [{"wrong_length": 3}] * 3


def test_damaged_counts_are_put_aside_and_counted_and_collecting_goes_on(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", window=LONG)

    def begun_anew() -> bool:
        try:
            return bool(counts(site) == {"wrong_length": 1})
        except (OSError, ValueError):
            return False

    with running(site) as collector:
        for number, damaged in enumerate(["{", "[]", '{"fingerprint": "ab", "refused": {}}', ""], start=1):
            # In one step: the collector may be reading.
            (tmp_path / "damaged").write_text(damaged)
            (tmp_path / "damaged").replace(noted(site))
            assert collector.post(b"x").status_code == 400
            wait_for(lambda: metric(collector, "damaged_counts_total") == number, what=repr(damaged))  # noqa: B023
            (aside,) = (site.journal / "damaged").iterdir()
            assert aside.read_text() == damaged
            wait_for(begun_anew)
            assert collector.get("/readyz").status_code == 200
        assert collector.stop() == 0
        assert [event["event"] for event in collector.events()][-1] == "stopped"
    assert counts(site) == {"wrong_length": 1}


def test_a_window_whose_counts_are_damaged_still_gets_its_manifest(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", window=LONG)
    collector: Running = start(site)
    collector.kill()
    window = noted(site).parts[-4]
    noted(site).write_text("{")
    with running(site, ahead=LENGTH) as collector:
        wait_for(lambda: window in {manifest.window for manifest in site.manifests()}, what="the manifest")
        assert metric(collector, "damaged_counts_total") == 1
        assert collector.stop() == 0
    (manifest,) = [manifest for manifest in site.manifests() if manifest.window == window]
    assert manifest.fingerprint == site.campaign().fingerprint.hex()
    assert manifest.refused == {}
    assert len(list((site.journal / "damaged").iterdir())) == 1


@pytest.mark.parametrize(
    ("body", "reason"), [(b"1\r\nx", "too_slow"), (b"no length\r\n", "malformed_request")], ids=["slow", "no HTTP"]
)
def test_a_refusal_while_the_body_comes_is_counted_for_its_campaign(tmp_path: Path, body: bytes, reason: str) -> None:
    site = make_site(tmp_path / "site", window=LONG, collector={"body_seconds": 0.1 if reason == "too_slow" else 60})
    with running(site) as collector:
        with socket.create_connection(("127.0.0.1", collector.port), timeout=60) as connection:
            lines = f"POST {collector.path()} HTTP/1.1\r\nHost: here\r\nContent-Type: application/octet-stream\r\n"
            connection.sendall(lines.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + body)
            assert f"urn:hushcount:problem:{reason}".encode() in connection.recv(65536)
        assert metric(collector, f'requests_refused_total{{reason="{reason}"}}') == 1
        assert metric(collector, "requests_incomplete_total") == 0
        assert collector.stop() == 0
    assert counts(site) == {reason: 1}


def test_a_part_that_failed_is_logged_at_the_end_and_the_others_keep_what_they_hold(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site = make_site(tmp_path / "site", window=LONG)
    report = bytes(site.campaign().sealed_bytes("reports"))

    async def fail() -> None:
        raise ZeroDivisionError

    async def run() -> None:
        collector = collector_of(site, duration(LONG))
        await collector.start()
        collector._tasks.insert(0, asyncio.create_task(fail()))
        (target, *_) = collector.campaigns["words"].epochs[site.fingerprint()].targets.values()
        assert await collector.writer.keep(target, report, 1, None)
        assert "a part of the collector has failed: restart the collector" in collector.faults()
        await collector.stop()

    asyncio.run(run())
    assert site.sealed() == [report]
    assert "a part had failed" in caplog.messages


def test_counts_that_are_being_written_at_the_end_are_counted_once(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", window=LONG)

    async def run() -> None:
        collector = collector_of(site, duration(LONG))
        await collector.start()
        for _ in range(20):
            collector.refusals["words", 1, "wrong_length"] += 1
            turn = asyncio.create_task(collector._turn())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            turn.cancel()
            await asyncio.gather(turn, return_exceptions=True)
        await collector.stop()

    asyncio.run(run())
    assert counts(site) == {"wrong_length": 20}
