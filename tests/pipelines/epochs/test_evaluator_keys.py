"""Epochs of an oblivious campaign: each takes a fresh key of the evaluator, and a publisher only a delegated one."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import HushcountError
from keys.listing import listed_keys
from keys.rotation import rotate
from pipelines.deployment.publish import publish, publishing
from tests.support.collecting import collect
from tests.support.jobs import done, new_campaign, refused
from tests.support.next_epoch import follow_with, found, newest, sent
from tests.support.site import Site, at

TAKES = 'evaluator_keys = ["evaluator/public.json"]\n'
SIGNS = 'sign_with = "publisher"\ndelegation = "delegation.json"\n'


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site with an oblivious campaign, whose evaluator made keys for two epochs."""
    return Site(tmp_path, discovery=True, evaluator_keys=2)


def test_each_epoch_takes_a_fresh_key_until_none_is_left(site: Site) -> None:
    first, second = listed_keys([site.evaluator])
    follow_with(site, TAKES)
    said = found(site, "next epoch of words", 1.1)
    assert said[0] == "good"
    assert all(text in said[1] for text in ("epoch 2 ", " 0 more ", "evaluator"))
    collect(site.store, site.campaign, sent(200), day=0, evaluator=site.evaluator)
    done_first = site.run(1.1)
    assert (done_first.problems, done_first.published) == ([], ["words/2"])
    assert newest(site).keys.evaluator == (second,)
    rotate(site.keys, ("analyzer",), overlap=timedelta(days=7), begins=at(2.1))
    finished = site.run(2.2)
    assert finished.published == []
    (problem,) = finished.problems
    assert "no key of the evaluator" in problem
    assert found(site, "next epoch of words", 2.3) == ("bad", problem.partition("no next epoch: ")[2])
    done("keys", "rotate", "--keys", site.evaluator, "--role", "evaluator", "--overlap", "1s", "--days", 9)
    third = listed_keys([site.evaluator])[-1]
    assert site.run(2.4).published == ["words/3"]
    assert newest(site).keys.evaluator == (third,)
    assert len({first.id, second.id, third.id}) == 3


def test_without_the_public_keys_nothing_is_published(site: Site) -> None:
    follow_with(site, "")
    collect(site.store, site.campaign, sent(200), day=0, evaluator=site.evaluator)
    (problem,) = site.run(1.1).problems
    assert "evaluator_keys under [next_epoch.words]" in problem


def test_a_key_of_an_earlier_epoch_is_refused_by_hand_too(site: Site, tmp_path: Path) -> None:
    file = newest(site)
    again = file.model_copy(update={"epoch": 2, "previous": file.head.hex()})
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "words.txt").write_bytes(site.words.read_bytes())
    part = again.dictionary
    assert part is not None
    again = again.model_copy(update={"dictionary": part.model_copy(update={"path": "words.txt"})})
    again.write(tmp_path / "again" / "words.json")
    refused(
        "campaign", "publish", "--config", site.config, "--campaign", tmp_path / "again" / "words.json",
        says=["evaluator's key", "epoch 1 of campaign words"],
    )  # fmt: skip


def second_campaign(site: Site, folder: Path, *options: object) -> Path:
    """Make a file of another campaign, as an operator does by hand, and return its path."""
    folder.mkdir()
    return new_campaign(
        folder / "others.json", site.keys, "--hash", "oblivious", "--keys", site.evaluator, *options,
        dictionary=site.words, discovery=1.0,
    )  # fmt: skip


def test_a_key_serves_one_campaign_of_a_deployment(site: Site, tmp_path: Path) -> None:
    """Else destroying it after one campaign's epoch would end the other, or guesses of the one live with the other."""
    first, second = listed_keys([site.evaluator])
    by_hand = ("campaign", "publish", "--config", site.config, "--campaign")
    same = second_campaign(site, tmp_path / "same")
    assert Campaign.read(same).keys.evaluator == (first,)
    refused(
        *by_hand, same,
        says=[f"evaluator's key {first.id} of epoch 1 of campaign words", f"new --config {site.config}"],
    )  # fmt: skip
    assert not (site.root / "campaigns" / "others" / "collection.json").exists()
    own = second_campaign(site, tmp_path / "own", "--config", site.config)
    assert Campaign.read(own).keys.evaluator == (second,)
    done(*by_hand, own)
    assert newest(site, "others").keys.evaluator == (second,)
    # The next epoch of the first campaign does not take it either.
    follow_with(site, TAKES)
    collect(site.store, site.campaign, sent(200), day=0, evaluator=site.evaluator)
    assert any("no key of the evaluator" in problem for problem in site.run(1.1).problems)
    done("keys", "rotate", "--keys", site.evaluator, "--role", "evaluator", "--overlap", "1s", "--days", 9)
    third = listed_keys([site.evaluator])[-1]
    assert site.run(1.2).published == ["words/2"]
    assert newest(site).keys.evaluator == (third,)


def test_two_campaigns_are_not_published_at_once_as_each_would_find_the_key_free(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = second_campaign(site, tmp_path / "own", "--config", site.config)
    monkeypatch.setattr("pipelines.deployment.publish._BUSY_SECONDS", 0.1)
    with publishing(site.deployment.campaigns), pytest.raises(HushcountError, match="another process"):
        publish(site.deployment, own)
    assert publish(site.deployment, own).epoch == 1


def test_where_a_campaign_cannot_be_read_no_key_is_taken_for_free(site: Site, tmp_path: Path) -> None:
    own = second_campaign(site, tmp_path / "own", "--config", site.config)
    (site.root / "campaigns" / "words" / "collection.json").write_text("{")
    says = ["keys of the evaluator", "campaign words cannot be read"]
    refused("campaign", "publish", "--config", site.config, "--campaign", own, says=says)
    options = ("--hash", "oblivious", "--keys", site.evaluator, "--open-domain", "--mechanism", "grr")
    refused(
        "campaign", "new", "--id", "w", "--keys", site.keys, "--out", tmp_path / "w.json", "--epsilon", 1,
        "--discovery-epsilon", 1, *options, "--config", site.config, says=says,
    )  # fmt: skip


def test_a_publisher_names_only_keys_that_the_operator_delegated(site: Site, tmp_path: Path) -> None:
    for role in ("operator", "publisher"):
        done("keys", "new", "--role", role, "--out", tmp_path / role)
    done("campaign", "sign", "--campaign", site.campaign, "--keys", tmp_path / "operator")
    delegate = (
        "campaign", "delegate", "--campaign", site.campaign, "--keys", tmp_path / "operator", "--publisher",
        tmp_path / "publisher", "--last-epoch", 9, "--serial", 1, "--out", tmp_path / "delegation.json",
    )  # fmt: skip
    refused(*delegate, says=["campaign words", "--evaluator-keys"])
    done("keys", "new", "--role", "evaluator", "--out", tmp_path / "strange")
    made = done(*delegate, "--evaluator-keys", site.evaluator / "public.json", "--json").json
    assert made["evaluator_keys"] == ", ".join(key.id for key in listed_keys([site.evaluator]))
    follow_with(site, f'{SIGNS}evaluator_keys = ["strange"]\n')
    collect(site.store, site.campaign, sent(200), day=0, evaluator=site.evaluator)
    (problem,) = site.run(1.1).problems
    assert " 2 that the operator delegated" in problem
    follow_with(site, SIGNS + TAKES)
    assert site.run(1.2).published == ["words/2"]
