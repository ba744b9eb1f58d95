"""The signature of a campaign: by the operator, or by a publisher to whom the operator's key delegates.

The operator's key may be kept offline. The publisher's key is online and signs the files of further epochs. The
publisher may change the dictionary and what is drawn or planned for the dictionary, but nothing that costs a client
more (`Campaign.terms`).

Each statement of the operator about a campaign has a serial. A restart makes clients continue from a history that the
operator names. Restarts are needed because a client that accepted a forged history refuses every other history. Only
the operator's own key may sign a restart.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Literal

from pydantic import Field

from hushcount.campaigns.campaign import GREATEST_EPOCH, Campaign
from hushcount.campaigns.parts import Identifier
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.campaigns.signatures import SIGNATURE_BYTES, Signature, SignatureError, verify
from hushcount.clock import MACHINE
from hushcount.formats.canonical_json import canonical_json
from hushcount.formats.models import Hex32, Part
from hushcount.formats.reading import parse_model, read_file, take


class Numbered(Part):
    """A statement about a campaign that the operator signs. Restarts and delegations share one sequence of serials."""

    format: Literal[1] = 1
    campaign: Identifier
    serial: int = Field(ge=1, le=GREATEST_EPOCH, description="clients follow no serial below the greatest they saw")

    def signed(self) -> bytes:
        """Return the bytes that the operator signs: canonical JSON without the signature."""
        return canonical_json(self.model_dump(mode="json", exclude={"signature"}))


class RestartTerms(Numbered):
    """What the operator signs for "restart": the epoch from which clients continue, whatever they had accepted."""

    epoch: int = Field(ge=1, le=GREATEST_EPOCH)
    head: Hex32 = Field(description="Campaign.head of that epoch")


class Restart(RestartTerms):
    """A restart with the operator's signature. A restart also ends every delegation that has a smaller serial."""

    signature: Signature

    def require(self, campaign: Campaign) -> None:
        """Check that the restart is for this campaign; SignatureError if the restart is for another one."""
        if self.campaign != campaign.id:
            raise SignatureError(
                f"the restart is of campaign {self.campaign}, must be of {campaign.id}: ask the operator"
            )


def read_restart(path: Path) -> Restart:
    """Read a restart file; UsageError if it is missing or unreadable, FormatError if it is no restart."""
    return parse_model(Restart, read_file(path, "restart", SIGNATURE_BYTES), f"restart {path}")


class DelegationTerms(Numbered):
    """What the operator signs for "delegation": who may publish which campaign, with which terms, up to which epoch."""

    terms: Hex32 = Field(description="Campaign.terms of every file that the publisher may sign")
    publisher: VerifyKeyPart
    last_epoch: int = Field(ge=1, le=GREATEST_EPOCH)
    evaluator_keys: tuple[Hex32, ...] = Field(
        default=(), max_length=32, description="the evaluator's public keys that the publisher may name, each once"
    )


class Delegation(DelegationTerms):
    """The terms of a delegation, with the operator's signature."""

    signature: Signature

    def require(self, campaign: Campaign, signer: str, restart: Restart | None = None) -> None:
        """Check that the publisher may sign this campaign with the key `signer`; SignatureError if it may not."""
        if restart is not None and self.serial < restart.serial:
            raise SignatureError(
                f"serial of the delegation of campaign {campaign.id} is {self.serial}, but the operator's restart "
                f"ended all below {restart.serial}: the operator must delegate anew"
            )
        if (self.campaign, self.terms) != (campaign.id, campaign.terms.hex()):
            raise SignatureError(
                f"campaign {campaign.id} has the terms {campaign.terms.hex()}, but the operator delegated campaign "
                f"{self.campaign} with the terms {self.terms}: the publisher may change only the dictionary and what "
                "is drawn or planned for it; the operator must sign any other change"
            )
        if campaign.epoch > self.last_epoch:
            raise SignatureError(
                f"epoch of campaign {campaign.id} is {campaign.epoch}, but the publisher may sign only up to epoch "
                f"{self.last_epoch}: the operator must delegate anew"
            )
        for key in campaign.keys.evaluator:
            # A publisher that could name an evaluator key that it made itself could test guesses without the evaluator.
            if key.key not in self.evaluator_keys:
                raise SignatureError(
                    f"campaign {campaign.id} names the evaluator's key {key.id}, which is not among the "
                    f"{len(self.evaluator_keys)} that the operator delegated: the operator must delegate anew"
                )
        if signer != self.publisher.id:
            raise SignatureError(
                f"the publisher's key is {signer}, but the operator delegated to {self.publisher.id}: the operator "
                "must delegate anew"
            )


