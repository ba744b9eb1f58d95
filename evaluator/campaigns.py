"""The campaign files that clients may ask about now.

The campaign files are in the directory that the collector reads too.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.public_keys import EvaluatorKeyPart
from hushcount.collection.epochs import COLLECTION_FILE, EpochPart, epoch_folder, read_collection, read_epoch
from service.campaign_folders import CampaignFolder, read_folders
from service.epochs import EpochTimes, times_of
from service.passes import Passes, PassTaker


@dataclass(frozen=True)
class AskedEpoch(EpochTimes):
    """One epoch of a campaign: when clients may ask, and the key that answers them."""

    campaign: str  # id
    fingerprint: str  # fingerprint of the campaign file, 64 hexadecimal digits
    folder: str  # CAMPAIGN/EPOCH-FINGERPRINT, as in the store
    key: EvaluatorKeyPart | None  # None: the campaign file names no evaluator
    cap: int  # the largest number of reports of a client that count in a window; each report needs an evaluation
    passes: Passes | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class AskedCampaign(CampaignFolder):
    """The facts about one campaign's directory."""

    epochs: Mapping[str, AskedEpoch] = field(default_factory=dict)
    """All epochs by fingerprint, including epochs that have not begun and epochs that are over."""

    @property
    def numbers(self) -> Container[str]:
        """The fingerprints of all published epochs."""
        return self.epochs


Campaigns = Mapping[str, AskedCampaign]
"""The campaigns that clients may ask about, by id."""


def read_campaigns(directory: Path, taker: PassTaker, known: Campaigns) -> Campaigns:
    """Return the campaigns that clients may ask about; an unchanged or damaged campaign is taken from `known`.

    `taker` says which passes the evaluator takes.
    """
    return read_folders(directory, known, partial(_read_campaign, taker), AskedCampaign)


def asked_epochs(campaigns: Campaigns) -> Iterator[AskedEpoch]:
    """Return the epochs of all campaigns."""
    return (epoch for campaign in campaigns.values() for epoch in campaign.epochs.values())


def served_by(campaigns: Campaigns) -> Mapping[str, AskedEpoch]:
    """Return, by key id, the one epoch that each key serves: the earliest of all epochs that name the key.

    An element does not name a campaign. So if a key served two campaigns, a client could use the evaluations that it
    asks for in one campaign in the other campaign too.
    """
    begun = sorted(asked_epochs(campaigns), key=lambda epoch: (epoch.begins, epoch.fingerprint), reverse=True)
    return {epoch.key.id: epoch for epoch in begun if epoch.key is not None}


def _read_campaign(taker: PassTaker, directory: Path) -> AskedCampaign:
    parts = read_collection(directory / COLLECTION_FILE).epochs
    campaigns = [read_epoch(directory, part) for part in parts]
    passes = taker.passes(directory, [campaign for campaign in campaigns if campaign.is_oblivious])
    epochs = [_asked(part, campaign, passes) for part, campaign in zip(parts, campaigns, strict=True)]
    return AskedCampaign(directory.name, epochs={epoch.fingerprint: epoch for epoch in epochs})


def _asked(part: EpochPart, campaign: Campaign, passes: Passes | None) -> AskedEpoch:
    key = campaign.keys.evaluator[0] if campaign.is_oblivious else None
    fingerprint, folder = campaign.fingerprint.hex(), f"{campaign.id}/{epoch_folder(campaign)}"
    return AskedEpoch(*times_of(part), campaign.id, fingerprint, folder, key, campaign.shuffle.cap, passes)
