"""One campaign for everybody: what whoever hands out campaign files can make clients of one campaign report to.

The attack: 400 clients get files that differ in one key each. All report to an honest shuffler, and after opening each
report names its sender by its binding. What the collector refuses is in tests/shuffler/collector.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import CampaignSignature
from hushcount.client import Client
from hushcount.newest import Newest, Untrusted
from hushcount.policy import Policy, terms_of
from tests.hushcount.campaigns.test_campaign_file import WORDS, changed, data, public
from tests.hushcount.campaigns.test_chain import log_of
from tests.hushcount.campaigns.vouched import KEY, NOW, PUBLISHER, delegated, delegation_for, public_part, signed

CLIENTS = 400
HONEST = Campaign.model_validate(data())
DELEGATION = delegation_for(HONEST)


@cache
def with_another_key(client: int) -> Campaign:
    """Return a client's own file: the analyzer's key is valid for some seconds more."""
    key = public(1)
    return Campaign.model_validate(
        changed("keys.analyzer", [{**key, "not_after": (NOW + timedelta(days=29, seconds=client + 1)).isoformat()}])
    )


@cache
def with_another_hash_key(client: int, **changes: Any) -> Campaign:
    """Return a client's own file as a publisher may sign it."""
    return Campaign.model_validate({**changed("discovery.hash_key", f"{client:064x}"), **changes})


def fresh(newest: Newest | None = None) -> Policy:
    return Policy(**dict(terms_of(HONEST, (public_part(KEY),))), newest=newest or Newest())


def reports(campaign: Campaign, signature: CampaignSignature | None, policy: Policy) -> bytes | None:
    """Return a client's report under a campaign, None if it refuses."""
    try:
        return Client(campaign, policy=policy, signature=signature, dictionary=WORDS).report("one")
    except Untrusted:
        return None


def test_without_a_policy_each_of_400_files_would_name_its_client() -> None:
    """The attack itself, which the tests below refuse."""
    bindings = {with_another_key(client).binding("reports") for client in range(CLIENTS)}
    assert len(bindings) == CLIENTS
    assert all(reports(with_another_key(client), None, Policy.trusting()) for client in range(CLIENTS))


def test_400_files_that_the_operator_did_not_sign_get_no_report(subtests: pytest.Subtests) -> None:
    for who in ("nobody", "genuine signature", "publisher", "publisher, own delegation"):
        with subtests.test(who=who):

            def signature(campaign: Campaign, who: str = who) -> CampaignSignature | None:
                if who == "nobody":
                    return None
                if who == "genuine signature":
                    return signed(HONEST)
                own = delegation_for(campaign, by=PUBLISHER) if who.endswith("delegation") else DELEGATION
                return delegated(campaign, own)

            files = [with_another_key(client) for client in range(CLIENTS)]
            assert [one for one in files if reports(one, signature(one), fresh())] == []
            # So that the test fails for the files alone.
            assert reports(HONEST, delegated(HONEST, DELEGATION), fresh())


def test_clients_that_know_the_epoch_take_no_other_file_of_it(tmp_path: Path) -> None:
    """Even one that the publisher may sign: another hash key."""
    for client in range(CLIENTS):
        policy = fresh()
        assert reports(HONEST, signed(HONEST), policy)
        other = with_another_hash_key(client)
        assert reports(other, delegated(other, DELEGATION), policy) is None


def test_a_publisher_that_forks_an_epoch_is_believed_until_a_client_sees_the_common_history() -> None:
    """The limit of a client that sees one history only. The collector refuses such reports; an audit finds forks."""
    common = with_another_hash_key(0, epoch=3, previous=HONEST.head.hex())
    following = with_another_hash_key(0, epoch=4, previous=common.head.hex())
    for client in range(1, 20):
        policy = fresh()
        assert reports(HONEST, signed(HONEST), policy)
        forked = with_another_hash_key(client, epoch=3, previous=HONEST.head.hex())
        assert reports(forked, delegated(forked, DELEGATION), policy)
        policy_says: list[str] = []
        for shown in (common, following):
            with pytest.raises(Untrusted) as caught:
                policy.accept(shown, delegated(shown, DELEGATION), log_of([HONEST, common, following]))
            policy_says.append(str(caught.value))
        assert "is another file than the one that was accepted before" in policy_says[0]
        assert "does not continue epoch 3, which was accepted before" in policy_says[1]


def test_a_signed_older_epoch_with_more_epsilon_is_refused(tmp_path: Path) -> None:
    """The operator lowered epsilon; whoever hands out the old file with its genuine signature gets no report."""
    dear = Campaign.model_validate({**changed("mechanism.epsilon", 3.0), "epoch": 1})
    cheap = Campaign.model_validate({**data(), "previous": dear.head.hex()})
    # The policy of the release that shipped with the dear epoch.
    generous = {**dict(terms_of(dear, (public_part(KEY),)))}
    for restarted in (False, True):
        path = tmp_path / f"newest-{restarted}.json"
        policy = Policy(**generous, newest=Newest(path))
        assert reports(dear, signed(dear), policy)
        assert reports(cheap, signed(cheap), policy)
        if restarted:
            policy = Policy(**generous, newest=Newest(path))
        assert reports(dear, signed(dear), policy) is None
        assert reports(cheap, signed(cheap), policy)
