"""Whoever can send discovery reports can have any sentence found: what that makes of dictionaries and epochs."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.epochs import FINGERPRINT_DIGITS
from pipelines.audit.doctor import examine
from pipelines.audit.foresight import spent_in
from pipelines.deployment.campaigns import read_campaign
from pipelines.deployment.publish import publish
from pipelines.epochs.next_epoch import follow
from pipelines.jobs.found import write_found
from pipelines.log.entries import Finished
from pipelines.log.log import Log
from pipelines.outputs.counts import HopCounts, StreamCounts
from tests.support.collecting import DAY, START, collect, window_name
from tests.support.jobs import done, new_campaign, refused
from tests.support.next_epoch import after_newest, items, newest
from tests.support.site import Site, at

COUNTS = HopCounts.of("discover", {"discovery": StreamCounts(50, 50, {})}).data()


class Attacked(Site):
    """A site whose campaign only discovers; what is found in each window is what strangers decide."""

    def __init__(self, root: Path, tail: str) -> None:
        super().__init__(root)
        self.folder = self.add("found", mechanism=None, dictionary=self.words, discovery=1.0).parent
        self.tell(tail)

    def tell(self, tail: str) -> None:
        config = self.config.read_text().partition("[next_epoch.")[0]
        self.config.write_text(f"{config}[next_epoch.found]\n{tail}")

    def day(self, day: float, *found: str) -> bool:
        """Let a window's batch reveal values, as 50 forged reports of each do; return whether an epoch came of it."""
        campaign = newest(self, "found")
        batch = f"{window_name(day)}-{campaign.epoch:06d}-{campaign.fingerprint.hex()[:FINGERPRINT_DIGITS]}"
        results = self.store / "found" / "found" / batch
        results.mkdir(parents=True)
        write_found([(item, None) for item in found], str(results))
        (results / "summary.json").write_text("{}")
        deployment = self.deployment
        log, now = Log(deployment, "analyzer", "found"), at(day + 1.1)
        log.decide(lambda _: Finished(batch=batch, hop="discover", folder="0" * 16, summary=COUNTS), now)
        part = deployment.file.next_epoch["found"]
        return follow(log.fold, deployment, read_campaign(self.folder), part, now) is not None

    def review(self, *options: object) -> list[dict[str, str]]:
        told = done("campaign", "review", "--config", self.config, "--campaign", "found", "--json", *options).json
        return list(told["waiting"])

    @property
    def listed(self) -> tuple[str, ...]:
        return items(newest(self, "found"))


def test_forged_reports_make_no_epoch_and_no_entry_without_the_operator(tmp_path: Path) -> None:
    site = Attacked(tmp_path, "")
    for day in range(40):
        assert not site.day(day, f"forged {day}")
    assert site.listed == ("alpha", "beta", "gamma")
    waiting = site.review()
    assert [one["item"] for one in waiting] == [f"forged {day}" for day in range(40)]
    assert {one["first_seen"] for one in waiting[:2]} == {window_name(0), window_name(1)}


def test_with_automatic_approval_they_make_one_epoch_a_least_length_and_so_many_entries(tmp_path: Path) -> None:
    site = Attacked(tmp_path, 'review = false\nleast_length = "10d"\nmost_additions = 3\n')
    made = [day for day in range(40) if site.day(day, f"forged {day}", f"more {day}")]
    # Begun at the end of the window in which it is published: ten days and more from each other.
    assert made == [8, 18, 28, 38]
    begun = [part.begins for part in read_campaign(site.folder).collection.epochs]
    assert all(after - before >= 10 * DAY for before, after in pairwise(begun))
    assert len(site.listed) == 3 + 3 * len(made)


def test_what_the_operator_approves_joins_and_what_is_rejected_stays_out(tmp_path: Path) -> None:
    site = Attacked(tmp_path, 'least_length = "1d"\n')
    assert not site.day(0, "wanted", "vile", "late")
    ids = {one["item"]: one["id"] for one in site.review()}
    assert [one["item"] for one in site.review("--approve", ids["wanted"], "--reject", ids["vile"])] == ["late"]
    assert site.day(1, "vile")
    assert site.listed == ("alpha", "beta", "gamma", "wanted")
    assert not site.day(2, "vile", "wanted", "late")
    assert [one["item"] for one in site.review()] == ["late"]
    assert site.review("--reject", "all") == []
    assert not site.day(3, "late", "vile")
    assert site.review() == []
    # Second thoughts: what was rejected joins, what had joined leaves.
    site.review("--approve", ids["vile"], "--reject", ids["wanted"])
    assert site.day(4, "vile")
    assert site.listed == ("alpha", "beta", "gamma", "vile")


def test_review_says_when_an_approved_value_is_counted_and_then_it_is(tmp_path: Path) -> None:
    site = Attacked(tmp_path, 'least_length = "3d"\n')
    assert not site.day(0, "wanted")
    review = ("campaign", "review", "--config", site.config, "--campaign", "found")
    assert "epoch 2" not in done(*review).out
    told = done(*review, "--approve", "all", "--json").json
    assert told["counted_from"] == {"epoch": 2, "begins": at(3).isoformat()}
    said = " ".join(done(*review).out.split())
    assert f"in the dictionary from epoch 2 on, which begins {at(3):%Y-%m-%d %H:%M:%SZ} at the earliest" in said
    # The run at 1.5 is too early; that at 2.1 begins the epoch at the end of its window.
    assert not site.day(0.4, "other")
    assert site.day(1, "other")
    newest = read_campaign(site.folder).collection.epochs[-1]
    assert (newest.epoch, newest.begins) == (2, at(3))
    assert "wanted" in site.listed
    assert "at the earliest" not in done(*review).out
    site.config.write_text(site.config.read_text().partition("[next_epoch.")[0])
    by_hand = done(*review, "--approve", "all", "--json")
    assert by_hand.json["counted_from"] is None
    said = " ".join(done(*review).out.split())
    assert "epoch 3 on, which no run makes by itself: set [next_epoch.found], or run hushcount campaign new" in said


