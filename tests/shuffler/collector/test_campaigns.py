"""Campaign files that are damaged while they are collected: told, survived, and read again when they are whole."""

from __future__ import annotations

import asyncio
import gzip
import os
from datetime import timedelta
from pathlib import Path

import pytest

from hushcount.campaigns.dictionary import Dictionary, read_dictionary
from hushcount.clock import Clock
from hushcount.errors import UsageError
from service.passes import PassTaker
from shuffler.collector import service
from shuffler.collector.campaigns import Campaigns, read_campaigns
from tests.shuffler.collector.in_process import collector_of
from tests.shuffler.collector.running import make_site
from tests.shuffler.collector.test_uploads import soon

YEAR = timedelta(days=365)
WORDS = Dictionary(tuple(f"word-{number}" for number in range(300)))


def test_no_byte_that_is_altered_in_a_compressed_dictionary_is_more_than_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "words.txt.gz"
    whole = gzip.compress("".join(f"{word}\n" for word in WORDS.items).encode(), mtime=0)
    path.write_bytes(whole)
    assert read_dictionary(path) == WORDS
    refused = 0
    for place in range(len(whole)):
        altered = bytearray(whole)
        altered[place] ^= 0xFF
        path.write_bytes(altered)
        try:
            # What the checksum does not cover: time, system and flags of the header.
            assert read_dictionary(path) == WORDS
        except UsageError:
            refused += 1
    assert refused > len(whole) * 0.9


def test_a_fault_in_the_reading_of_campaigns_that_nobody_foresaw_ends_no_housekeeping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    site = make_site(tmp_path / "site")
    failing = False
    failures = 0

    def read(directory: Path, record: Path, taker: PassTaker, known: Campaigns, clock: Clock) -> Campaigns:
        nonlocal failures
        if failing:
            failures += 1
            raise ZeroDivisionError
        return read_campaigns(directory, record, taker, known, clock)

    monkeypatch.setattr(service, "_TICK_SECONDS", 0.1)
    monkeypatch.setattr(service, "read_campaigns", read)

    async def run() -> None:
        nonlocal failing
        collector = collector_of(site, YEAR)
        await collector.start()
        failing = True
        await soon(lambda: collector.faults() != [])
        told = f"the campaigns in {site.base / 'campaigns'} cannot be read: ZeroDivisionError"
        assert collector.faults() == [told]
        # Windows turn all the same, and what was read before is collected.
        noted = site.journal / str(collector.writer.window and collector.writer.window.name) / "words"
        noted.rename(site.base / "words")
        await soon(lambda: any(site.journal.glob("*/words/*/refused.json")))
        (target, *_) = collector.campaigns["words"].epochs[site.fingerprint()].targets.values()
        running = collector.writer.keep(target, os.urandom(target.sealed_bytes), 1, None)
        assert await running
        await soon(lambda: failures > 2)
        failing = False
        await soon(lambda: collector.faults() == [])
        await collector.stop()

    asyncio.run(run())
    assert caplog.messages.count("campaigns cannot be read") == 1
