"""What a client refuses: whatever breaks its policy, and every history but the one that it accepted before."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import parse_campaign_signature
from hushcount.campaigns.log import CampaignLog
from hushcount.client import Client
from hushcount.discovery.keep_rules import KeepRule
from hushcount.errors import FormatError, HushcountError, UsageError
from hushcount.formats.reading import parse_model
from hushcount.newest import Newest, Untrusted
from hushcount.policy import Policy, PolicyTerms, costs, terms_of
from tests.hushcount.campaigns.test_campaign_file import WORDS, changed, data
from tests.hushcount.campaigns.test_chain import epochs, log_of
from tests.hushcount.campaigns.vouched import KEY, NOW, PUBLISHER, STRANGER, delegated, public_part, signed
from tests.support.clocks import Hands

CAMPAIGN = Campaign.model_validate(data())
LIMITS: dict[str, Any] = {
    "max_epsilon": 3.0,
    "max_discovery_epsilon": 1.0,
    "max_delta": 1e-6,
    "min_batch": 10,
    "max_report_bytes": 400,
}
"""What the campaign of `data` costs; its longest report has fewer bytes."""


def policy(newest: Newest | None = None, **changes: Any) -> Policy:
    made = {"campaign_id": "words", "operator_keys": (public_part(KEY),), **LIMITS, **changes}
    return Policy(newest=newest or Newest(), **made)


def later(campaign: Campaign, **changes: Any) -> Campaign:
    """Return a file of the epoch after a campaign's."""
    return Campaign.model_validate({**data(), "epoch": campaign.epoch + 1, "previous": campaign.head.hex(), **changes})


def accept(one: Policy, campaign: Campaign, log: CampaignLog | None = None) -> None:
    one.accept(campaign, signed(campaign), log)


# Signatures.


def test_a_client_without_a_policy_is_refused() -> None:
    for none in (None, 5, "policy.json", {}):
        with pytest.raises(UsageError, match=r"policy=Policy\.read"):
            Client(CAMPAIGN, policy=none, dictionary=WORDS)  # type: ignore[arg-type]


def test_a_signed_campaign_within_the_policy_gets_reports() -> None:
    client = Client(CAMPAIGN, policy=policy(), signature=signed(CAMPAIGN), dictionary=WORDS)
    assert len(client.report("one")) == CAMPAIGN.sealed_bytes("reports")
    assert len(client.discovery_report("four")) == CAMPAIGN.sealed_bytes("discovery")


def test_a_campaign_that_the_operator_did_not_sign_is_refused(subtests: pytest.Subtests) -> None:
    for signature, says in [
        (None, "unsigned"),
        (signed(CAMPAIGN, STRANGER), f"{STRANGER.id}.*{KEY.id}"),
        (signed(later(CAMPAIGN)), "altered"),
        (signed(CAMPAIGN, PUBLISHER), f"{PUBLISHER.id}.*{KEY.id}"),
        (delegated(CAMPAIGN, by=STRANGER), f"delegation .*{STRANGER.id}"),
    ]:
        with subtests.test(says=says), pytest.raises(Untrusted, match=says):
            Client(CAMPAIGN, policy=policy(), signature=signature, dictionary=WORDS)


def test_a_signature_is_read_from_beside_the_file(tmp_path: Path) -> None:
    path = tmp_path / "campaign.json"
    CAMPAIGN.write(path)
    with pytest.raises(Untrusted, match="unsigned"):
        Client(Campaign.read(path), policy=policy(), dictionary=WORDS)
    (tmp_path / "campaign.json.sig").write_text(signed(CAMPAIGN).text())
    Client(Campaign.read(path), policy=policy(), dictionary=WORDS)
    (tmp_path / "campaign.json.sig").write_text("{}")
    with pytest.raises(FormatError, match=r"campaign\.json\.sig"):
        Client(Campaign.read(path), policy=policy(), dictionary=WORDS)


def test_a_client_that_lives_long_stops_when_a_key_that_vouches_expires() -> None:
    """The publisher's key ends before the operator's, and before the keys that reports are sealed to."""
    signature = delegated(CAMPAIGN, publisher=public_part(PUBLISHER, days=5))
    hands = Hands(NOW.timestamp())
    client = Client(CAMPAIGN, policy=policy(), signature=signature, dictionary=WORDS, clock=hands.clock)
    for days, stops in ((3, False), (4, True), (6, True)):
        hands.now = (NOW + timedelta(days=days)).timestamp()
        for make in (client.report, client.discovery_report):
            if stops:
                with pytest.raises(Untrusted, match="valid until"):
                    make("one")
            else:
                make("one")


FILE = json.dumps(CAMPAIGN.model_dump(mode="json", exclude_none=True)).encode()
SIGNATURE = delegated(CAMPAIGN).text().encode()


