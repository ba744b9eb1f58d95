"""The loop over epochs: what makes the next one, what it is planned for, and that nothing stops or doubles it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import AbstractContextManager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.windows import window_at
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import plan
from keys.listing import PUBLIC_FILE
from keys.rotation import rotate
from pipelines.deployment.campaigns import read_campaign
from pipelines.deployment.publish import publish, publishing
from pipelines.epochs.next_epoch import follow
from pipelines.epochs.tracked_items import TrackedItem, TrackedItems, write_tracked
from pipelines.log.fold import Fold
from tests.support.collecting import DAY, collect, window_name
from tests.support.jobs import done, new_campaign, summary, write_lines
from tests.support.next_epoch import AT_ONCE, NEW, after_newest, collection, follow_with, items, newest, sent, tracked
from tests.support.site import Site, at


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(
        tmp_path,
        discovery=True,
        settings="",
        tail=f"[next_epoch.words]\n{AT_ONCE}unseen_windows = 2\ntarget_rank = 2\n",
    )


def test_parameters_are_planned_for_the_share_that_the_last_results_show_and_that_makes_one_epoch(site: Site) -> None:
    listed = write_lines(site.root / "wide.txt", [f"item {number}" for number in range(60)])
    path = site.add("wide", mechanism="ais", dictionary=listed)
    collect(site.store, path, ["item 7"] * 400, day=0)
    follow_with(site, "target_rank = 1\n", "wide")
    assert site.run(1.1).published == ["wide/2"]
    assert tracked(site, "wide").target_share == 0.5
    first, second = Campaign.read(path), Campaign.read(path.with_name("epoch-000002.json"))
    assert first.mechanism is not None
    assert second.mechanism is not None
    planned = plan("ais", 2.0, 61, {}, Objective("target", 0.5), "")
    assert first.mechanism.parameters != planned
    assert second.mechanism.parameters == planned
    # Neither the new epoch nor the lost record of what it was made for is a reason for another.
    assert site.run(2.1).published == []
    path.with_name("items.json").unlink()
    assert site.run(2.2).published == []


def test_the_next_epoch_of_numbers_has_the_same_bins(site: Site) -> None:
    path = site.add("times", "--number", "0:1000", "--unit", "ms", "--bins", "log:60", mechanism="ais")
    collect(site.store, path, ["7.5"] * 400, day=0)
    follow_with(site, "target_rank = 1\n", "times")
    assert site.run(1.1).published == ["times/2"]
    first, second = Campaign.read(path), Campaign.read(path.with_name("epoch-000002.json"))
    assert second.number == first.number
    assert second.read_dictionary() == first.read_dictionary()
    assert second.mechanism != first.mechanism


def test_a_value_of_no_characters_that_many_post_makes_neither_an_item_nor_a_fault(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as forged:
        # As clients of an attacker make it.
        forged.setattr("hushcount.report_making.fault_of_text", lambda _: None)
        collect(site.store, site.campaign, [""] * 100 + sent(0, 100), day=0)
    finished = site.run(1.1)
    assert finished.problems == []
    found = summary(site.store / "found" / "words" / site.batch(0))
    assert found["bins"] == {"kept": 1, "found": 0, "rejected": {"no_item": 1}}
    assert [one.item for one in tracked(site).items] == ["alpha", "beta", "gamma"]


KILLED = """
import json, os, shutil, signal, sys, tempfile
from datetime import datetime
from pathlib import Path
from hushcount.clock import Clock
from pipelines.deployment.settings import Deployment
from pipelines.schedule.run import run
from service.passes import PassTaker
from shuffler.collector.campaigns import read_campaigns

deployment, now = Deployment.read(Path(sys.argv[1])), datetime.fromisoformat(sys.argv[2])
campaigns, kept = deployment.campaigns, deployment.campaigns.with_name("kept")
taker = PassTaker("client-token", "collector", "one", deployment.windows.tiling)


def attempt(files):
    child = os.fork()
    if child == 0:
        left = [files]

        def one_file_less(event, arguments):
            if event in ("os.rename", "os.link") and str(arguments[1]).startswith(str(campaigns)):
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(one_file_less)
        os._exit(len(run(deployment, clock=Clock(now.timestamp)).problems))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def collected():
    with tempfile.TemporaryDirectory() as journal:
        campaign = read_campaigns(campaigns, Path(journal) / "published", taker, {})["words"]
    return campaign.fault or sorted(epoch.epoch for epoch in campaign.epochs.values())


shutil.copytree(campaigns, kept)
seen = []
while True:
    first, then = attempt(len(seen)), collected()
    second = attempt(1000)
    items = json.loads((campaigns / "words" / "items.json").read_bytes())["items"]
    seen.append([first, then, second, collected(), {one["item"]: one["source"] for one in items}])
    if first != -signal.SIGKILL:
        break
    shutil.rmtree(campaigns)
    shutil.copytree(kept, campaigns)
