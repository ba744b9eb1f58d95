"""Signatures of campaigns in tests as the vectors have them, by keys that are valid now."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import CampaignSignature, Delegation, Restart
from hushcount.campaigns.public_keys import VerifyKeyPart
from keys.private import SigningKey
from tests.vectors.subjects import signing
from tests.vectors.subjects.signing import PUBLISHER, STRANGER, signed

__all__ = ["KEY", "NOW", "PUBLISHER", "STRANGER", "delegated", "delegation_for", "public_part", "restart_at", "signed"]

KEY, restart_at = signing.OPERATOR, signing.restart
NOW = datetime.now(timezone.utc).replace(microsecond=0)


def public_part(key: SigningKey, start: int = -1, days: int = 30) -> VerifyKeyPart:
    """Return a public key that is valid from `start` days from now on."""
    begins = NOW + timedelta(days=start)
    return signing.part(key, begins.isoformat(), (begins + timedelta(days=days)).isoformat())


def delegation_for(of: Campaign, *, publisher: VerifyKeyPart | None = None, **changes: Any) -> Delegation:
    """Return the operator's delegation to a publisher, for this campaign's terms."""
    return signing.delegation(of, publisher=publisher or public_part(PUBLISHER), **changes)


def delegated(
    campaign: Campaign,
    delegation: Delegation | None = None,
    *,
    key: SigningKey = PUBLISHER,
    restart: Restart | None = None,
    **changes: Any,
) -> CampaignSignature:
    """Return the publisher's signature of a campaign."""
    return signing.delegated(campaign, delegation or delegation_for(campaign, **changes), key, restart)
