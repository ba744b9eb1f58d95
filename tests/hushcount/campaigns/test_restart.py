"""When a publisher's key was stolen: the operator replaces the publisher, and sets deceived clients back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.budget import Budget
from hushcount.campaigns.campaign import GREATEST_EPOCH, Campaign
from hushcount.campaigns.delegation import CampaignSignature, Restart
from hushcount.campaigns.log import MOST_EPOCHS, CampaignLog
from hushcount.campaigns.public_keys import EvaluatorKeyPart
from hushcount.campaigns.signatures import SIGNATURE_BYTES
from hushcount.client import Client
from hushcount.errors import UsageError
from hushcount.memory import ClientMemory
from hushcount.newest import Newest, Untrusted
from hushcount.policy import Policy, terms_of
from keys.evaluating import EvaluatorKey
from keys.private import SigningKey
from keys.vouching import delegate
from tests.hushcount.campaigns.test_campaign_file import WORDS, changed, data, listed
from tests.hushcount.campaigns.test_chain import epochs, log_of
from tests.hushcount.campaigns.vouched import (
    KEY,
    PUBLISHER,
    STRANGER,
    delegated,
    delegation_for,
    public_part,
    restart_at,
    signed,
)

FIRST, SECOND, THIRD = epochs(3)
"""What the operator published; the last is epoch 5."""
LOG = log_of([FIRST, SECOND, THIRD])
NEXT_KEY = SigningKey(bytes([9]) * 32)
"""That of the publisher after the theft."""


def after(before: Campaign, **changes: Any) -> Campaign:
    made = {"epoch": before.epoch + 1, "previous": before.head.hex(), **changes}
    return Campaign.model_validate({**before.model_dump(mode="json"), **made})


def forged(before: Campaign = THIRD, epoch: int = 1000, **changes: Any) -> Campaign:
    """Return what a thief makes of an epoch: a hash key of its own."""
    discovery = {**data()["discovery"], "hash_key": "ab" * 32}
    return after(before, epoch=epoch, discovery=discovery, **changes)


STOLEN = delegation_for(THIRD, last_epoch=GREATEST_EPOCH)
REPLACED = delegation_for(THIRD, publisher=public_part(NEXT_KEY), serial=3)
RESTART = restart_at(THIRD, 2)
THIEFS, NEXT = forged(), after(THIRD)


def policy(path: Path | None = None, of: Campaign = THIRD) -> Policy:
    return Policy(**dict(terms_of(of, (public_part(KEY),))), newest=Newest(path))


def deceived(path: Path | None = None) -> Policy:
    """Return the policy of a client that took what the thief made."""
    one = policy(path)
    one.accept(THIRD, signed(THIRD))
    one.accept(THIEFS, delegated(THIEFS, STOLEN))
    return one


def refuses(one: Policy, campaign: Campaign, signature: CampaignSignature, log: CampaignLog | None = None) -> str:
    with pytest.raises(Untrusted) as caught:
        one.accept(campaign, signature, log)
    return str(caught.value)


def test_a_publisher_that_was_replaced_is_refused_by_who_saw_the_new_one(tmp_path: Path) -> None:
    one = policy(tmp_path / "newest.json")
    one.accept(THIRD, signed(THIRD))
    by_new = delegated(NEXT, REPLACED, key=NEXT_KEY)
    one.accept(NEXT, by_new)
    again = policy(tmp_path / "newest.json")
    late = forged(NEXT, 7)
    assert "1" in refuses(again, late, delegated(late, STOLEN))
    # What the operator itself signs needs no serial, and the publisher stays.
    for _ in range(2):
        again.accept(NEXT, signed(NEXT))
        again.accept(NEXT, by_new)


def test_a_restart_heals_what_a_thief_did_and_ends_the_stolen_key(tmp_path: Path) -> None:
    for log in (None, LOG):
        for number in (6, 1001):
            refuses(deceived(), after(THIRD, epoch=number), signed(after(THIRD, epoch=number)), log)
    path = tmp_path / "newest.json"
    deceived(path)
    one = policy(path)
    one.accept(NEXT, signed(NEXT, restart=RESTART))
    assert json.loads(path.read_text().splitlines()[0])["campaigns"]["words"] == {
        "epoch": 6,
        "head": NEXT.head.hex(),
        "serial": 2,
        "noise": False,
    }
    for shown in (THIEFS, forged(NEXT, 7), forged(THIRD, 6), forged(THIRD, 7)):
        refuses(policy(path), shown, delegated(shown, STOLEN))
        refuses(policy(path), shown, delegated(shown, STOLEN, restart=RESTART))
    following = after(NEXT)
    one.accept(following, delegated(following, REPLACED, key=NEXT_KEY, restart=RESTART))


def test_a_restart_can_be_had_with_the_file_that_it_names_or_much_later() -> None:
    one = deceived()
    one.accept(THIRD, signed(THIRD, restart=RESTART))
    late = after(NEXT)
    two = deceived()
    by_new = delegated(late, REPLACED, key=NEXT_KEY, restart=RESTART)
    assert "log" in refuses(two, late, by_new)
    two.accept(late, by_new, log_of([FIRST, SECOND, THIRD, NEXT]))
    # A client without a past needs no log for it.
    policy().accept(late, by_new)


def test_nobody_but_the_operator_restarts(subtests: pytest.Subtests) -> None:
    other = Campaign.model_validate({**THIRD.model_dump(mode="json"), "id": "other"})
    for name, restart in {
        "publisher": restart_at(THIRD, 2, by=PUBLISHER),
        "stranger": restart_at(THIRD, 2, by=STRANGER),
        "altered serial": RESTART.model_copy(update={"serial": 3}),
        "altered head": RESTART.model_copy(update={"head": SECOND.head.hex()}),
        "altered epoch": RESTART.model_copy(update={"epoch": 4}),
        "another campaign": restart_at(other, 2),
        "another purpose": RESTART.model_copy(update={"signature": KEY.sign(RESTART.signed(), "delegation")}),
    }.items():
        with subtests.test(name=name):
            for made in (signed(NEXT, restart=restart), delegated(NEXT, REPLACED, key=NEXT_KEY, restart=restart)):
                refuses(deceived(), NEXT, made)
                refuses(policy(), NEXT, made)


def test_a_publisher_leaves_out_no_more_epochs_than_a_log_holds() -> None:
    for number, taken in ((MOST_EPOCHS + 5, True), (MOST_EPOCHS + 6, False), (GREATEST_EPOCH, False)):
        one, far = policy(), forged(epoch=number)
        one.accept(THIRD, signed(THIRD))
        if taken:
            one.accept(far, delegated(far, STOLEN))
        else:
            assert str(MOST_EPOCHS) in refuses(one, far, delegated(far, STOLEN))
            one.accept(far, signed(far))


def test_what_the_operator_delegates_is_bounded_likewise() -> None:
    operator: Any = KEY  # it signs as a reference to it does
    assert delegate(operator, THIRD, public_part(PUBLISHER), 5 + MOST_EPOCHS, 1).last_epoch == 5 + MOST_EPOCHS
    for last in (6 + MOST_EPOCHS, GREATEST_EPOCH):
        with pytest.raises(UsageError, match="last_epoch"):
            delegate(operator, THIRD, public_part(PUBLISHER), last, 1)


def test_the_longest_signature_fits_a_header() -> None:
    keys = [EvaluatorKeyPart.model_validate(listed(EvaluatorKey(bytes([1, number]) * 16))).key for number in range(32)]
    most = {"serial": GREATEST_EPOCH, "last_epoch": GREATEST_EPOCH, "evaluator_keys": keys}
    named = Campaign.model_validate({**THIRD.model_dump(mode="json"), "id": "w" * 64, "epoch": GREATEST_EPOCH})
    made = delegated(named, restart=restart_at(named, GREATEST_EPOCH), **most)
    assert len(made.text().encode()) < SIGNATURE_BYTES


def test_to_go_back_renews_neither_memory_nor_budget(tmp_path: Path) -> None:
    """Answers are kept by the fingerprint, and charges by the campaign: no epoch's number opens anything again."""
    remembering = {"memory": True, "memory_values": 2, "discovery": None, "keys": data()["keys"] | {"aux_server": []}}
    cap = {"cap": 100, "minimum_batch": 10, "delta": 1e-7}
    first = Campaign.model_validate({**changed("shuffle", cap), **remembering})
    thiefs = after(first, epoch=1000, mechanism={"name": "ss", "epsilon": 1.5, "parameters": {"s": 2}})
    memory, budget = ClientMemory(tmp_path / "memory"), Budget(tmp_path / "budget")
    made: list[tuple[bytes, ...]] = []
    spent: list[float] = []

    def live(campaign: Campaign, signature: CampaignSignature) -> None:
        demands = policy(tmp_path / "newest.json", first)
        client = Client(campaign, policy=demands, signature=signature, dictionary=WORDS, memory=memory, budget=budget)
        for value in ("one", "two"):
            client.report(value)
        made.append(answers(memory))
        spent.append(budget.spent().epsilon)

    live(first, signed(first))
    live(thiefs, delegated(thiefs, delegation_for(first, last_epoch=1000)))
    live(first, signed(first, restart=restart_at(first, 2)))
    live(first, signed(first))
    assert len(made[0]) == 2
    assert len(made[1]) == 4
    assert made[2] == made[3] == made[1]
    assert spent == [3.0, 6.0, 6.0, 6.0]