print(json.dumps(seen))
"""
"""For each file that a run puts in its place: a run that is killed just before, and another one that is not."""


@pytest.mark.long
def test_a_run_that_is_killed_before_any_file_of_the_next_epoch_is_taken_up_with_the_same_result(site: Site) -> None:
    done("keys", "new", "--role", "operator", "--out", site.root / "operator")
    follow_with(site, "add_found = false\n")
    collect(site.store, site.campaign, sent(200), day=0)
    assert site.run(1.1).published == []
    (site.root / "campaigns" / "words" / "items.json").unlink()
    follow_with(site, 'sign_with = "operator"\n')
    ran = subprocess.run(  # noqa: S603  # our own script
        [sys.executable, "-c", KILLED, site.config, at(1.2).isoformat()], capture_output=True, text=True, check=True
    )
    *killed, whole = json.loads(ran.stdout)
    result = [0, [1, 2], {"alpha": "given", "beta": "given", "gamma": "given", NEW: "discovered"}]
    # Items, items with the epoch, dictionary, campaign file, signature, collection file.
    assert killed == [[-signal.SIGKILL, [1], *result]] * 6
    assert whole == [0, [1, 2], *result]
    assert items(newest(site)) == ("alpha", "beta", "gamma", NEW)
    path = site.root / "campaigns" / "words" / "epoch-000002.json"
    done("campaign", "verify", "--campaign", path, "--keys", site.root / "operator")
    assert site.run(2.3).published == []


def test_two_changes_in_one_window_make_two_epochs_and_no_run_fails(site: Site) -> None:
    collect(site.store, site.campaign, sent(200), day=0)
    assert site.run(1.1).published == ["words/2"]
    rotate(site.keys, ("analyzer",), overlap=timedelta(days=7), begins=at(1.15))
    between = site.run(1.2)
    assert (between.published, between.problems) == ([], [])
    assert site.run(2.0).published == ["words/3"]
    assert collection(site).epochs[-1].begins == at(3)
    assert items(newest(site)) == ("alpha", "beta", "gamma", NEW)


def test_after_a_signed_epoch_no_unsigned_one_is_published(site: Site) -> None:
    done("keys", "new", "--role", "operator", "--out", site.root / "operator")
    done("campaign", "sign", "--campaign", site.campaign, "--keys", site.root / "operator")
    collect(site.store, site.campaign, sent(200), day=0)
    finished = site.run(1.1)
    assert finished.published == []
    (problem,) = finished.problems
    for said in ("epoch 1 is signed", "set sign_with under [next_epoch.words]"):
        assert said in problem
    follow_with(site, 'sign_with = "elsewhere"\n')
    assert "elsewhere" in site.run(1.2).problems[0]
    follow_with(site, 'sign_with = "operator"\n')
    assert site.run(1.3).published == ["words/2"]
    path = site.root / "campaigns" / "words" / "epoch-000002.json"
    done("campaign", "verify", "--campaign", path, "--keys", site.root / "operator")


def test_an_epoch_that_was_published_by_hand_is_followed_and_not_undone(site: Site) -> None:
    collect(site.store, site.campaign, sent(200), day=0)
    site.run(1.1)
    listed = write_lines(site.root / "more.txt", ["delta", "alpha", "gamma", NEW])
    third = new_campaign(site.root / "words.json", site.keys, *after_newest(site), dictionary=listed, discovery=1.0)
    publish(site.deployment, third, at(3), at(1.2))
    assert site.run(3.1).published == []
    assert {one.item: one.source for one in tracked(site).items} == {
        **dict.fromkeys(("alpha", "delta", "gamma"), "given"),
        NEW: "discovered",
    }


def test_an_item_that_aged_out_and_was_put_back_by_hand_is_given_and_stays(site: Site) -> None:
    deployment, folder = site.deployment, site.root / "campaigns" / "words"
    part = deployment.file.next_epoch["words"]
    given = [TrackedItem(item=item, source="given") for item in items(newest(site))]
    old = TrackedItem(item=NEW, source="discovered", first_seen=window_name(0), last_seen=window_name(0))
    batches = tuple(f"{window_name(day)}-000001-{'0' * 16}" for day in range(3))
    first = (newest(site).fingerprint.hex(),)
    write_tracked(folder / "items.json", TrackedItems(items=(*given, old), batches=batches, epochs=first))
    listed = write_lines(site.root / "back.txt", ["alpha", "beta", "gamma", NEW])
    assert follow(Fold("words"), deployment, read_campaign(folder), part, at(3.1)) is None
    assert tracked(site).items[-1] == old
    for epoch in (2, 3):
        by_hand = new_campaign(
            site.root / "words.json", site.keys, *after_newest(site), dictionary=listed, discovery=1.0
        ).rename(site.root / f"{epoch}.json")
        publish(deployment, by_hand, at(2 + epoch), at(3.2))
    for day in (5.1, 6.1):
        assert follow(Fold("words"), deployment, read_campaign(folder), part, at(day)) is None
        assert {*tracked(site).items} == {*given, old.model_copy(update={"source": "given"})}


def test_nothing_is_published_after_an_epoch_that_was_given_an_end(site: Site) -> None:
    path = site.root / "campaigns" / "words" / "collection.json"
    data = json.loads(path.read_text())
    data["epochs"][-1]["ends"] = at(1).isoformat()
    path.write_text(json.dumps(data))
    collect(site.store, site.campaign, sent(200), day=0)
    finished = site.run(1.1)
    assert (finished.published, finished.problems) == ([], [])
    assert NEW in [one.item for one in tracked(site).items]


def test_an_epoch_of_a_run_of_several_windows_begins_after_it_was_published(site: Site) -> None:
    deployment, folder = site.deployment, site.root / "campaigns" / "words"
    data = json.loads((folder / "collection.json").read_text())
    data["epochs"][0]["begins"] = at(-9).isoformat()
    (folder / "collection.json").write_text(json.dumps(data))
    # Without a listing the campaign's own keys go on: those made now were not active then.
    (site.keys / PUBLIC_FILE).unlink()
    given = tuple(TrackedItem(item=item, source="given") for item in items(newest(site)))
    seen = TrackedItem(item=NEW, source="discovered", first_seen=window_name(-6), last_seen=window_name(-6))
    write_tracked(folder / "items.json", TrackedItems(items=(*given, seen)))
    earliest = window_at(datetime.now(timezone.utc), DAY).end
    following = follow(Fold("words"), deployment, read_campaign(folder), deployment.file.next_epoch["words"], at(-4.5))
    assert following is not None
    # The test itself may see midnight.
    assert following.begins in (earliest, window_at(datetime.now(timezone.utc), DAY).end)
    first, second = collection(site).epochs
    assert first.ends == second.begins == following.begins


def test_an_epoch_that_somebody_publishes_meanwhile_is_left_to_the_next_run(site: Site) -> None:
    deployment, folder = site.deployment, site.root / "campaigns" / "words"
    part = deployment.file.next_epoch["words"]
    epochs = read_campaign(folder)
    seen = TrackedItem(item=NEW, source="discovered", first_seen=window_name(0), last_seen=window_name(0))
    given = tuple(TrackedItem(item=item, source="given") for item in items(newest(site)))
    write_tracked(folder / "items.json", TrackedItems(items=(*given, seen)))
    second = new_campaign(
        site.root / "words.json", site.keys, *after_newest(site), dictionary=site.words, discovery=1.0
    )
    publish(deployment, second, now=at(1.5))
    assert follow(Fold("words"), deployment, epochs, part, at(1.5)) is None
    assert [one.epoch for one in collection(site).epochs] == [1, 2]
    third = follow(Fold("words"), deployment, read_campaign(folder), part, at(2.5))
    assert third is not None
    assert items(newest(site)) == ("alpha", "beta", "gamma", NEW)


def test_a_run_that_another_one_overtook_writes_no_items_over_its(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = site.root / "campaigns" / "words"
    epochs = read_campaign(folder)
    given = tuple(TrackedItem(item=item, source="given") for item in epochs.listed)
    seen = TrackedItem(item=NEW, source="discovered", first_seen=window_name(0), last_seen=window_name(0))
    others = TrackedItems(items=(*given, seen), epochs=(newest(site).fingerprint.hex(),))

    def overtaken(campaign: Path) -> AbstractContextManager[None]:
        write_tracked(campaign / "items.json", others)
        return publishing(campaign)

    part = site.deployment.file.next_epoch["words"]
    with monkeypatch.context() as patch:
        patch.setattr("pipelines.epochs.next_epoch.publishing", overtaken)
        assert follow(Fold("words"), site.deployment, epochs, part, at(1.5)) is None
    assert tracked(site) == others
    assert follow(Fold("words"), site.deployment, epochs, part, at(1.5)) is not None


def test_clients_remember_as_many_values_in_the_next_epoch(site: Site) -> None:
    path = site.add("again", "--memory", "--memory-values", 3, "--cap", 2, dictionary=site.words)
    follow_with(site, "", "again")
    rotate(site.keys, ("analyzer",), overlap=timedelta(days=7), begins=at(1.05))
    assert site.run(1.1).published == ["again/2"]
    first, second = Campaign.read(path), newest(site, "again")
    assert (first.memory, first.memory_values) == (second.memory, second.memory_values) == (True, 3)
    assert second.epoch_epsilon == first.epoch_epsilon
    assert second.shuffle == first.shuffle


def test_the_next_epoch_has_the_same_noise(site: Site) -> None:
    noise = ("--noise", "--epsilon", 1, "--window", "1d")
    path = site.add("noisy", *noise, mechanism=None, dictionary=site.words, min_batch=1)
    follow_with(site, "", "noisy")
    rotate(site.keys, ("aux_server",), overlap=timedelta(days=7), begins=at(1.05))
    assert site.run(1.1).published == ["noisy/2"]
    first, second = Campaign.read(path), newest(site, "noisy")
    assert second.noise == first.noise is not None
    assert second.keys.aux_server != first.keys.aux_server


@pytest.mark.long
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