@given(st.integers(0, len(FILE) - 1), st.integers(0, 255))
def test_a_file_with_one_byte_changed_is_refused_or_is_the_same_campaign(place: int, byte: int) -> None:
    """The same but for its dictionary's name, or a space."""
    raw = FILE[:place] + bytes([byte]) + FILE[place + 1 :]
    try:
        campaign = parse_model(Campaign, raw, "the campaign")
        policy().accept(campaign, signed(CAMPAIGN))
    except (Untrusted, FormatError):
        return
    assert campaign.fingerprint == CAMPAIGN.fingerprint


@given(st.integers(0, len(SIGNATURE) - 1), st.integers(0, 255))
def test_a_signature_with_one_byte_changed_is_refused_or_is_the_same(place: int, byte: int) -> None:
    raw = SIGNATURE[:place] + bytes([byte]) + SIGNATURE[place + 1 :]
    try:
        signature = parse_campaign_signature(raw, "the signature")
        policy().accept(CAMPAIGN, signature)
    except (Untrusted, FormatError):
        return
    assert signature == delegated(CAMPAIGN)


# Limits.


def test_each_parameter_that_costs_a_client_has_a_limit(subtests: pytest.Subtests) -> None:
    for path, value in [
        ("mechanism.epsilon", 1.6),
        ("shuffle.cap", 3),
        ("shuffle.delta", 2e-6),
        ("shuffle.minimum_batch", 9),
        ("discovery.epsilon", 1.1),
        ("discovery.delta", 2e-6),
        ("discovery.relation", "add-remove"),
        ("discovery.max_value_bytes", 300),
    ]:
        with subtests.test(path=path):
            costly = Campaign.model_validate(changed(path, value))
            with pytest.raises(Untrusted, match=r"the policy (allows|demands)"):
                accept(policy(), costly)


def test_what_clients_that_remember_spend_in_an_epoch_is_bounded() -> None:
    made = {**data(), "memory": True, "memory_values": 3}
    with pytest.raises(Untrusted, match=r"epoch .* is 4\.5"):
        accept(policy(), Campaign.model_validate(made))
    accept(policy(max_epsilon=4.5), Campaign.model_validate(made))


def test_the_cost_of_discovery_is_of_one_client_replaced() -> None:
    """Twice add-remove's, by the rule's own steps: a removal and an addition."""
    for cap in (1, 3):
        for relation, sides in (("replace-one", 1), ("add-remove", 2)):
            rule = KeepRule("optimal", 1.5, 1e-6, relation, cap)  # type: ignore[arg-type]
            assert rule.replaced == (1.5 * sides, 1e-6 * sides)
            assert float(rule.loss_epsilon + rule.gain_epsilon) * cap == pytest.approx(rule.replaced[0])


def test_terms_of_a_campaign_allow_it_and_nothing_dearer(tmp_path: Path) -> None:
    terms = terms_of(CAMPAIGN, (public_part(KEY),))
    (tmp_path / "policy.json").write_text(terms.text())
    own = Policy.read(tmp_path / "policy.json", Newest())
    assert costs(CAMPAIGN) == (3.0, 1.0, 1e-6)
    accept(own, CAMPAIGN)
    for path, value in (("mechanism.epsilon", 1.501), ("shuffle.minimum_batch", 9), ("discovery.delta", 1.01e-6)):
        with pytest.raises(Untrusted):
            accept(own, Campaign.model_validate(changed(path, value)))
    with pytest.raises(UsageError, match=r"^operator_keys is "):
        terms_of(CAMPAIGN, ())


# Rollback and forks.


@pytest.mark.parametrize("durable", [False, True])
def test_an_older_epoch_is_refused_even_if_it_is_signed(tmp_path: Path, durable: bool) -> None:
    """The older file costs more: whoever hands it out would have clients spend what the operator took back."""
    path = tmp_path / "newest.json" if durable else None
    first, second, _ = epochs(3)
    one = policy(Newest(path))
    accept(one, first)
    accept(one, second)
    again = policy(Newest(path)) if durable else one
    with pytest.raises(Untrusted, match=r"epoch 1 .*words.* epoch 3"):
        accept(again, first)
    accept(again, second)
    with pytest.raises(Untrusted, match="epoch 1 "):
        Client(first, policy=again, signature=signed(first), dictionary=WORDS)


def test_a_client_that_accepted_nothing_yet_accepts_any_signed_epoch_within_its_policy() -> None:
    """The limit: nothing tells a new client which epoch is the newest. Its policy bounds what an old one may cost."""
    first, second, _ = epochs(3)
    for campaign in (second, first):
        accept(policy(), campaign)
    with pytest.raises(Untrusted, match="frequency reports"):
        accept(policy(), Campaign.model_validate({**changed("mechanism.epsilon", 3.0), "epoch": 1}))


