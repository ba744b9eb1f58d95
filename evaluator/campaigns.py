"""Which campaign files may be asked about now: from the directory that the collector reads, and as often."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hushcount.campaigns.public_keys import EvaluatorKeyPart
from hushcount.collection.epochs import COLLECTION_FILE, EpochPart, epoch_folder, read_collection, read_epoch
from service.campaign_folders import CampaignFolder, read_folders
from service.epochs import EpochTimes, times_of


@dataclass(frozen=True)
class AskedEpoch(EpochTimes):
    """One epoch of a campaign: when clients may ask, and by which key they are answered."""

    campaign: str  # id
    fingerprint: str  # of the campaign file, 64 hexadecimal digits
    folder: str  # CAMPAIGN/EPOCH-FINGERPRINT, as in the store
    key: EvaluatorKeyPart | None  # None: the campaign file names no evaluator
    cap: int  # how many reports of a client count in a window; each needs an evaluation


@dataclass(frozen=True)
class AskedCampaign(CampaignFolder):
    """What is known about one campaign's directory."""

    epochs: Mapping[str, AskedEpoch] = field(default_factory=dict)
    """By fingerprint, also those to come and those that are over."""

    @property
    def numbers(self) -> Container[str]:
        """The fingerprints of all published epochs."""
        return self.epochs


Campaigns = Mapping[str, AskedCampaign]
"""What may be asked about, by campaign id."""


def read_campaigns(directory: Path, known: Campaigns) -> Campaigns:
    """Return what may be asked about now; `known` gives unchanged campaigns, and the earlier state of damaged files."""
    return read_folders(directory, known, _read_campaign, AskedCampaign)


def asked_epochs(campaigns: Campaigns) -> Iterator[AskedEpoch]:
    """Return the epochs of all campaigns."""
    return (epoch for campaign in campaigns.values() for epoch in campaign.epochs.values())


def served_by(campaigns: Campaigns) -> Mapping[str, AskedEpoch]:
    """Return the one epoch that each key serves, by the key's id: of several that name it, the one that began first.

    An element says nothing of the campaign that it is asked for: a key of two would let each answer for the other.
    """
    begun = sorted(asked_epochs(campaigns), key=lambda epoch: (epoch.begins, epoch.fingerprint), reverse=True)
    return {epoch.key.id: epoch for epoch in begun if epoch.key is not None}


def _read_campaign(directory: Path) -> AskedCampaign:
    epochs = [_read_epoch(directory, part) for part in read_collection(directory / COLLECTION_FILE).epochs]
    return AskedCampaign(directory.name, epochs={epoch.fingerprint: epoch for epoch in epochs})


def _read_epoch(directory: Path, part: EpochPart) -> AskedEpoch:
    campaign = read_epoch(directory, part)
    key = campaign.keys.evaluator[0] if campaign.is_oblivious else None
    fingerprint, folder = campaign.fingerprint.hex(), f"{campaign.id}/{epoch_folder(campaign)}"
    return AskedEpoch(*times_of(part), campaign.id, fingerprint, folder, key, campaign.shuffle.cap)
