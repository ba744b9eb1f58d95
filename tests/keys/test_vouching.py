"""The commands that sign, delegate and write policies: what a client accepts of what they wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.client import Client
from hushcount.newest import Newest, Untrusted
from hushcount.policy import Policy
from tests.support.jobs import done, new_campaign, new_keys, refused, write_lines


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a campaign, and keys of its operator and its publisher."""
    words = write_lines(tmp_path / "words.txt", ["alpha", "beta"])
    new_campaign(tmp_path / "words.json", new_keys(tmp_path / "keys"), dictionary=words, discovery=1.0)
    for role in ("operator", "publisher"):
        done("keys", "new", "--role", role, "--out", tmp_path / role)
    return tmp_path


def delegated(home: Path, last_epoch: int = 9, serial: int = 1) -> Path:
    out = home / f"delegation-{last_epoch}-{serial}.json"
    done(
        "campaign", "delegate", "--campaign", home / "words.json", "--keys", home / "operator", "--publisher",
        home / "publisher" / "public.json", "--last-epoch", last_epoch, "--serial", serial, "--out", out,
    )  # fmt: skip
    return out


def following(home: Path, *options: object, name: str = "next") -> Path:
    """Make the file of the next epoch, with one word more."""
    more = write_lines(home / "more.txt", ["alpha", "beta", "gamma"])
    return new_campaign(
        home / f"{name}.json", home / "keys", "--id", "words", "--after", home / "words.json", *options,
        dictionary=more, discovery=1.0,
    )  # fmt: skip


def policy(home: Path) -> Policy:
    path = home / "policy.json"
    if not path.exists():
        done("campaign", "policy", "--campaign", home / "words.json", "--keys", home / "operator", "--out", path)
    return Policy.read(path, Newest(home / "newest.json"))


def sign(home: Path, path: Path, *options: object) -> None:
    done("campaign", "sign", "--campaign", path, *(options or ("--keys", home / "operator")))


def test_an_app_begins_with_one_command(home: Path) -> None:
    sign(home, home / "words.json")
    client = Client(Campaign.read(home / "words.json"), policy=policy(home))
    assert len(client.report("alpha")) == client.campaign.sealed_bytes("reports")
    refused(
        "campaign", "policy", "--campaign", home / "words.json", "--keys", home / "operator", "--out",
        home / "policy.json", says=["policy", "exists"],
    )  # fmt: skip


def test_a_publisher_signs_the_next_epoch_and_clients_follow(home: Path) -> None:
    sign(home, home / "words.json")
    Client(Campaign.read(home / "words.json"), policy=policy(home))
    path = following(home)
    first, second = Campaign.read(home / "words.json"), Campaign.read(path)
    assert (second.epoch, second.previous) == (first.epoch + 1, first.head.hex())
    sign(home, path, "--keys", home / "publisher", "--delegation", delegated(home))
    verify = ("campaign", "verify", "--campaign", path, "--keys", home / "operator")
    assert "a publisher to whom the operator delegates" in done(*verify).out
    client = Client(second, policy=policy(home))
    assert len(client.report("gamma")) == second.sealed_bytes("reports")
    with pytest.raises(Untrusted, match="older"):
        Client(first, policy=policy(home))


def test_a_publisher_cannot_sign_a_dearer_epoch(home: Path) -> None:
    path = following(home, "--cap", 3)
    by = ("--keys", home / "publisher", "--delegation", delegated(home))
    says = ["dictionary"]
    refused("campaign", "sign", "--campaign", path, *by, status=1, says=says)
    assert not Path(f"{path}.sig").exists()