def test_an_epoch_with_another_history_is_refused() -> None:
    one = policy()
    accept(one, CAMPAIGN)
    twin = Campaign.model_validate(changed("discovery.hash_key", "ac" * 32))
    for forked in (later(twin), later(CAMPAIGN, previous=None), later(CAMPAIGN, previous="ab" * 32)):
        for log in (None, log_of([CAMPAIGN]), log_of([twin, forked]), CampaignLog(campaign="words")):
            with pytest.raises(Untrusted, match="epoch 2"):
                accept(one, forked, log)
    accept(one, later(CAMPAIGN))


def test_a_refused_campaign_leaves_what_was_accepted(tmp_path: Path) -> None:
    path = tmp_path / "newest.json"
    one = policy(Newest(path), max_epsilon=3.0)
    accept(one, CAMPAIGN)
    before = path.read_bytes()
    dear = later(CAMPAIGN, mechanism={"name": "ss", "epsilon": 4.0, "parameters": {"s": 1}})
    with pytest.raises(Untrusted, match="frequency reports"):
        accept(one, dear)
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o600


def test_several_campaigns_share_a_file(tmp_path: Path) -> None:
    newest = Newest(tmp_path / "newest.json")
    other = Campaign.model_validate({**data(), "id": "other", "epoch": 9})
    accept(policy(newest), CAMPAIGN)
    accept(policy(newest, campaign_id="other"), other)
    with pytest.raises(Untrusted, match=r"epoch 8 .*epoch 9"):
        accept(policy(newest, campaign_id="other"), Campaign.model_validate({**data(), "id": "other", "epoch": 8}))
    with pytest.raises(Untrusted, match=r"epoch 1 .*epoch 2"):
        accept(policy(newest), Campaign.model_validate({**data(), "epoch": 1}))
    accept(policy(newest), later(CAMPAIGN))


def test_a_damaged_file_of_heads_is_refused(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for number, content in enumerate(
        ["", "[]", '{"campaigns": 5}', '{"campaigns": {"words": {"epoch": 0}}}', "\x00" * 99]
    ):
        home = tmp_path / str(number)
        home.mkdir()
        with subtests.test(content=content):
            path = home / "newest.json"
            path.write_text(content)
            path.chmod(0o600)
            with pytest.raises(FormatError, match=r"newest\.json"):
                accept(policy(Newest(path)), CAMPAIGN)


def test_heads_that_cannot_be_kept_make_no_client(tmp_path: Path) -> None:
    with pytest.raises(HushcountError, match=r"newest\.json"):
        accept(policy(Newest(tmp_path / "missing" / "newest.json")), CAMPAIGN)
    path = tmp_path / "newest.json"
    accept(policy(Newest(path)), CAMPAIGN)
    path.chmod(0o644)
    with pytest.raises(UsageError, match="0600"):
        accept(policy(Newest(path)), CAMPAIGN)


def test_of_two_files_of_an_epoch_at_once_one_is_accepted(tmp_path: Path) -> None:
    newest = Newest(tmp_path / "newest.json")
    twins = [Campaign.model_validate(changed("discovery.hash_key", f"{index:02x}" * 32)) for index in range(8)]
    taken: list[int] = []

    def take(index: int) -> None:
        try:
            accept(policy(newest), twins[index])
            taken.append(index)
        except Untrusted:
            pass

    threads = [threading.Thread(target=take, args=(index,)) for index in range(len(twins))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 1


# The file, and the way out.


def test_a_policy_file_reads_back_and_takes_defaults(tmp_path: Path) -> None:
    whole = policy()
    (tmp_path / "policy.json").write_text(whole.text())
    read = Policy.read(tmp_path / "policy.json", whole.newest)
    assert PolicyTerms(**{name: getattr(read, name) for name in PolicyTerms.model_fields}).text() == whole.text()
    assert "newest" not in whole.text()
    short = json.loads(whole.text())
    for name in ("max_discovery_epsilon", "max_delta", "min_batch", "max_report_bytes"):
        del short[name]
    (tmp_path / "policy.json").write_text(json.dumps(short))
    read = Policy.read(tmp_path / "policy.json", Newest())
    assert (read.max_discovery_epsilon, read.max_delta) == (0.0, 1e-6)
    assert (read.min_batch, read.max_report_bytes) == (1000, 16384)


def test_a_trusting_policy_is_loud(caplog: pytest.LogCaptureFixture) -> None:
    Client(CAMPAIGN, policy=Policy.trusting(), dictionary=WORDS)
    (said,) = caplog.messages
    assert "Policy.trusting" in said
