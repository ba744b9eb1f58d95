"""Which items are followed from epoch to epoch: when they join, when they were seen, and when they leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.discovery.keep_rules import KeepRule
from pipelines.epochs.tracked_items import Decisions, TrackedItem, TrackedItems, found_items, updated
from pipelines.jobs.found import write_found
from tests.support.collecting import DAY, START, collect, window_name
from tests.support.jobs import files_of
from tests.support.next_epoch import AT_ONCE, NEW, collection, follow_with, items, newest, sent, tracked
from tests.support.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(
        tmp_path,
        discovery=True,
        settings="",
        tail=f"[next_epoch.words]\n{AT_ONCE}unseen_windows = 2\ntarget_rank = 2\n",
    )


@pytest.mark.long
def test_a_discovered_item_joins_the_next_epoch_and_ages_out_when_unseen(site: Site) -> None:
    """Fails by chance with probability below 1e-8: if in half of six windows an item that nobody holds is detected."""
    collect(site.store, site.campaign, sent(200), day=0)
    finished = site.run(1.1)
    assert finished.published == ["words/2"]
    second = newest(site)
    assert items(second) == ("alpha", "beta", "gamma", NEW)
    first, following = collection(site).epochs
    assert first.ends == following.begins == START + 2 * DAY
    assert first.grace_ends == START + 4 * DAY
    assert second.discovery is not None
    assert Campaign.read(site.campaign).discovery is not None
    assert second.discovery.hash_key != Campaign.read(site.campaign).discovery.hash_key  # type: ignore[union-attr]
    assert site.run(1.2).published == []

    path = site.root / "campaigns" / "words" / following.file
    collect(site.store, path, sent(200), day=2)
    site.run(3.1)
    row = next(line for line in estimates(site, 2, 2) if line.startswith(f'"{NEW}"'))
    assert float(row.split(",")[1]) > 100
    assert items(newest(site))[-1] == NEW

    path = site.root / "campaigns" / "words" / collection(site).epochs[-1].file
    for day in range(4, 10):
        collect(site.store, path, sent(0), day=day)
        if site.run(day + 1.1).published and NEW not in items(newest(site)):
            break
    assert day >= 5, "it left after one window"
    assert items(newest(site)) == ("alpha", "beta", "gamma")


def estimates(site: Site, day: int, epoch: int) -> list[str]:
    folder = site.store / "results" / "words" / site.batch(day, epoch)
    return (files_of(folder) / "estimates.csv").read_text().splitlines()


@pytest.mark.long
def test_an_item_ages_out_by_windows_of_which_the_analyzer_is_done_with_every_batch(tmp_path: Path) -> None:
    """Fails by chance with probability 1e-9: an item that nobody holds is detected in one window of a thousand."""
    site = Site(tmp_path, discovery=True, settings='collectors = ["one", "two"]')
    follow_with(site, "unseen_windows = 1\n")
    for collector in ("one", "two"):
        collect(site.store, site.campaign, sent(100, 200), day=0, collector=collector)
    assert site.run(1.1).published == ["words/2"]
    second = site.campaign.with_name("epoch-000002.json")
    # The window is not due: nobody has looked at it. Some of its reports are of the epoch before.
    for path in (site.campaign, second):
        collect(site.store, path, sent(0, 200), day=2, collector="one")
    assert hops(site, 3.001) == []
    # Its batches are shuffled, and nobody has opened them.
    collect(site.store, second, sent(0, 200), day=2, collector="two")
    config = site.config.read_text()
    site.config.write_text(f'parties = ["shuffler", "aux-server"]\n{config}')
    assert hops(site, 3.1) == ["shuffle", "shuffle", "release", "release"]
    # Of one all is known; of the other, what was discovered is known, and what was counted is not.
    site.config.write_text(config)
    block = next((site.store / "shuffled" / "words" / site.batch(2, 2)).glob("*/reports/*.blocks"))
    aside = block.rename(block.with_suffix(".aside"))
    assert hops(site, 3.2, problems=1) == ["discover", "discover", "analyze"]
    aside.rename(block)
    assert items(newest(site)) == ("alpha", "beta", "gamma", NEW)
    for day in (3, 4, 5):
        if site.run(day + 0.3).published:
            break
        for collector in ("one", "two"):
            collect(site.store, second, sent(0, 200), day=day, collector=collector)
    assert items(newest(site)) == ("alpha", "beta", "gamma")


def hops(site: Site, day: float, problems: int = 0) -> list[str]:
    """Return the hops of a run that publishes nothing and has so many problems."""
    finished = site.run(day)
    assert finished.published == []
    assert len(finished.problems) == problems
    return [name.rpartition(" ")[2] for name in finished.hops]


@pytest.mark.long
def test_a_batch_that_is_analyzed_late_counts_and_does_not_say_what_to_plan_for(site: Site) -> None:
    """Fails by chance with probability below 1e-12: the third item's counts are 9 standard errors from 0.177 of all."""
    follow_with(site, "target_rank = 3\n")
    config = site.config.read_text()
    site.config.write_text(f'parties = ["shuffler", "aux-server"]\n{config}')
    collect(site.store, site.campaign, ["alpha", "beta", "gamma"] * 400, day=0)
    collect(site.store, site.campaign, ["alpha", "beta"] * 200 + [NEW] * 200, day=1)
    site.run(2.1)
    site.config.write_text(config)
    (block,) = (site.store / "shuffled" / "words" / site.batch(0)).glob("*/reports/*.blocks")
    aside = block.rename(block.with_suffix(".aside"))
    assert len(site.run(2.2).problems) == 1
    assert tracked(site).batches == (site.batch(1),)
    share = tracked(site).target_share
    assert share is not None
    assert share < 0.2
    aside.rename(block)
    assert site.run(2.3).problems == []
    late = tracked(site)
    assert set(late.batches) == {site.batch(0), site.batch(1)}
    assert late.target_share == share
    gamma = next(one for one in late.items if one.item == "gamma")
    assert (gamma.first_seen, gamma.last_seen) == (window_name(0), window_name(0))


