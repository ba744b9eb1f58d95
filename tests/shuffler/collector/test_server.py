"""The server's end: whatever failed before, what was acknowledged is uploaded."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest
from uvicorn.server import ServerState

from service.server import Kept, listening, serve_on
from shuffler.collector.app import application
from shuffler.collector.service import Collector
from tests.shuffler.collector.in_process import collector_of
from tests.shuffler.collector.running import make_site

YEAR = timedelta(days=365)


def test_a_sweep_that_has_failed_keeps_no_report_from_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    site = make_site(tmp_path / "site")
    report = os.urandom(site.campaign().sealed_bytes("reports"))
    collectors = []

    async def fail(_state: ServerState) -> None:
        (collector,) = collectors
        (target, *_) = collector.campaigns["words"].epochs[site.fingerprint()].targets.values()
        assert await collector.writer.keep(target, report, 1, None)
        os.kill(os.getpid(), signal.SIGTERM)
        raise ZeroDivisionError

    def make() -> Collector:
        collectors.append(collector_of(site, YEAR))
        return collectors[0]

    monkeypatch.setattr("service.server.enforce_limits", fail)

    async def run() -> None:
        setup = collector_of(site, YEAR).setup
        with listening("127.0.0.1", 0) as listener:
            await serve_on(listener, make, application, setup.settings, Kept("collector", "journal", setup.journal))

    asyncio.run(run())
    assert site.sealed() == [report]
    assert "limits had failed" in caplog.messages