def test_a_publisher_cannot_sign_beyond_its_last_epoch_nor_with_another_key(home: Path) -> None:
    path = following(home)
    sign_it = ("campaign", "sign", "--campaign", path)
    by = ("--keys", home / "publisher", "--delegation", delegated(home, 1))
    refused(*sign_it, *by, status=1, says=["campaign words is 2", "up to epoch 1"])
    done("keys", "new", "--role", "publisher", "--out", home / "another")
    by = ("--keys", home / "another", "--delegation", delegated(home))
    refused(*sign_it, *by, status=1, says=["delegate"])
    refused(*sign_it, "--keys", home / "operator", "--delegation", delegated(home, 5), says=["no active key"])


def test_a_thief_of_the_publishers_key_is_shut_out_and_its_victims_are_set_back(home: Path) -> None:
    sign(home, home / "words.json")
    Client(Campaign.read(home / "words.json"), policy=policy(home))
    thiefs, path = following(home, "--epoch", 1000, name="thiefs"), following(home)
    by_publisher = ("--keys", home / "publisher", "--delegation", delegated(home, 1000))
    sign(home, thiefs, *by_publisher)
    Client(Campaign.read(thiefs), policy=policy(home))
    restart = home / "restart.json"
    made = done(
        "campaign", "restart", "--campaign", home / "words.json", "--keys", home / "operator", "--serial", 2, "--out",
        restart, "--json",
    ).json  # fmt: skip
    assert (made["serial"], made["epoch"], made["head"]) == (2, 1, Campaign.read(home / "words.json").head.hex())
    handed_on = ("campaign", "sign", "--campaign", path, "--restart", restart)
    refused(*handed_on, *by_publisher, status=1, says=["serial", "1", "below 2", "delegate anew"])
    done(*handed_on, "--keys", home / "operator")
    verify = ("campaign", "verify", "--campaign", path, "--keys", home / "operator", "--json")
    assert done(*verify).json["serial"] == 2
    Client(Campaign.read(path), policy=policy(home))
    with pytest.raises(Untrusted):
        Client(Campaign.read(thiefs), policy=policy(home))


def test_a_restart_of_another_campaign_is_not_handed_on(home: Path) -> None:
    other = new_campaign(home / "other.json", home / "keys", dictionary=home / "words.txt")
    restart = home / "restart.json"
    done("campaign", "restart", "--campaign", other, "--keys", home / "operator", "--serial", 1, "--out", restart)
    refused(
        "campaign", "sign", "--campaign", home / "words.json", "--keys", home / "operator", "--restart", restart,
        status=1, says=["restart", "campaign other", "must be of words"],
    )  # fmt: skip
    assert not (home / "words.json.sig").exists()


def test_an_epoch_follows_one_of_the_same_campaign_before_it(home: Path) -> None:
    new = ("campaign", "new", "--mechanism", "grr", "--epsilon", 1, "--dictionary", home / "words.txt", "--keys",
           home / "keys", "--out", home / "x.json", "--after", home / "words.json")  # fmt: skip
    refused(*new, "--id", "other", says=["campaign words", "other"])
    refused(*new, "--id", "words", "--epoch", 1, says=["epoch is 1"])


def test_more_evaluator_keys_than_a_delegation_lists_are_refused_in_one_sentence(home: Path) -> None:
    evaluator = home / "evaluator"
    done("keys", "new", "--role", "evaluator", "--number", 33, "--out", evaluator)
    path = home / "asked.json"
    done(
        "campaign", "new", "--id", "asked", "--out", path, "--keys", home / "keys", "--keys", evaluator, "--dictionary",
        home / "words.txt", "--mechanism", "grr", "--epsilon", 1, "--min-batch", 50, "--discovery-epsilon", 1,
        "--discovery-delta", "1e-9", "--hash", "oblivious",
    )  # fmt: skip
    refused(
        "campaign", "delegate", "--campaign", path, "--keys", home / "operator", "--publisher", home / "publisher",
        "--last-epoch", 9, "--serial", 1, "--evaluator-keys", evaluator, "--out", home / "delegation.json",
        says=["evaluator_keys", "at most 32"],
    )  # fmt: skip
    assert not (home / "delegation.json").exists()