def test_without_a_mechanism_a_listed_item_stays_for_nothing_shows_whether_it_is_used(site: Site) -> None:
    path = site.add("found", mechanism=None, dictionary=site.words, discovery=1.0)
    follow_with(site, "unseen_windows = 1\n", "found")
    collect(site.store, path, sent(200), day=0)
    assert site.run(1.1).published == ["found/2"]
    collect(site.store, path.with_name("epoch-000002.json"), sent(200), day=2)
    finished = site.run(3.1)
    assert [name.rpartition(" ")[2] for name in finished.hops] == ["shuffle", "release", "discover"]
    assert finished.published == []
    assert items(newest(site, "found")) == ("alpha", "beta", "gamma", NEW)


def test_an_item_is_first_and_last_seen_in_the_windows_that_show_it_in_whatever_order_they_come() -> None:
    tracked = TrackedItems(items=(TrackedItem(item="a", source="given"),))
    late, early = f"{window_name(3)}-000001-x", f"{window_name(1)}-000001-x"
    for batches in ((late, early, late), (early, late)):
        result = tracked
        for batch in batches:
            result = updated(result, batch, ["n"], ["a", "m"])
        given, new = result.items
        assert (given.first_seen, given.last_seen) == (window_name(1), window_name(3))
        assert (new.item, new.source, new.first_seen, new.last_seen) == (
            "n",
            "discovered",
            window_name(1),
            window_name(3),
        )


def test_given_items_stay_and_discovered_ones_age_out() -> None:
    windows = tuple(window_name(day) for day in range(5))
    tracked = TrackedItems(
        items=(
            TrackedItem(item="given", source="given"),
            TrackedItem(item="old", source="discovered", first_seen=windows[0], last_seen=windows[2]),
            TrackedItem(item="fresh", source="discovered", first_seen=windows[0], last_seen=windows[3]),
        )
    )
    assert tracked.kept(windows, 2) == ("given", "fresh")
    assert tracked.kept(windows, 3) == ("given", "old", "fresh")
    assert tracked.kept(windows, 9) == ("given", "old", "fresh")


def test_a_flood_of_found_values_shuts_out_none_that_is_found_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits and was seen longest ago gives way; what an operator approved, and what is listed, does not."""
    monkeypatch.setattr("pipelines.epochs.tracked_items.MOST_FOUND", 4)
    result = TrackedItems(items=(TrackedItem(item="given", source="given"),))
    result = updated(result, "20260101T000000Z-1", ["approved", "popular"], [], {"approved"})
    flood = [f"a flood {number}" for number in range(10)]
    result = updated(result, "20260102T000000Z-1", [*flood, "popular"], [], {"approved"})
    assert [one.item for one in result.items] == ["given", "approved", "popular", *flood[:3]]
    result = updated(result, "20260103T000000Z-1", ["new", "popular"], [], {"approved"})
    assert [one.item for one in result.items] == ["given", "approved", "popular", *flood[:2], "new"]


def test_of_values_with_counts_the_largest_join_first(tmp_path: Path) -> None:
    """found.csv has the largest first, and items keep its order: a smaller count waits for the next epoch."""
    law = KeepRule("optimal", 1.0, 1e-8, counts=True).count_law
    write_found([("few", 40), ("most", 400), ("many", 90)], str(tmp_path), law)
    given = TrackedItems(items=(TrackedItem(item="given", source="given"),))
    tracked = updated(given, "20260101T000000Z-1", found_items(str(tmp_path)), [])
    joined = Decisions().admitted(tracked.kept((), 3), ("given",), ("given",), 2, unseen=True)
    assert joined == ("given", "most", "many")
