"""Epochs that a publisher signs: the operator's key stays offline, and what costs clients more needs it."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import read_campaign_signature, verify_campaign
from hushcount.campaigns.signatures import signature_path
from hushcount.newest import Newest
from hushcount.passes.pass_keys import read_pass_keys
from hushcount.policy import Policy, terms_of
from keys.directories import verify_keys
from keys.rotation import rotate
from tests.support.collecting import DAY, START, collect
from tests.support.jobs import done, refused
from tests.support.next_epoch import AT_ONCE, NEW, follow_with, found, items, newest, sent
from tests.support.site import Site, at

BY_PUBLISHER = 'sign_with = "publisher"\ndelegation = "delegation.json"\n'
FINDING = "publisher of words"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site whose operator signed the first epoch, delegates up to the second one, and took its key away."""
    made = Site(tmp_path, discovery=True, tail=f"[next_epoch.words]\n{AT_ONCE}")
    for role in ("operator", "publisher"):
        done("keys", "new", "--role", role, "--out", tmp_path / role)
    done("campaign", "sign", "--campaign", made.campaign, "--keys", tmp_path / "operator")
    delegate(made, 2)
    follow_with(made, BY_PUBLISHER)
    return made


def delegate(site: Site, last_epoch: int, serial: int = 1, campaign: str = "words") -> None:
    (site.root / "delegation.json").unlink(missing_ok=True)
    done(
        "campaign", "delegate", "--campaign", newest(site, campaign).path, "--keys", site.root / "operator",
        "--publisher", site.root / "publisher", "--last-epoch", last_epoch, "--serial", serial, "--out",
        site.root / "delegation.json",
    )  # fmt: skip


def test_a_client_follows_from_the_operators_epoch_to_the_publishers(site: Site, tmp_path: Path) -> None:
    operator = verify_keys(tmp_path / "operator", "operator")
    first = Campaign.read(site.campaign)
    policy = Policy(**dict(terms_of(first, operator)), newest=Newest(tmp_path / "newest.json"))
    policy.accept(first, read_campaign_signature(signature_path(site.campaign)))
    for private in (tmp_path / "operator").glob("*.key"):
        private.unlink()
    collect(site.store, site.campaign, sent(200), day=0)
    assert site.run(1.1).published == ["words/2"]
    second = newest(site)
    assert items(second) == ("alpha", "beta", "gamma", NEW)
    assert second.previous == first.head.hex()
    assert second.path is not None
    policy.accept(second, read_campaign_signature(signature_path(second.path)))
    assert found(site, FINDING, 1.2)[0] == "warning"
    assert " 0 more epochs" in found(site, FINDING, 1.2)[1]


def test_a_publisher_adds_the_days_of_passes_that_the_issuer_added(site: Site) -> None:
    made = []
    for days in (3, 2):
        out = site.root / f"passes-{days}"
        first = (START + (0 if days == 3 else 3) * DAY).date()
        done("keys", "passes", "--campaign-id", "pages", "--first", first, "--days", days, "--out", out)
        made.append(json.loads((out / "pages.passes.json").read_text()))
    short, added = made
    path = site.add("pages", "--passes", site.root / "passes-3" / "pages.passes.json", dictionary=site.words)
    there = path.with_name("passes.json")
    there.write_text(json.dumps(short))
    done("campaign", "sign", "--campaign", path, "--keys", site.root / "operator")
    delegate(site, 9, campaign="pages")
    follow_with(site, BY_PUBLISHER, "pages")
    operator = verify_keys(site.root / "operator", "operator")
    policy = Policy(**dict(terms_of(Campaign.read(path), operator)), newest=Newest(site.root / "newest.json"))
    policy.accept(Campaign.read(path), read_campaign_signature(signature_path(path)))
    assert site.run(1.1).published == []
    longer = {**short, "days": short["days"] + added["days"]}
    there.write_text(json.dumps({**longer, "days": longer["days"][::-1]}))
    assert "of campaign pages" in site.run(1.2).problems[0]
    there.write_text(json.dumps(longer))
    assert site.run(1.3).published == ["pages/2"]
    second = newest(site, "pages")
    assert second.passes == read_pass_keys(there).part()
    assert second.path is not None
    policy.accept(second, read_campaign_signature(signature_path(second.path)))
    assert site.run(2.3).published == []


def test_keys_that_were_rotated_need_the_operator(site: Site) -> None:
    rotate(site.keys, ("analyzer",), overlap=timedelta(days=7), begins=at(1.05))
    finished = site.run(1.1)
    assert finished.published == []
    (problem,) = finished.problems
    for said in (
        "active keys differ from those of epoch 1",
        "a publisher cannot change keys",
        "the operator must make",
    ):
        assert said in problem
    verdict, says = found(site, "next epoch of words", 1.1)
    assert verdict == "bad"
    assert says in problem


def test_an_epoch_beyond_the_delegation_needs_the_operator(site: Site) -> None:
    delegate(site, 1)
    collect(site.store, site.campaign, sent(200), day=0)
    finished = site.run(1.1)
    assert finished.published == []
    assert " 1: " in finished.problems[0]
    assert "delegate" in finished.problems[0]
    delegate(site, 9)
    said = found(site, "next epoch of words", 1.2)
    assert said[0] == "good"
    assert said[1].endswith("a publisher's key that may sign up to epoch 9")
    assert site.run(1.3).published == ["words/2"]
    assert found(site, FINDING, 1.4)[0] == "good"
    # When its key ends, clients refuse what it signed.
    assert found(site, FINDING, 360)[0] == "warning"
    assert found(site, FINDING, 400)[0] == "bad"


def test_a_restart_is_handed_on_from_epoch_to_epoch(site: Site) -> None:
    """Clients that were deceived may be offline for many epochs."""
    Path(f"{site.campaign}.sig").unlink()
    restart = site.root / "restart.json"
    operator = ("--keys", site.root / "operator")
    done("campaign", "restart", "--campaign", site.campaign, *operator, "--serial", 2, "--out", restart)
    done("campaign", "sign", "--campaign", site.campaign, *operator, "--restart", restart)
    done("campaign", "publish", "--config", site.config, "--campaign", site.campaign)
    collect(site.store, site.campaign, sent(200), day=0)
    (problem,) = site.run(1.1).problems
    assert "delegate anew" in problem
    assert found(site, "next epoch of words", 1.1)[0] == "bad"
    delegate(site, 9, 3)
    assert site.run(1.2).published == ["words/2"]
    path = newest(site).path
    assert path is not None
    signature = read_campaign_signature(signature_path(path))
    assert signature.delegation is not None
    assert signature.restart is not None
    assert (signature.delegation.serial, signature.restart.serial, signature.restart.epoch) == (3, 2, 1)
    verify_campaign(verify_keys(site.root / "operator", "operator"), newest(site), signature)


def test_the_publisher_needs_the_delegation_and_its_own_key(site: Site) -> None:
    collect(site.store, site.campaign, sent(200), day=0)
    follow_with(site, 'sign_with = "publisher"\n')
    assert "key of the operator" in site.run(1.1).problems[0]
    follow_with(site, 'sign_with = "operator"\ndelegation = "delegation.json"\n')
    assert "key of the publisher" in site.run(1.2).problems[0]
    follow_with(site, 'delegation = "delegation.json"\n')
    refused("run", "--config", site.config, says=["delegation", "sign_with"])
