"""Keys and signatures that the vectors share."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import CampaignSignature, Delegation, DelegationTerms, Restart, RestartTerms
from hushcount.campaigns.public_keys import VerifyKeyPart
from keys.private import SigningKey
from tests.vectors.subjects.script import octets

OPERATOR, PUBLISHER, STRANGER = (SigningKey(octets(32, name)) for name in ("operator", "publisher", "stranger"))
BEGIN, AT, END = "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z", "2027-01-01T00:00:00Z"


def moment(text: str) -> datetime:
    """Return the time that a text names."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def part(key: SigningKey, begin: str = BEGIN, end: str = END) -> VerifyKeyPart:
    """Return the public key as a file has it."""
    return VerifyKeyPart(id=key.id, key=key.public_key.hex(), not_before=moment(begin), not_after=moment(end))


def plain(made: Any) -> dict[str, Any]:
    """Return a model as JSON data."""
    content: dict[str, Any] = json.loads(made.model_dump_json(exclude_none=True))
    return content


def signed(campaign: Campaign, key: SigningKey = OPERATOR, restart: Restart | None = None) -> CampaignSignature:
    """Return a key's own signature of a campaign."""
    return CampaignSignature(**dict(key.sign(campaign.fingerprint, "campaign")), restart=restart)


def restart(at: Campaign, serial: int, by: SigningKey = OPERATOR, **changes: Any) -> Restart:
    """Return the operator's restart at a campaign file."""
    terms = RestartTerms(**{"campaign": at.id, "serial": serial, "epoch": at.epoch, "head": at.head.hex(), **changes})
    return Restart(**dict(terms), signature=by.sign(terms.signed(), "restart"))


def delegation(
    of: Campaign, by: SigningKey = OPERATOR, publisher: VerifyKeyPart | None = None, **changes: Any
) -> Delegation:
    """Return the operator's delegation to a publisher for a campaign's terms."""
    fields = {"campaign": of.id, "terms": of.terms.hex(), "serial": 1, "last_epoch": 100, **changes}
    terms = DelegationTerms(publisher=publisher or part(PUBLISHER), **fields)
    return Delegation(**dict(terms), signature=by.sign(terms.signed(), "delegation"))


def delegated(
    campaign: Campaign, to: Delegation, key: SigningKey = PUBLISHER, restart: Restart | None = None
) -> CampaignSignature:
    """Return a publisher's signature with its delegation."""
    signature = dict(key.sign(campaign.fingerprint, "campaign"))
    return CampaignSignature(**signature, delegation=to, restart=restart)