class CampaignSignature(Signature):
    """A signature of a campaign's fingerprint: by the publisher if there is a delegation, otherwise by the operator."""

    delegation: Delegation | None = None
    restart: Restart | None = None

    @property
    def serial(self) -> int:
        """The greater of the serials of the delegation and the restart; 0 if there is no delegation and no restart."""
        return max((said.serial for said in (self.delegation, self.restart) if said is not None), default=0)

    def text(self) -> str:
        """Return the content of a signature file."""
        return self.model_dump_json(exclude_none=True) + "\n"


def verify_campaign(
    keys: Sequence[VerifyKeyPart], campaign: Campaign, signature: CampaignSignature, at: datetime | None = None
) -> tuple[VerifyKeyPart, ...]:
    """Check a campaign's signature; it is also valid for the redacted file, which has the same fingerprint.

    Args:
        keys: the operator's public keys, from a source that the caller trusts.
        campaign: the file.
        signature: the operator's own signature, or the signature of a publisher with the publisher's delegation.
        at: the time of the check, by default now, because a signature does not say when it was made.

    Returns:
        The keys that vouch for the campaign: the signer's key, then the operator's keys that signed a delegation and a
        restart.

    Raises:
        SignatureError: `verify` refuses a signature; a key that vouches is not valid now; or the delegation or the
            restart does not allow this campaign (`Delegation.require`, `Restart.require`).
    """
    now = at or MACHINE.now()
    delegation, restart = signature.delegation, signature.restart
    operators: list[VerifyKeyPart] = []
    signers = keys
    if delegation is not None:
        operators.append(verify(keys, delegation.signed(), "delegation", delegation.signature))
        delegation.require(campaign, signature.key_id, restart)
        signers = (delegation.publisher,)
    if restart is not None:
        operators.append(verify(keys, restart.signed(), "restart", restart.signature))
        restart.require(campaign)
    vouching = (verify(signers, campaign.fingerprint, "campaign", signature), *operators)
    for key in vouching:
        if not key.not_before <= now < key.not_after:
            raise SignatureError(
                f"the campaign was signed with key {key.id}, valid from {key.not_before.isoformat()} to "
                f"{key.not_after.isoformat()}, and it is {now.isoformat()}: fetch the newest campaign"
            )
    return vouching


def read_campaign_signature(path: Path) -> CampaignSignature:
    """Read a signature file; UsageError if it is missing or unreadable, FormatError if it is no signature file."""
    return parse_campaign_signature(read_file(path, "signature", SIGNATURE_BYTES), f"signature {path}")


def parse_campaign_signature(raw: bytes, name: str) -> CampaignSignature:
    """Return the signature in a file's or a header's bytes, at most SIGNATURE_BYTES, or raise FormatError."""
    return parse_model(CampaignSignature, take(BytesIO(raw), SIGNATURE_BYTES, name), name)


def read_delegation(path: Path) -> Delegation:
    """Read a delegation file; UsageError if it is missing or unreadable, FormatError if it is no delegation."""
    return parse_model(Delegation, read_file(path, "delegation", SIGNATURE_BYTES), f"delegation {path}")
