"""Slots: a client has one pass for each period of a day, for its collector and for the evaluator (docs/adr/0053)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Literal

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.parts import DAY_SECONDS, PassesPart
from hushcount.errors import UsageError

Role = Literal["collector", "evaluator"]
"""Who gets a client's token. An evaluator that knew a token for the collector could use up the client's cap there."""
EVALUATOR_NAME = "evaluator"
"""The name of every evaluator in the derivation of its tokens."""
TOKEN_TYPE = b"\x00\x02"
"""Blind RSA with 2048 bits (RFC 9578, section 6)."""
_CONTEXT = b"pass context"
_CONTEXT_BYTES = 32


@dataclass(frozen=True)
class Slot:
    """Where and when one pass is good.

    Attributes:
        campaign: the campaign's id.
        name: the collector's name in the campaign file, or EVALUATOR_NAME.
        begins: when the period begins, in seconds since 1970.
    """

    campaign: str
    role: Role
    name: str
    begins: int

    @property
    def octets(self) -> bytes:
        """Texts with their lengths, and the period's begin: different slots have different bytes."""
        texts = b"".join(sized(text.encode()) for text in (self.role, self.campaign, self.name))
        return texts + self.begins.to_bytes(8, "big", signed=True)

    @property
    def challenge_digest(self) -> bytes:
        """SHA-256 of the TokenChallenge (RFC 9577, section 2.1.1), 32 bytes.

        Nobody sends a challenge, because a challenge for one client would mark its pass: the redemption context is a
        hash of the slot, the issuer's name is the campaign's id, and the origin is empty.
        """
        context = hashlib.blake2b(self.octets, digest_size=_CONTEXT_BYTES, person=_CONTEXT).digest()
        named = sized(self.campaign.encode())
        return hashlib.sha256(TOKEN_TYPE + named + bytes([_CONTEXT_BYTES]) + context + sized(b"")).digest()


def parties(campaign: Campaign) -> list[tuple[Role, str]]:
    """Return who takes passes of a campaign, in the order of the keys of a day."""
    collectors: list[tuple[Role, str]] = [("collector", name) for name in campaign.collectors]
    return [*collectors, ("evaluator", EVALUATOR_NAME)] if campaign.is_oblivious else collectors


def slots_of(campaign: Campaign, day: date) -> list[Slot]:
    """Return all slots of a day, each party's together, in the order of the keys of this day."""
    part = require_passes(campaign)
    begin = day_begins(day)
    return [
        Slot(campaign.id, role, name, begin + number * part.seconds)
        for role, name in parties(campaign)
        for number in range(DAY_SECONDS // part.seconds)
    ]


def own_slots(campaign: Campaign, collector: str, day: date) -> list[Slot]:
    """Return the slots for which a client of a collector asks on a day: a fixed number, 24 at most."""
    return [slot for slot in slots_of(campaign, day) if slot.role == "evaluator" or slot.name == collector]


def slot_at(campaign: Campaign, role: Role, name: str, moment: float) -> Slot:
    """Return the slot of a party in the period with a moment, in seconds since 1970."""
    seconds = require_passes(campaign).seconds
    return Slot(campaign.id, role, name, int(moment // seconds) * seconds)


def require_passes(campaign: Campaign) -> PassesPart:
    """Return the campaign's section on passes; UsageError if it has none."""
    if campaign.passes is None:
        raise UsageError(f"campaign {campaign.id} asks for no passes: make one with hushcount campaign new --passes")
    return campaign.passes


def day_of(moment: float) -> date:
    """Return the day in UTC with a moment, in seconds since 1970."""
    return datetime.fromtimestamp(moment, timezone.utc).date()


def day_begins(day: date) -> int:
    """Return when a day begins, in seconds since 1970."""
    return (day - date(1970, 1, 1)).days * DAY_SECONDS


def sized(octets: bytes) -> bytes:
    """Return bytes after their length in two bytes."""
    return len(octets).to_bytes(2, "big") + octets
