"""The keys of the next epoch: who signs it, which keys it names, and the rehearsal before new keys are published."""

from __future__ import annotations

from collections.abc import Callable
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
from hushcount.errors import HushcountError, UsageError
from keys import vouching
from keys.directories import KeyReference, PublicFile, active_key, read_public
from keys.listing import PUBLIC_FILE, listed_keys, next_key
from keys.roles import OPENING_ROLES
from pipelines.deployment.campaigns import Epochs, used_keys
from pipelines.deployment.parts import NextEpochPart
from pipelines.deployment.settings import Deployment


@dataclass(frozen=True)
class Signer:
    """The operator's signing key, or with a delegation the publisher's; every signature contains the restart."""

    key: KeyReference
    delegation: Delegation | None
    restart: Restart | None

    def sign(self, campaign: Campaign) -> CampaignSignature:
        """Sign a campaign file; SignatureError if the delegation does not allow this file."""
        return vouching.sign_campaign(self.key, campaign, self.delegation, self.restart)

    def __str__(self) -> str:
        if self.delegation is None:
            return self.key.id
        return f"{self.key.id}, a publisher's key that may sign up to epoch {self.delegation.last_epoch}"


def signer_of(
    deployment: Deployment, path: Path, campaign: Campaign, part: NextEpochPart, now: datetime
) -> Signer | None:
    """Return the signer of the epoch after a campaign file; None: no key is set, and the campaign file is unsigned."""
    beside = signature_path(path)
    if part.sign_with is None:
        if beside.exists():
            raise UsageError(
                f"epoch {campaign.epoch} is signed, and clients that verify would refuse an unsigned one after it: set "
                f"sign_with under [next_epoch.{campaign.id}] to the operator's key directory, or to a publisher's key "
                "directory together with delegation"
            )
        return None
    source = deployment.key_source(part.sign_with)
    # Put the restart into every later signature, for clients that were offline when the restart was made.
    restart = read_campaign_signature(beside).restart if beside.exists() else None
    if part.delegation is None:
        return Signer(active_key(source, "operator", now), None, restart)
    delegation = read_delegation(deployment.base / part.delegation)
    return Signer(active_key(source, "publisher", now), delegation, restart)


def with_evaluator(
    deployment: Deployment, epochs: Epochs, part: NextEpochPart, keys: PublicFile, now: datetime
) -> tuple[PublicFile, int]:
    """Return the next epoch's keys (if oblivious, with a fresh evaluator key), and how many evaluator keys are left.

    Raises:
        UsageError: the deployment file names no evaluator keys, or every key already serves a campaign file of the
            deployment, or a campaign file cannot be read.
    """
    _, campaign = epochs.newest
    if not campaign.is_oblivious:
        return keys, 0
    if not part.evaluator_keys:
        raise UsageError(
            f"campaign {campaign.id} is oblivious, and each epoch needs a fresh key of the evaluator: set "
            f"evaluator_keys under [next_epoch.{campaign.id}] to its public.json"
        )
    sources = [deployment.base / name for name in part.evaluator_keys]
    used = used_keys(deployment.campaigns)
    key = next_key(sources, deployment.windows.tiling.window_at(now).end, used)
    left = [one.id for one in listed_keys(sources)]
    return keys.model_copy(update={"evaluator": (key,)}), len(left) - 1 - left.index(key.id)


def same_keys(campaign: Campaign, keys: PublicFile) -> bool:
    """Return whether a campaign file has these keys of the analyzer and the auxiliary server."""
    return (keys.analyzer, keys.aux_server) == (campaign.keys.analyzer, campaign.keys.aux_server)


def keys_of(deployment: Deployment, campaign: Campaign, now: datetime) -> PublicFile:
    """Return the active keys in public.json here; for a party that public.json lacks, return the campaign's keys."""
    listed = PublicFile()
    directory = Path(deployment.keys)
    if (directory / PUBLIC_FILE).exists():
        listed = read_public([directory], now)
    return PublicFile(
        analyzer=listed.analyzer or campaign.keys.analyzer,
        aux_server=(listed.aux_server or campaign.keys.aux_server) if campaign.keys.aux_server else (),
    )


def require_rehearsed(
    deployment: Deployment, before: Campaign, following: Campaign, path: Path, say: Callable[[str], None]
) -> None:
    """Rehearse each key of a campaign file that the file before does not name, in this process.

    The process that publishes the file also opens the reports. So the rehearsal finds a private key that is not here,
    or that this process' user cannot read.

    Args:
        following, path: the next campaign, as read, and its file.
        say: is called before a rehearsal, which takes seconds.

    Raises:
        HushcountError: a party cannot open the reports that clients will send.
    """
    mixes = following.discovery is not None or following.noise is not None
    opened = OPENING_ROLES if mixes else ("analyzer",)
    roles = [role for role in opened if getattr(following.keys, role) != getattr(before.keys, role)]
    if not roles:
        return
    # Imported only here, because the jobs take long to import, and keys seldom change.
    from pipelines.jobs.rehearse import rehearse

    say(f"{following.id}: rehearsing the new keys of epoch {following.epoch}")
    made = rehearse(path, [deployment.keys], roles)
    if not made.passed:
        failed = [f"{part.role} key {part.key}: {part.problem}" for part in made.parties if part.problem is not None]
        raise HushcountError(
            f"epoch {following.epoch} is not published, because the rehearsal of its new keys failed: "
            f"{'; '.join(failed)}; let this user read the private key, or if the party is elsewhere, make the epoch by "
            "hand: hushcount campaign new --after, hushcount keys rehearse at each party, hushcount campaign publish"
        )
