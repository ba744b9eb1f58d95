"""What one client may send in a window: no more, however it sends it, and others are not kept waiting."""

from __future__ import annotations

import asyncio
import os
import resource
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hushcount.collection.windows import duration, window_at
from service.client_limit import ClientLimit
from service.refusals import Refused
from shuffler.collector.service import REPORTS
from tests.shuffler.collector.running import LONG, STREAM, Site, limit_files, make_site, running
from tests.support import patient

TOKEN = {"client-token": "a" * 16}


def limited_site(base: Path, most: int) -> Site:
    return make_site(base, window=LONG, collector={"authentication": "client-token", "most_reports_a_client": most})


def test_a_client_that_floods_is_told_to_wait_for_the_next_window_and_others_are_not(tmp_path: Path) -> None:
    site = limited_site(tmp_path / "site", 3)
    length = site.campaign().sealed_bytes("reports")
    flood, other = ({"client-token": name * 16} for name in "ab")
    with running(site) as collector:
        assert collector.post(os.urandom(2 * length), headers=flood).status_code == 202
        answer = collector.post(os.urandom(2 * length), headers=flood)
        assert answer.status_code == 429
        assert answer.json()["type"].endswith("too_many_reports")
        assert "3 reports" in answer.json()["detail"]
        assert 0 < int(answer.headers["retry-after"]) <= duration(LONG).total_seconds()
        assert collector.post(os.urandom(length), headers=flood).status_code == 202
        assert collector.post(os.urandom(length), headers=flood).status_code == 429
        assert collector.post(os.urandom(3 * length), headers=other).status_code == 202
        assert collector.stop() == 0
    assert len(site.sealed()) == 6


def test_more_reports_in_one_request_than_a_client_may_send_are_refused_for_good(tmp_path: Path) -> None:
    site = limited_site(tmp_path / "site", 2)
    length = site.campaign().sealed_bytes("reports")
    with running(site) as collector:
        answer = collector.post(os.urandom(5 * length), headers=TOKEN)
        assert answer.status_code == 413
        assert answer.json()["most_reports"] == 2
        assert "at most 2 reports in one request" in answer.json()["detail"]
        assert "retry-after" not in answer.headers
        assert collector.post(os.urandom(2 * length), headers=TOKEN).status_code == 202


def test_requests_at_the_same_time_pass_no_more_than_the_most(tmp_path: Path) -> None:
    site = limited_site(tmp_path / "site", 2)
    length = site.campaign().sealed_bytes("reports")
    with running(site) as collector:

        async def post_all() -> list[int]:
            async with patient.AsyncClient() as client:
                url = collector.url + collector.path()
                posts = (client.post(url, content=os.urandom(length), headers={**STREAM, **TOKEN}) for _ in range(60))
                return [answer.status_code for answer in await asyncio.gather(*posts)]

        assert Counter(asyncio.run(post_all())) == {202: 2, 429: 58}
        assert collector.stop() == 0
    assert len(site.sealed()) == 2


def test_reports_that_were_not_kept_count_for_no_client(tmp_path: Path) -> None:
    site = limited_site(tmp_path / "site", 1)
    report = os.urandom(site.campaign().sealed_bytes("reports"))
    with running(site) as collector:
        limit_files(collector, 0)
        assert collector.post(report, headers=TOKEN).status_code == 503
        limit_files(collector, resource.RLIM_INFINITY)
        assert collector.post(report, headers=TOKEN).status_code == 202
        assert collector.post(report, headers=TOKEN).status_code == 429


def test_an_allowance_is_of_one_window_and_counts_nothing_unasked() -> None:
    window = window_at(datetime(2026, 1, 1, tzinfo=timezone.utc), timedelta(days=365))
    following = window_at(window.end, window.length)
    limit = ClientLimit(1, REPORTS)
    limit.reserve(b"client", 1, window)
    with pytest.raises(Refused):
        limit.reserve(b"client", 1, window)
    limit.give_back(b"client", 1, window)
    limit.reserve(b"client", 1, window)
    limit.reserve(b"client", 1, following)
    # What was reserved in a window that is over gives none back in this one.
    limit.give_back(b"client", 1, window)
    with pytest.raises(Refused):
        limit.reserve(b"client", 1, following)
    limit.reserve(None, 5, window)
    unlimited = ClientLimit(None, REPORTS)
    unlimited.reserve(b"client", 100, window)
    unlimited.reserve(b"client", 100, window)


def test_invented_tokens_take_a_bounded_memory_and_lock_nobody_out() -> None:
    """97 bytes for each were kept until the window ended, however many came."""
    window = window_at(datetime(2026, 1, 1, tzinfo=timezone.utc), timedelta(days=365))
    limit = ClientLimit(2, REPORTS, most_clients=1000)
    for number in range(20_000):
        limit.reserve(b"invented %d" % number, 1, window)
        assert limit.clients <= 1000
        if number % 400 == 0:
            # A client that is new is served, whatever came before it.
            limit.reserve(b"honest %d" % number, 2, window)


def test_a_client_that_goes_on_sending_is_not_forgotten_among_invented_ones() -> None:
    window = window_at(datetime(2026, 1, 1, tzinfo=timezone.utc), timedelta(days=365))
    limit = ClientLimit(2, REPORTS, most_clients=1000)
    limit.reserve(b"flood", 2, window)
    for number in range(20_000):
        limit.reserve(b"invented %d" % number, 1, window)
        if number % 400 == 0:
            with pytest.raises(Refused):
                limit.reserve(b"flood", 1, window)
    # What is given back of a client that was forgotten meanwhile gives it no more than it may send.
    limit.reserve(b"forgotten", 2, window)
    for number in range(2000):
        limit.reserve(b"more %d" % number, 1, window)
    limit.give_back(b"forgotten", 2, window)
    limit.reserve(b"forgotten", 1, window)
    limit.give_back(b"forgotten", 2, window)
    limit.reserve(b"forgotten", 2, window)
    with pytest.raises(Refused):
        limit.reserve(b"forgotten", 1, window)