def test_review_says_that_a_sketch_can_be_asked_for_earlier_windows_and_it_can(tmp_path: Path) -> None:
    site = Site(tmp_path)
    path = site.add("open", mechanism="gcms", discovery=1.0)
    collect(site.store, path, ["nobody"] * 300 + ["somebody"] * 100, day=0)
    assert site.run(1.1).problems == []
    (path.parent / "review.json").write_text('{"approved": ["nobody"]}')
    told = " ".join(done("campaign", "review", "--config", site.config, "--campaign", "open").out.split())
    assert "a value needs no new epoch, because a sketch counts all values" in told
    command = f"hushcount ask item --campaign open --item VALUE -c {site.config} also asks earlier windows"
    assert command in told
    words = command.removeprefix("hushcount ").replace("VALUE", "nobody").partition(" also")[0].split()
    (row,) = done(*words, "--json").json["rows"]
    # The law is exact: 300 within six standard errors, which fails less than once in 10^8.
    assert abs(row["count"] - 300) < 6 * row["standard_error"]
    assert row["count"] > 0


def test_what_was_rejected_is_not_admitted_automatically_either(tmp_path: Path) -> None:
    site = Attacked(tmp_path, 'least_length = "1d"\n')
    site.day(0, "vile")
    site.review("--reject", "all")
    site.tell('review = false\nleast_length = "1d"\n')
    assert site.day(1, "vile", "other")
    assert site.listed == ("alpha", "beta", "gamma", "other")


def test_a_hostile_value_is_shown_by_its_codes_and_named_by_an_id(tmp_path: Path) -> None:
    site = Attacked(tmp_path, "")
    site.day(0, "caf\u00e9 \u65e5\u672c", "a\ue000b\uf8ff\\x", "\U0010fffd")
    arguments = ("campaign", "review", "--config", site.config, "--campaign", "found")
    said = done(*arguments).out
    for text in ("caf\u00e9 \u65e5\u672c", "a\\ue000b\\uf8ff\\\\x", "\\U0010fffd"):
        assert text in said
    assert all(letter.isprintable() or letter == "\n" for letter in said)
    refused(*arguments, "--approve", "caf\u00e9\x1b[31m", says=[r"\x1b[31m"])
    assert "\x1b" not in refused(*arguments, "--approve", "\x1b[31m").err
    ids = [one["id"] for one in site.review()]
    refused(*arguments, "--approve", ids[0], "--reject", "all", says=[ids[0]])
    refused("campaign", "review", "--config", site.config, "--campaign", "none", says=["campaign is 'none'"])
    assert len(site.review()) == 3


def test_what_a_remembering_client_spends_in_a_year_is_stated_and_an_epoch_by_hand_keeps_to_it(tmp_path: Path) -> None:
    site = Site(tmp_path, tail='[next_epoch.words]\nleast_length = "73d"\n')
    checks = {check.name: check.says for check in examine(site.deployment, at(0.5))}
    # Five epochs begin in a year, and one had begun before it; epsilon is 2 a report.
    assert "6 epochs" in checks["epochs of words a year"]
    assert "epsilon 2 " in checks["epochs of words a year"]
    remembering = new_campaign(
        site.root / "kept.json", site.keys, "--memory", "--memory-values", 3, dictionary=site.words
    )
    assert spent_in(6, Campaign.read(remembering)) == "each client spends epsilon 36 at most, for 3 values an epoch"
    second = new_campaign(site.root / "words.json", site.keys, *after_newest(site), dictionary=site.words)
    early = ("campaign", "publish", "--config", site.config, "--campaign", second, "--begins", at(72.9).isoformat())
    refused(*early, says=["least_length of 73d", "--early"])
    assert publish(site.deployment, second, at(73), at(0.5)).begins == START + timedelta(days=73)
    third = new_campaign(
        site.root / "again.json", site.keys, "--id", "words", *after_newest(site), dictionary=site.words
    )
    done(*(*early[:5], third, "--begins", at(80).isoformat()), "--early")


def test_a_list_that_a_flood_filled_says_so_and_takes_what_is_found_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.epochs.tracked_items.MOST_FOUND", 3)
    site = Attacked(tmp_path, 'least_length = "1d"\n')
    assert not site.day(0, "approved")
    site.review("--approve", "all")
    assert site.day(1, "forged 1", "forged 2", "forged 3", "forged 4")
    listing = "campaign", "review", "--config", site.config, "--campaign", "found"
    assert "full" in done(*listing).out
    site.day(2, "wanted")
    assert {one["item"] for one in site.review()} == {"forged 1", "forged 2", "wanted"}
    site.review("--reject", "all")
    assert "full" not in done(*listing).out
    assert "approved" in site.listed
