"""Senders and a real collector: what `report` acknowledged is in the store, whatever is killed and whatever changes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from hushcount.campaigns.signatures import signature_path
from hushcount.delivery import Delivery, Sender
from hushcount.policy import Policy, terms_of
from tests.hushcount.campaigns.vouched import KEY, public_part, signed
from tests.hushcount.delivery.test_crashes import end_claims
from tests.shuffler.collector.running import (
    Running,
    Site,
    add_campaign,
    make_site,
    now_text,
    running,
    start,
    wait_for,
    write_collection,
)


def sign(site: Site, epoch: int) -> None:
    path = site.campaign_file(epoch=epoch)
    signature_path(path).write_text(signed(site.campaign(epoch=epoch)).text())


def prepared(base: Path, cap: int = 50, axis: tuple[str, Sequence[str]] | None = None, **collector: Any) -> Site:
    """Return a deployment with a signed campaign and a high cap; `axis` is a public axis and its coordinates."""
    site = make_site(base, collector={"authentication": "client-token", **collector})
    path = site.campaign_file()
    # Both are changed before anything is published.
    content = json.loads(path.read_text())
    content["shuffle"]["cap"] = cap
    if axis is not None:
        listed = [{"name": axis[0], "public": True, "values": axis[1]}]
        content["axes"] = {"listed": listed, "key": bytes(range(32)).hex()}
    path.write_text(json.dumps(content))
    sign(site, 1)
    return site


def policy(site: Site) -> Policy:
    return Policy(**dict(terms_of(site.campaign(), (public_part(KEY),))))


def sender(site: Site, collector: Running, folder: Path | None, **options: Any) -> Sender:
    return Sender(collector.url, policy(site), folder, delay=timedelta(), **options)


@contextmanager
def stopped(site: Site) -> Iterator[Running]:
    """Run a collector, which has uploaded all that it took when the block ends."""
    with running(site) as collector:
        yield collector
        assert collector.stop() == 0


def test_reports_of_several_people_are_in_the_store_under_a_token_of_each(tmp_path: Path) -> None:
    site = prepared(tmp_path / "site")
    with stopped(site) as collector:
        for number in range(3):
            with sender(site, collector, tmp_path / str(number)) as one:
                for value in ("word-1", "word-2", "unknown"):
                    one.report(value)
                wait_for(lambda one=one: one._queue.waiting() == 0)
            assert one.deliver() == Delivery()
            assert {event.what for event in one.log} <= {"fetched", "queued", "sent", "unchanged"}
    for stream in ("reports", "discovery"):
        assert len(set(site.sealed(stream))) == len(site.sealed(stream)) == 9
        assert (
            len({bytes(row[:16]) for rows in site.stored(stream) for row in rows.view("u1").reshape(len(rows), -1)})
            == 3
        )


def test_a_collector_that_is_killed_again_and_again_gets_every_report_and_copies_are_the_same_bytes(
    tmp_path: Path,
) -> None:
    site = prepared(tmp_path / "site", cap=1000)
    home, made = tmp_path / "own", 0
    for turn in range(4):
        collector = start(site)
        one = sender(site, collector, home, most_queued=10**6)
        one.start()
        for _ in range(10 * (1 + turn)):
            one.report("word-1")
            made += 1
        collector.kill()
        one.close()
        end_claims(home)
    with stopped(site) as collector:
        one = sender(site, collector, home)
        while one.deliver(early=True).waiting:
            pass
        assert one.spent().streams[0].reports == made
    for stream in ("reports", "discovery"):
        assert len(set(site.sealed(stream))) == made


def test_an_epoch_that_ends_while_reports_wait_is_followed(tmp_path: Path) -> None:
    site = prepared(tmp_path / "site")
    with stopped(site) as collector:
        keeping = sender(site, collector, tmp_path / "keeping", keep_values=True)
        other = sender(site, collector, tmp_path / "other")
        for one in (keeping, other):
            one.report("word-1")
        add_campaign(site, "words", 2)
        path = site.campaign_file(epoch=2)
        content = json.loads(path.read_text())
        content["shuffle"]["cap"] = 50
        path.write_text(json.dumps(content))
        sign(site, 2)
        over = now_text(-1.0)
        first = {"epoch": 1, "begins": "2020-01-01T00:00:00Z", "ends": over, "grace_ends": over}
        write_collection(site, "words", [first, {"epoch": 2, "begins": over}])
        wait_for(lambda: collector.get("/v1/campaigns/words").json()["epoch"] == 2)
        assert other.deliver() == Delivery(dropped={"epoch_closed": 2})
        assert keeping.deliver() == Delivery(sent=2, remade=2)
    for stream in ("reports", "discovery"):
        assert site.sealed(stream, epoch=1) == []
        assert len(site.sealed(stream, epoch=2)) == 1


def test_batches_fit_into_what_a_collector_takes(tmp_path: Path) -> None:
    site = prepared(tmp_path / "site", most_body_bytes=1024, most_reports_a_client=24)
    with stopped(site) as collector:
        one = sender(site, collector, tmp_path / "own")
        for _ in range(10):
            one.report("word-1")
        assert one.deliver() == Delivery(sent=20)
        for _ in range(5):
            one.report("word-1")
        done = one.deliver()
        assert done.sent + done.waiting == 10
        assert done.waiting > 0, "a client may send 24 in a window"
        assert done.held_until is not None
    assert len(site.sealed("reports")) + len(site.sealed("discovery")) == 20 + done.sent
