"""Read the campaigns of a deployment: their campaign files by epoch, and the evaluator's keys in these files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.parts import SamplePart
from hushcount.collection.epochs import COLLECTION_FILE, FINGERPRINT_DIGITS, CollectionFile, read_collection, read_epoch
from hushcount.errors import UsageError
from pipelines.deployment.settings import Deployment
from pipelines.files.storage_errors import told


@dataclass(frozen=True)
class Epochs:
    """One campaign's epochs.

    Attributes:
        campaign: id of the campaign, and name of its folder.
        files: path and content of each epoch's campaign file, by number of the epoch and first digits of the
            fingerprint.
    """

    campaign: str
    directory: Path
    collection: CollectionFile
    files: dict[tuple[int, str], tuple[Path, Campaign]]

    @property
    def campaigns(self) -> dict[tuple[int, str], Campaign]:
        """The campaign file of each epoch, by the same keys as in `files`."""
        return {key: campaign for key, (_, campaign) in self.files.items()}

    @property
    def newest(self) -> tuple[Path, Campaign]:
        """The campaign file of the last epoch, and its path."""
        return self.files[max(self.files)]

    @property
    def has_noise(self) -> bool:
        """Whether the mixes add noise, which is so in all epochs or in none."""
        return self.newest[1].noise is not None

    @cached_property
    def listed(self) -> tuple[str, ...]:
        """The items in the dictionary of the newest epoch; empty if it has no dictionary."""
        dictionary = self.newest[1].read_dictionary()
        return () if dictionary is None else dictionary.items


def read_epochs(directory: Path) -> tuple[list[Epochs], dict[str, str]]:
    """Return the valid campaigns of a directory, and the fault of each invalid campaign by name of the campaign.

    Raises:
        UsageError: the directory holds no campaign.
    """
    valid, faults = read_published(directory)
    if not valid and not faults:
        raise UsageError(f"{directory} holds no campaign: hushcount campaign publish makes one")
    return valid, faults


def require_campaign(directory: Path, campaign: str | None) -> Epochs:
    """Read one campaign of a directory by its id, or the only campaign if no id is given.

    Raises:
        UsageError: the campaign does not exist or is invalid, or no id is given and there are several.
    """
    valid, faults = read_epochs(directory)
    known = {epochs.campaign: epochs for epochs in valid}
    if campaign is None:
        campaign, *others = sorted({*known, *faults})
        if others:
            names = " or ".join((campaign, *others))
            raise UsageError(f"{directory} holds {len(others) + 1} campaigns: give --campaign {names}")
    if campaign not in known:
        raise UsageError(
            faults.get(campaign) or f"campaign is {campaign!a}, must be one of {', '.join(known) or 'none'}"
        )
    return known[campaign]


def read_published(directory: Path) -> tuple[list[Epochs], dict[str, str]]:
    """Read campaigns as `read_epochs` does, but without an error if nothing is published yet."""
    valid, faults = [], {}
    for name in campaign_names(directory):
        try:
            valid.append(read_campaign(directory / name))
        except Exception as error:
            faults[name] = told(error)
    return valid, faults


def campaign_names(directory: Path) -> list[str]:
    """Return the names of the campaigns of a directory, including invalid campaigns."""
    return sorted(path.parent.name for path in directory.glob(f"*/{COLLECTION_FILE}")) if directory.is_dir() else []


def read_campaign(folder: Path) -> Epochs:
    """Read one campaign's folder; UsageError: a file is missing, invalid, or of another campaign or epoch."""
    path = folder / COLLECTION_FILE
    collection = read_collection(path)
    files = {}
    for part in collection.epochs:
        campaign = read_epoch(folder, part)
        files[part.epoch, campaign.fingerprint.hex()[:FINGERPRINT_DIGITS]] = (folder / part.file, campaign)
    return Epochs(folder.name, folder, collection, files)


def collector_names(deployment: Deployment) -> tuple[str, ...]:
    """Return the names of the collectors in a deployment file, that of the collector here too."""
    here = () if deployment.collector is None else (deployment.collector.name,)
    return tuple(sorted({*deployment.file.collectors, *here}))


def unnamed_collectors(deployment: Deployment, campaign: Campaign) -> str:
    """Return a sentence on the deployment's collectors that a campaign lacks; empty if that links no two collectors."""
    names = collector_names(deployment)
    lacking = ", ".join(name for name in names if name not in campaign.collectors)
    if not lacking or len(names) == 1:
        return ""
    return (
        f"campaign {campaign.id} lacks {lacking} of the deployment's collectors, so clients show there the token that "
        "another collector gets too"
    )


def published_files(directory: Path) -> list[Campaign]:
    """Return all campaign files of all epochs that were ever published in a directory.

    Raises:
        UsageError: a campaign cannot be read, so its evaluator's keys and its buckets are unknown.
    """
    valid, faults = read_published(directory)
    for name, fault in faults.items():
        raise UsageError(
            f"cannot tell which keys of the evaluator and which buckets are unused, because campaign {name} cannot be "
            f"read: {fault}"
        )
    return [campaign for epochs in valid for campaign in epochs.campaigns.values()]


def oblivious_campaigns(directory: Path) -> list[Campaign]:
    """Return the published campaign files that name a key of the evaluator; UsageError as in `published_files`."""
    return [campaign for campaign in published_files(directory) if campaign.is_oblivious]


def taken_buckets(directory: Path, layer: str, campaign: str) -> list[tuple[str, SamplePart]]:
    """Return the samples that other campaigns of a layer ever had, with their ids; UsageError as in `published_files`.

    A bucket stays taken when a campaign ends, because a limit may count what its clients paid.
    """
    return [
        (one.id, one.sample)
        for one in published_files(directory)
        if one.sample is not None and one.sample.layer == layer and one.id != campaign
    ]


def used_keys(directory: Path) -> set[str]:
    """Return the ids of the evaluator's keys in published campaign files; UsageError as in `oblivious_campaigns`."""
    return {key.id for campaign in oblivious_campaigns(directory) for key in campaign.keys.evaluator}
