"""The server's end: whatever failed before, what was acknowledged is uploaded."""

from __future__ import annotations

import asyncio
import logging
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


def test_a_signal_at_the_moment_of_the_start_ends_it_properly(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever reads that it started may end it at once."""
    site = make_site(tmp_path / "site")
    log = logging.getLogger("hushcount.collector")

    class Reader(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage() == "started":
                os.kill(os.getpid(), signal.SIGTERM)

    async def run() -> None:
        setup = collector_of(site, YEAR).setup
        with listening("127.0.0.1", 0) as listener:
            kept = Kept("collector", "journal", setup.journal)
            await serve_on(listener, lambda: collector_of(site, YEAR), application, setup.settings, kept)

    reader = Reader()
    log.addHandler(reader)
    try:
        with caplog.at_level(logging.INFO, log.name):
            asyncio.run(run())
    finally:
        log.removeHandler(reader)
    assert [message for message in caplog.messages if message in ("started", "stopped")] == ["started", "stopped"]
