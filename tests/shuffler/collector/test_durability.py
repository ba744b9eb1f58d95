"""What was acknowledged is kept: through crashes, full and read-only disks, stores that are away, and shutdowns."""

from __future__ import annotations

import os
import resource
from collections import Counter
from pathlib import Path

import pytest

from tests.shuffler.collector.crashing import Load, crash_and_recover
from tests.shuffler.collector.running import Site, limit_files, make_site, running, start, wait_for

SMALL = {"segment_bytes": 1 << 16, "least_free_bytes": 0}


def lengths_of(site: Site) -> dict[str, int]:
    campaign = site.campaign()
    return {stream: campaign.sealed_bytes(stream) for stream in campaign.streams}


def test_acknowledged_reports_survive_kill_9_exactly_once(tmp_path: Path) -> None:
    crash_and_recover(make_site(tmp_path / "site", collector=SMALL), times=3, seconds=0.2)


def test_a_shutdown_under_load_uploads_all_that_was_acknowledged(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", collector=SMALL)
    collector = start(site)
    load = Load(collector, dict(lengths_of(site)))
    wait_for(lambda: len(load.acknowledged) >= 200, what="the load")
    assert collector.stop() == 0
    load.stop()
    stored = Counter(site.sealed("reports")) + Counter(site.sealed("discovery"))
    assert not load.acknowledged - stored
    assert max(stored.values()) == 1
    assert [event["event"] for event in collector.events()][-1] == "stopped"


def test_a_disk_that_refuses_writes_loses_nothing_acknowledged_and_recovers(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site")
    with running(site) as collector:
        length = site.campaign().sealed_bytes("reports")
        kept = [os.urandom(length) for _ in range(10)]
        assert collector.post(b"".join(kept)).status_code == 202
        journal = next(site.journal.glob("*/*/*/*.journal"))
        limit_files(collector, journal.stat().st_size + 50)
        # The first write is cut short by the limit, and leaves a torn frame that must go.
        for _ in range(3):
            answer = collector.post(os.urandom(20 * length))
            assert answer.status_code == 503
            assert answer.json()["type"].endswith("storage_failing")
            assert int(answer.headers["retry-after"]) > 0
        wait_for(lambda: collector.get("/readyz").status_code == 503)
        assert "EFBIG" in collector.get("/readyz").text
        limit_files(collector, resource.RLIM_INFINITY)
        after = [os.urandom(length) for _ in range(5)]
        assert collector.post(b"".join(after)).status_code == 202
        wait_for(lambda: collector.get("/readyz").status_code == 200)
        assert collector.stop() == 0
    assert Counter(site.sealed()) == Counter(kept + after)
    events = [event["event"] for event in collector.events()]
    assert events.count("storage failing") == 1
    assert events.count("storage recovered") == 1


def test_reports_are_refused_while_the_disk_has_less_than_the_least_free_space(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", collector={"least_free_bytes": 1 << 50})
    with running(site) as collector:
        answer = collector.post(os.urandom(site.campaign().sealed_bytes("reports")))
        assert answer.status_code == 503
        assert answer.json()["type"].endswith("disk_full")
        assert "less than" in collector.get("/readyz").json()["faults"][0]


def test_a_store_that_is_away_is_waited_for_and_nothing_is_lost(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", collector=SMALL)
    # A file where the store should be: whatever is written there fails.
    (site.base / "store").write_text("")
    length = site.campaign().sealed_bytes("reports")
    sent = [os.urandom(length) for _ in range(2000)]
    with running(site) as collector:
        for part in range(0, 2000, 200):
            assert collector.post(b"".join(sent[part : part + 200])).status_code == 202
        wait_for(lambda: "store" in collector.get("/readyz").text)
        assert collector.post(os.urandom(length)).status_code == 202
        (site.base / "store").unlink()
        wait_for(lambda: collector.get("/readyz").status_code == 200)
        wait_for(lambda: len(site.sealed()) > 1000, what="the writing of segments")
        collector.stop()
    assert set(sent) <= set(site.sealed())
    assert len(site.sealed()) == 2001


def test_a_shutdown_without_a_store_leaves_the_journals_for_the_next_start(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site")
    (site.base / "store").write_text("")
    body = os.urandom(site.campaign().sealed_bytes("reports"))
    with running(site) as collector:
        assert collector.post(body).status_code == 202
        assert collector.stop() == 0
    assert "journals stay" in collector.log.read_text()
    (site.base / "store").unlink()
    with running(site):
        wait_for(lambda: site.sealed() == [body])


def test_what_waits_is_bounded(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", collector={"queue_reports": 5})
    with running(site) as collector:
        length = site.campaign().sealed_bytes("reports")
        # More than fits is taken only while nothing else waits, else a client that sends batches could never send.
        assert collector.post(os.urandom(50 * length)).status_code == 202
        load = Load(collector, {"reports": length})
        wait_for(lambda: load.refused[503] > 0, what="a refusal")
        load.stop()
        collector.stop()
    assert set(load.refused) == {503}
    assert load.acknowledged.keys() <= set(site.sealed())
    assert len(site.sealed()) == 50 + sum(load.acknowledged.values())


def test_a_second_collector_on_the_same_journals_is_refused(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site")
    with running(site), pytest.raises(AssertionError, match="in use"):
        start(site)