def answers(memory: ClientMemory) -> tuple[bytes, ...]:
    return tuple(bytes.fromhex(one) for one in memory._kept.read().answers.values())


files = st.sampled_from([FIRST, SECOND, THIRD, NEXT, after(NEXT), THIEFS, forged(NEXT, 7), after(THIEFS)])
restarts: st.SearchStrategy[Restart | None] = st.one_of(
    st.none(), st.builds(restart_at, st.sampled_from([SECOND, THIRD, NEXT]), st.integers(1, 4))
)
CHAINS = [
    [*LOG.heads, *rest]
    for rest in ([NEXT.head, after(NEXT).head], [NEXT.head, forged(NEXT, 7).head], [THIEFS.head, after(THIEFS).head])
]
LOGS = (None, log_of([FIRST, SECOND, THIRD, NEXT, after(NEXT)]), log_of([FIRST, SECOND, THIRD, THIEFS]))


@given(st.lists(st.tuples(files, st.integers(0, 4), restarts, st.sampled_from(LOGS)), max_size=10))
def test_only_a_greater_serial_of_the_operator_leaves_a_history(
    shown: list[tuple[Campaign, int, Restart | None, CampaignLog | None]],
) -> None:
    """Serial 0 stands for the operator's own signature, any other for a publisher's under a delegation."""
    newest, head, serial = Newest(), None, 0
    for campaign, number, restart, log in shown:
        signature = (
            delegated(campaign, delegation_for(THIRD, serial=number), restart=restart)
            if number
            else signed(campaign, restart=restart)
        )
        try:
            newest.keep(campaign, log, signature)
        except Untrusted:
            continue
        goes_on = head is None or any(
            head in one and campaign.head in one and one.index(head) <= one.index(campaign.head) for one in CHAINS
        )
        said = 0 if restart is None else restart.serial
        assert goes_on or said > serial
        assert number == 0 or number >= serial
        head, serial = campaign.head, max(serial, number, said)
