"""The loop over epochs: what is discovered is collected next, what is unseen is dropped, and shares are planned for."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from hushcount.campaign import Campaign
from hushcount.collection import CollectionFile, read_collection
from keys.rotation import rotate
from pipelines.publish import publish
from pipelines.tracked_items import TrackedItem, TrackedItems, updated
from tests.support.collecting import DAY, START, collect, window_name
from tests.support.jobs import done, new_campaign, refused
from tests.support.site import Site, at

NEW = "newcomer"


def sent(new: int, number: int = 400) -> list[str]:
    return [NEW] * new + [["alpha", "beta"][index % 2] for index in range(number - new)]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, discovery=True, settings="", tail="[next_epoch.words]\nunseen_windows = 2\ntarget_rank = 2\n")


def collection(site: Site) -> CollectionFile:
    return read_collection(site.root / "campaigns" / "words" / "collection.json")


def newest(site: Site) -> Campaign:
    return Campaign.read(site.root / "campaigns" / "words" / collection(site).epochs[-1].file)


def items(campaign: Campaign) -> tuple[str, ...]:
    dictionary = campaign.read_dictionary()
    assert dictionary is not None
    return dictionary.items


def test_a_discovered_item_joins_the_next_epoch_and_ages_out_when_unseen(site: Site) -> None:
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
    row = next(line for line in estimates(site, 2, 2) if line.startswith(NEW))
    assert float(row.split(",")[1]) > 100
    assert items(newest(site))[-1] == NEW

    latest = collection(site).epochs[-1]
    for day in (4, 5):
        collect(site.store, site.root / "campaigns" / "words" / latest.file, sent(0), day=day)
        finished = site.run(day + 1.1)
    assert finished.published
    assert items(newest(site)) == ("alpha", "beta", "gamma")


def estimates(site: Site, day: int, epoch: int) -> list[str]:
    folder = site.store / "results" / "words" / site.batch(day, epoch)
    return (folder / "estimates.csv").read_text().splitlines()


def test_parameters_are_planned_for_the_share_that_the_last_results_show(site: Site) -> None:
    collect(site.store, site.campaign, sent(0), day=0)
    site.run(1.1)
    tracked = json.loads((site.root / "campaigns" / "words" / "items.json").read_text())
    assert tracked["target_share"] == 0.5


def test_an_active_key_that_the_campaign_does_not_have_makes_an_epoch(site: Site) -> None:
    collect(site.store, site.campaign, sent(0), day=0)
    site.run(1.1)
    before = newest(site).keys
    rotate(site.keys, ("analyzer",), overlap=timedelta(days=7), begins=at(3))
    collect(site.store, site.root / "campaigns" / "words" / collection(site).epochs[-1].file, sent(0), day=2)
    assert site.run(3.1).published
    after = newest(site).keys
    assert after.analyzer != before.analyzer
    assert after.aux_server == before.aux_server


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


def test_publishing_twice_is_publishing_once_and_an_earlier_epoch_is_refused(site: Site) -> None:
    source = site.root / "elsewhere"
    source.mkdir()
    third = new_campaign(source / "words.json", site.keys, "--epoch", 3, dictionary=site.words)
    published = publish(site.deployment, third, now=at(0.5))
    assert published.begins == at(1)
    before = (site.root / "campaigns" / "words" / "collection.json").read_bytes()
    assert publish(site.deployment, third, now=at(0.7)) == published
    assert (site.root / "campaigns" / "words" / "collection.json").read_bytes() == before
    assert (
        Campaign.read(site.root / "campaigns" / "words" / published.file).fingerprint
        == Campaign.read(third).fingerprint
    )
    (source / "b").mkdir()
    second = new_campaign(source / "b" / "words.json", site.keys, "--epoch", 2, dictionary=site.words)
    refused("epoch", "publish", "--config", site.config, "--campaign", second, says=["epoch 2", "after epoch 3"])


def test_the_first_epoch_of_a_campaign_is_published_into_a_new_folder(site: Site) -> None:
    source = site.root / "elsewhere"
    source.mkdir()
    other = new_campaign(source / "other.json", site.keys, dictionary=site.words)
    said = done("epoch", "publish", "--config", site.config, "--campaign", other, "--json").json
    assert said["epoch"] == 1
    assert (site.root / "campaigns" / "other" / said["file"]).exists()
