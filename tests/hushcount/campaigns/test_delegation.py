"""A publisher's signature: it holds for what the operator delegated, and for nothing else."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import CampaignSignature, parse_campaign_signature, verify_campaign
from hushcount.campaigns.signatures import SIGNATURE_BYTES, Signature, SignatureError
from hushcount.errors import FormatError
from hushcount.formats.canonical_json import canonical_json
from tests.hushcount.campaigns.test_campaign_file import changed, data
from tests.hushcount.campaigns.vouched import (
    KEY,
    NOW,
    PUBLISHER,
    STRANGER,
    delegated,
    delegation_for,
    public_part,
    signed,
)

TRUSTED = (public_part(STRANGER, -20, 40), public_part(KEY, -10, 60))
CAMPAIGN = Campaign.model_validate(data())


def grown() -> Campaign:
    """Return the next epoch, with another dictionary."""
    made = changed("dictionary", {"path": "more.txt", "items": 5, "digest": "0" * 64})
    made["mechanism"]["parameters"]["s"] = 2
    return Campaign.model_validate({**made, "epoch": 3, "previous": CAMPAIGN.head.hex()})


def test_the_operators_own_signature_needs_no_delegation() -> None:
    assert verify_campaign(TRUSTED, CAMPAIGN, signed(CAMPAIGN)) == (TRUSTED[1],)
    with pytest.raises(SignatureError, match="signed with key"):
        verify_campaign(TRUSTED, CAMPAIGN, signed(CAMPAIGN, PUBLISHER))


def test_a_publisher_may_sign_the_next_epoch_with_another_dictionary() -> None:
    delegation = delegation_for(CAMPAIGN)
    for campaign in (CAMPAIGN, grown(), grown().redacted()):
        vouching = verify_campaign(TRUSTED, campaign, delegated(campaign, delegation))
        assert [key.id for key in vouching] == [PUBLISHER.id, KEY.id]


def test_a_publisher_that_raises_a_price_is_refused(subtests: pytest.Subtests) -> None:
    for path, value in [
        ("mechanism.epsilon", 1.51),
        ("shuffle.cap", 3),
        ("discovery.epsilon", 2.0),
        ("shuffle.minimum_batch", 9),
    ]:
        with subtests.test(path=path):
            costly = Campaign.model_validate(changed(path, value))
            with pytest.raises(SignatureError, match="dictionary only"):
                verify_campaign(TRUSTED, costly, delegated(costly, delegation_for(CAMPAIGN)))


def test_a_delegation_that_was_altered_or_made_by_another_is_refused() -> None:
    costly = Campaign.model_validate(changed("mechanism.epsilon", 8.0))
    honest = delegation_for(CAMPAIGN)
    for forged in (
        honest.model_copy(update={"terms": costly.terms.hex()}),
        delegation_for(costly, by=PUBLISHER),
        delegation_for(costly).model_copy(update={"last_epoch": 1000}),
        delegation_for(costly).model_copy(update={"publisher": public_part(STRANGER)}),
    ):
        with pytest.raises(SignatureError, match=r"the delegation|signature of the delegation"):
            verify_campaign(TRUSTED, costly, delegated(costly, forged))


def test_a_signature_by_another_than_the_publisher_is_refused() -> None:
    """Not even the operator's other key may sign in the publisher's place, nor the delegation's own signature."""
    with pytest.raises(SignatureError, match=f"{STRANGER.id}.*{PUBLISHER.id}"):
        verify_campaign(TRUSTED, CAMPAIGN, delegated(CAMPAIGN, key=STRANGER))
    swapped = CampaignSignature(
        **Signature(key_id=PUBLISHER.id, signature=signed(CAMPAIGN).signature).model_dump(),
        delegation=delegation_for(CAMPAIGN),
    )
    with pytest.raises(SignatureError, match="is wrong"):
        verify_campaign(TRUSTED, CAMPAIGN, swapped)


def test_a_delegation_ends_with_its_last_epoch() -> None:
    delegation = delegation_for(CAMPAIGN, last_epoch=2)
    verify_campaign(TRUSTED, CAMPAIGN, delegated(CAMPAIGN, delegation))
    with pytest.raises(SignatureError, match=r"words is 3,.* 2"):
        verify_campaign(TRUSTED, grown(), delegated(grown(), delegation))


def test_a_delegation_for_another_campaign_is_refused() -> None:
    other = Campaign.model_validate(changed("id", "other"))
    for made in (delegation_for(other), delegation_for(CAMPAIGN, campaign="other")):
        with pytest.raises(SignatureError, match="other"):
            verify_campaign(TRUSTED, CAMPAIGN, delegated(CAMPAIGN, made))


def test_both_keys_must_be_valid_now(subtests: pytest.Subtests) -> None:
    """The publisher's for 30 days from yesterday, the operator's for 60 from ten days ago."""
    for days in [-15, 35, 70]:
        with subtests.test(days=days):
            with pytest.raises(SignatureError, match="fetch the newest campaign"):
                verify_campaign(TRUSTED, CAMPAIGN, delegated(CAMPAIGN), NOW + timedelta(days=days))
            short = (public_part(KEY, -1, 2),)
            with pytest.raises(SignatureError, match=KEY.id):
                verify_campaign(short, CAMPAIGN, delegated(CAMPAIGN), NOW + timedelta(days=3))


def test_the_operator_signs_the_canonical_json_of_the_rest() -> None:
    delegation = delegation_for(CAMPAIGN)
    rest = json.loads(delegation.model_dump_json())
    del rest["signature"]
    assert delegation.signed() == canonical_json(rest)
    assert KEY.sign(canonical_json(rest), "delegation") == delegation.signature


def test_a_signature_file_with_a_delegation_reads_back_and_fits_a_header() -> None:
    signature = delegated(CAMPAIGN)
    assert parse_campaign_signature(signature.text().encode(), "x.sig") == signature
    assert len(signature.text()) < SIGNATURE_BYTES
    assert "\n" not in signature.text().strip()
    long = signature.text() + " " * SIGNATURE_BYTES
    for damaged in (signature.text()[:-9], signature.text().replace("publisher", "publishers"), long):
        with pytest.raises(FormatError, match=r"x\.sig"):
            parse_campaign_signature(damaged.encode(), "x.sig")
