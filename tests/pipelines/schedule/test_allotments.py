"""A client has the cap in each of two windows that share a batch: what is stated, released and charged is for both."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Stream
from hushcount.collection.segment_names import segment_named
from hushcount.collection.tilings import Tiling
from hushcount.discovery.keep_rules import KeepRule
from hushcount.many_clients import ManyClients
from hushcount.senders import Senders
from hushcount.wire.sealing import Octets
from pipelines.deployment.settings import Deployment
from pipelines.jobs.results import read_tally
from pipelines.outputs.received_summary import file_of
from pipelines.schedule.run import run
from shuffler.collector.journals.watched_clock import WatchedClock
from shuffler.collector.journals.writer import Writer
from shuffler.collector.metrics import Metrics
from shuffler.collector.uploads.upload_queue import UploadQueue
from tests.shuffler.collector.running import Site, make_site
from tests.shuffler.collector.test_windows import HOUR, target_of, uploader_of
from tests.support.clocks import Hands, stopped
from tests.support.jobs import found, summary
from tests.support.statistics import FAILURE

OTHERS = 40
"""Clients of a window: fewer than the minimum batch, and in two windows more."""
EACH = 10
VALUES = [value for value in ("first", "second", "third") for _ in range(EACH)]
"""Of a window's clients, with some that have none: in two windows the campaign's rule keeps them nearly always."""


async def collected(site: Site, first: float) -> None:
    """Let a real collector keep reports of one client, and of others, in each of two windows.

    Args:
        site: where.
        first: when the first window begins, in seconds since 1970.
    """
    site.journal.mkdir(exist_ok=True)
    client, clock, metrics = ManyClients(site.campaign()), Hands(first), Metrics()
    uploads = UploadQueue(uploader_of(site), metrics)
    writer = Writer(
        site.journal,
        Tiling(HOUR),
        1 << 20,
        1000,
        uploads.hand_over,
        metrics,
        WatchedClock(3600.0, clock.clock),
        "client-token",
    )
    await writer.start()
    working = asyncio.create_task(writer.run())
    for window in range(2):
        clock.now = first + 3600 * window + 1
        made: dict[Stream, Octets] = {
            "reports": client.reports(["word-1"] * (OTHERS + 1)),
            "discovery": client.discovery_reports([*VALUES, *[None] * (OTHERS + 1 - len(VALUES))]),
        }
        for stream, reports in made.items():
            length = site.campaign().sealed_bytes(stream)
            target = replace(target_of(site), stream=stream, sealed_bytes=length, record_bytes=length + 40)
            await writer.turn([target], {})
            for number, sealed in enumerate(reports):
                # The first client is the same one in each window.
                name = b"the one client twice" if number == 0 else b"client %016d" % (100 * window + number)
                assert await writer.keep(target, sealed.tobytes(), 1, name)
    clock.now = first + 7201
    await writer.turn([target], {})
    working.cancel()
    await writer.stop()
    await uploads.stop()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site whose run counted a batch of two windows, neither of enough reports for itself."""
    site = make_site(tmp_path_factory.mktemp("site"), window="1h")
    site.config.write_text(f'ledger = "ledger.db"\n{site.config.read_text()}')
    first = time.time() // 3600 * 3600
    asyncio.run(collected(site, first))
    done = run(Deployment.read(site.config), clock=stopped(datetime.fromtimestamp(first + 7200 + 1200, timezone.utc)))
    assert done.problems == []
    return site


def output(site: Site, folder: str) -> Path:
    (path,) = (site.base / "store" / folder / "words").iterdir()
    return path


def test_a_client_that_sends_its_cap_in_each_of_two_windows_is_stated_and_charged_for_both(site: Site) -> None:
    results = summary(output(site, "results"))
    # Nothing was over the cap: the one client has a token in each window, and no one can see that they are its.
    assert results["accepted"] == 2 * (OTHERS + 1)
    for folder in ("shuffled", "released", "found", "results"):
        said = summary(output(site, folder))
        assert said["allotments"] == {"reports": 2, "discovery": 2}
        assert (
            said["privacy"]["unit"] == "one client that sends at most 1 report a stream in each of 2 collector windows"
        )
    stated = results["privacy"]
    assert stated["local"]["epsilon"] == pytest.approx(2 * stated["local"]["epsilon_per_report"])
    charged = results["ledger"]["charged"]
    part = stated["shuffled"] or stated["local"]
    assert (charged["epsilon"], charged["delta"]) == (part["epsilon"], part["delta"])
    assert charged["epsilon"] >= 2 * part["epsilon_per_report"]
    tally = read_tally(file_of(str(output(site, "results") / "tally.npz")), site.campaign())
    assert tally.senders == Senders("client-token", 2, 2)


def test_what_is_revealed_of_such_a_batch_is_drawn_by_the_rule_for_both(site: Site) -> None:
    """Fails with probability below 1e-6; by the campaign's own rule with more than 0.95."""
    stated = summary(output(site, "found"))["privacy"]["discovery"]
    own = site.campaign().require_keep_rule()
    rule = KeepRule(own.name, own.epsilon, own.delta, own.relation, 2 * own.cap)
    assert (stated["epsilon"], stated["delta"]) == (own.epsilon, own.delta)
    assert stated["clients_for_even_chance"] == rule.count_for(0.5)
    assert rule.keep_probability(2 * EACH) ** 3 < FAILURE
    assert own.keep_probability(2 * EACH) ** 3 > 0.95
    assert set(found(output(site, "found"))) < set(VALUES)


def test_segments_name_the_key_of_their_window_and_how_their_senders_were_told_apart(site: Site) -> None:
    names = {
        (window.name, stream): [segment_named(path.name) for path in (window / stream).glob("*.blocks")]
        for window in site.windows()
        for stream in ("reports", "discovery")
        if (window / stream).exists()
    }
    assert len(names) == 4
    keys = {}
    for (window, _), (named,) in names.items():
        assert named is not None
        assert (named.collector, named.way) == ("one", "client-token")
        assert keys.setdefault(window, named.key) == named.key
    assert len(set(keys.values())) == 2
