"""Signatures of campaigns in tests: by an operator's key, or by a publisher's to whom it delegates."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import CampaignSignature, Delegation, DelegationTerms, Restart, RestartTerms
from hushcount.campaigns.public_keys import VerifyKeyPart
from keys.private import SigningKey

KEY, PUBLISHER, STRANGER = (SigningKey(bytes([number]) * 32) for number in (1, 2, 3))
"""The operator's key, the publisher's, and one that nobody trusts."""
NOW = datetime.now(timezone.utc).replace(microsecond=0)


def public_part(key: SigningKey, start: int = -1, days: int = 30) -> VerifyKeyPart:
    """Return a public key that is valid from `start` days from now on."""
    begins = NOW + timedelta(days=start)
    return VerifyKeyPart(
        id=key.id, key=key.public_key.hex(), not_before=begins, not_after=begins + timedelta(days=days)
    )


def signed(campaign: Campaign, key: SigningKey = KEY, restart: Restart | None = None) -> CampaignSignature:
    """Return a key's own signature of a campaign."""
    return CampaignSignature(**key.sign(campaign.fingerprint, "campaign").model_dump(), restart=restart)


def restart_at(of: Campaign, serial: int, *, by: SigningKey = KEY) -> Restart:
    """Return the operator's restart at a campaign file."""
    terms = RestartTerms(campaign=of.id, serial=serial, epoch=of.epoch, head=of.head.hex())
    return Restart(**dict(terms), signature=by.sign(terms.signed(), "restart"))


def delegation_for(
    of: Campaign, *, by: SigningKey = KEY, publisher: VerifyKeyPart | None = None, **changes: Any
) -> Delegation:
    """Return the operator's delegation to a publisher, for this campaign's terms."""
    fields = {"campaign": of.id, "terms": of.terms.hex(), "serial": 1, "last_epoch": 100, **changes}
    terms = DelegationTerms(publisher=publisher or public_part(PUBLISHER), **fields)
    return Delegation(**dict(terms), signature=by.sign(terms.signed(), "delegation"))


def delegated(
    campaign: Campaign,
    delegation: Delegation | None = None,
    *,
    key: SigningKey = PUBLISHER,
    restart: Restart | None = None,
    **changes: Any,
) -> CampaignSignature:
    """Return the publisher's signature of a campaign."""
    made = delegation or delegation_for(campaign, **changes)
    signature = key.sign(campaign.fingerprint, "campaign").model_dump()
    return CampaignSignature(**signature, delegation=made, restart=restart)
