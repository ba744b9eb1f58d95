"""Who signs the next epoch: the operator, or a publisher to whom it delegates."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import (
    CampaignSignature,
    Delegation,
    Restart,
    read_campaign_signature,
    read_delegation,
)
from hushcount.campaigns.signatures import signature_path
from hushcount.errors import UsageError
from keys import vouching
from keys.directories import KeyReference, active_key
from pipelines.deployment.parts import NextEpochPart
from pipelines.deployment.settings import Deployment


@dataclass(frozen=True)
class Signer:
    """The key that signs; with a delegation it is its publisher's. A restart is handed on with every signature."""

    key: KeyReference
    delegation: Delegation | None
    restart: Restart | None

    def sign(self, campaign: Campaign) -> CampaignSignature:
        """Sign a campaign file; SignatureError if the operator did not delegate it."""
        return vouching.sign_campaign(self.key, campaign, self.delegation, self.restart)

    def __str__(self) -> str:
        if self.delegation is None:
            return self.key.id
        return f"{self.key.id}, the publisher's, which may sign up to epoch {self.delegation.last_epoch}"


def signer_of(
    deployment: Deployment, path: Path, campaign: Campaign, part: NextEpochPart, now: datetime
) -> Signer | None:
    """Return who signs the epoch after a campaign file, or None if that file is not signed either."""
    beside = signature_path(path)
    if part.sign_with is None:
        if beside.exists():
            raise UsageError(
                f"epoch {campaign.epoch} is signed, and clients that verify would refuse an unsigned one after it: set "
                f"sign_with under [next_epoch.{campaign.id}] to the operator's key directory, or delegation too and "
                "sign_with to a publisher's"
            )
        return None
    source = deployment.key_source(part.sign_with)
    # Clients that were offline need it as well.
    restart = read_campaign_signature(beside).restart if beside.exists() else None
    if part.delegation is None:
        return Signer(active_key(source, "operator", now), None, restart)
    delegation = read_delegation(deployment.base / part.delegation)
    return Signer(active_key(source, "publisher", now), delegation, restart)
