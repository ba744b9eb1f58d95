"""Each stream of a campaign closes on its own minimum, and what waits is said before it is dropped."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Stream
from hushcount.collection.windows import window_text
from pipelines.audit.doctor import examine
from pipelines.epochs.next_epoch import _windows
from pipelines.epochs.tracked_items import TrackedItems
from pipelines.handover.hops import HopName
from pipelines.log.facts import Head, Hopped
from pipelines.log.fold import Fold
from pipelines.outputs.counts import HopCounts, StreamCounts
from pipelines.schedule.done import Done
from tests.support.collecting import collect, window_name
from tests.support.jobs import done, found
from tests.support.site import FLOOR, Site, account_at, at


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, discovery=True)


def bring(site: Site, day: int, reports: int, discovery: int) -> None:
    """Let a collector bring so many of each stream on a day."""
    for stream, number in (("reports", reports), ("discovery", discovery)):
        if number:
            collect(site.store, site.campaign, ["nobody"] * number, day=day, collector=stream, streams=(stream,))


def states(site: Site, day: float) -> dict[tuple[str, str], dict[str, int]]:
    return {(one.window, one.stream): one.states for one in account_at(site, day).windows}


def hops(site: Site, day: float, batch: str) -> list[str]:
    return list(dict.fromkeys(one.hop for one in account_at(site, day).hops if one.batch == batch))


def test_a_stream_below_its_minimum_holds_up_no_other_and_its_loss_is_said_before(site: Site) -> None:
    bring(site, 0, reports=300, discovery=5)
    first = site.run(1.1)
    assert hops(site, 1.1, site.batch(0)) == ["shuffle", "analyze"]
    assert (first.problems, first.dropped) == ([], [])
    assert site.result(0)["streams"]["reports"]["accepted"] == 300
    (waits,) = first.waiting
    oldest = window_text(window_name(0))
    few = f"5 discovery wait, too few for a result, which needs {FLOOR}"
    assert f"{few}; 5 of window {oldest} are dropped as too_late after {at(3):%Y-%m-%d %H:%M}" in waits
    assert f"unless at least {FLOOR - 5} more come by then" in waits
    assert verdicts(site, 1.2) == ("warning", "warning")
    # The window of the third day is the last one that can take them.
    assert site.run(2.1).waiting == first.waiting
    assert verdicts(site, 2.1) == ("bad", "bad")
    last = site.run(3.1)
    assert last.waiting == []
    (dropped,) = last.dropped
    assert "discovery-000000.blocks: 5 reports are too late" in dropped
    assert site.run(3.2).dropped == []
    assert verdicts(site, 3.2) == (None, None)
    assert states(site, 3.2) == {
        (window_name(0), "reports"): {"batched": 300},
        (window_name(0), "discovery"): {"too_late": 5},
    }
    assert account_at(site, 3.2).differences == []


def verdicts(site: Site, day: float) -> tuple[str | None, str | None]:
    """Return what status and doctor say of the discovery reports that wait."""
    waiting = {one.stream: one.verdict for one in account_at(site, day).waiting}
    checks = {check.name: check.verdict for check in examine(site.deployment, at(day))}
    return waiting.get("discovery"), checks.get("waiting discovery of epoch 1 of words")


def test_windows_of_one_stream_and_of_both(site: Site) -> None:
    """Discovery alone, then what waited for it with the next window, in a batch of both."""
    bring(site, 0, reports=20, discovery=100)
    site.run(1.1)
    assert hops(site, 1.1, site.batch(0)) == ["shuffle", "release", "discover"]
    assert found(site.store / "found" / "words" / site.batch(0)) == ["nobody"]
    bring(site, 1, reports=60, discovery=70)
    site.run(2.1)
    assert hops(site, 2.1, site.batch(1)) == ["shuffle", "release", "discover", "analyze"]
    assert site.result(1)["streams"]["reports"]["accepted"] == 80
    assert site.run(2.2) == Done()
    assert "all numbers agree" in done("status", "--config", site.config).out
    rows = done("ask", "item", "--config", site.config, "--campaign", "words", "--json").json["rows"]
    assert {row["window"] for row in rows} == {window_name(1)}


def test_a_window_of_discovery_alone_does_not_show_that_an_item_is_unseen(site: Site) -> None:
    """Items age out by windows of estimates."""
    names = [f"{window_name(day)}-000001-{'0' * 16}" for day in range(3)]
    done = {
        name: {hop: hopped(hop, stream) for hop in ("discover", "analyze")}
        for name, stream in zip(names, ("reports", "discovery", "reports"), strict=True)
    }
    items = TrackedItems(items=(), batches=tuple(names))
    windows = _windows(Fold("words", done=done), site.deployment, items)
    assert windows == (window_name(0), window_name(2))


def hopped(hop: HopName, stream: Stream) -> Hopped:
    """Return what a hop counted of a batch of one stream: nothing if it reads the other."""
    streams = {stream: StreamCounts(5, 5, {})} if (hop == "analyze") == (stream == "reports") else {}
    return Hopped(Head(1, 1, ""), at(1), None, None, HopCounts.of(hop, streams), None, None)


def test_reports_of_a_campaign_file_that_is_not_known_here_are_said_to_be_lost_in_time(site: Site) -> None:
    bring(site, 0, reports=300, discovery=0)
    (site.root / "campaigns" / "words").rename(site.root / "aside")
    site.epochs.clear()
    site.publish(1)
    assert "is not published here: publish it" in site.run(1.1).waiting[0]
    assert [one.verdict for one in account_at(site, 1.2).waiting] == ["bad"]
