"""A publisher's signature: it holds for what the operator delegated, and for nothing else."""

from __future__ import annotations

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import parse_campaign_signature, verify_campaign
from hushcount.campaigns.signatures import SIGNATURE_BYTES, SignatureError
from hushcount.errors import FormatError
from tests.hushcount.campaigns.test_campaign_file import changed, data
from tests.hushcount.campaigns.vouched import (
    KEY,
    PUBLISHER,
    STRANGER,
    delegated,
    delegation_for,
    public_part,
)

TRUSTED = (public_part(STRANGER, -20, 40), public_part(KEY, -10, 60))
CAMPAIGN = Campaign.model_validate(data())


def grown() -> Campaign:
    """Return the next epoch, with another dictionary."""
    made = changed("dictionary", {"path": "more.txt", "items": 5, "digest": "0" * 64})
    made["mechanism"]["parameters"]["s"] = 2
    return Campaign.model_validate({**made, "epoch": 3, "previous": CAMPAIGN.head.hex()})


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
            with pytest.raises(SignatureError, match=f"has the terms {costly.terms.hex()}"):
                verify_campaign(TRUSTED, costly, delegated(costly, delegation_for(CAMPAIGN)))


def test_a_delegation_ends_with_its_last_epoch() -> None:
    delegation = delegation_for(CAMPAIGN, last_epoch=2)
    verify_campaign(TRUSTED, CAMPAIGN, delegated(CAMPAIGN, delegation))
    with pytest.raises(SignatureError, match=r"words is 3,.* 2"):
        verify_campaign(TRUSTED, grown(), delegated(grown(), delegation))


def test_a_signature_file_with_a_delegation_reads_back_and_fits_a_header() -> None:
    signature = delegated(CAMPAIGN)
    assert parse_campaign_signature(signature.text().encode(), "x.sig") == signature
    assert len(signature.text()) < SIGNATURE_BYTES
    assert "\n" not in signature.text().strip()
    long = signature.text() + " " * SIGNATURE_BYTES
    for damaged in (signature.text()[:-9], signature.text().replace("publisher", "publishers"), long):
        with pytest.raises(FormatError, match=r"x\.sig"):
            parse_campaign_signature(damaged.encode(), "x.sig")
