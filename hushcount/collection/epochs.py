"""The file collection.json in the campaign's directory: for which campaign files, and when, reports are collected."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from hushcount.campaigns.campaign import GREATEST_EPOCH, Campaign
from hushcount.errors import UsageError
from hushcount.formats.models import Part, text_of
from hushcount.formats.reading import parse_model, read_file

COLLECTION_FILE = "collection.json"
FINGERPRINT_DIGITS = 16


def _utc(moment: datetime) -> datetime:
    if moment.utcoffset() != timedelta(0):
        raise ValueError("must be in UTC, as in 2026-11-21T00:00:00Z")
    return moment


Instant = Annotated[datetime, AfterValidator(_utc)]
CampaignFileName = Annotated[
    str,
    text_of(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}\.json$", "must be a plain file name that ends in .json"),
]


class EpochPart(Part):
    """One epoch: its campaign file, and the moments at which it begins and ends."""

    epoch: int = Field(ge=1, le=GREATEST_EPOCH)
    file: CampaignFileName = Field(description="campaign file, in the same directory")
    begins: Instant = Field(description="moment from which its reports are accepted")
    ends: Instant | None = Field(default=None, description="when clients stop reporting under it; null: not yet known")
    grace_ends: Instant | None = Field(default=None, description="until then its reports are accepted; null: no end")

    @model_validator(mode="after")
    def _check(self) -> EpochPart:
        if self.ends is not None and self.ends < self.begins:
            raise ValueError(f"ends is {self.ends.isoformat()}, must not be before begins, {self.begins.isoformat()}")
        if self.grace_ends is not None and (self.ends is None or self.grace_ends < self.ends):
            raise ValueError(f"grace_ends is {self.grace_ends.isoformat()}, must not be before ends, {self.ends}")
        return self


class CollectionFile(Part):
    """The epochs of one campaign, oldest first; at any moment at most one epoch is current."""

    format: Literal[1] = 1
    epochs: tuple[EpochPart, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> CollectionFile:
        for before, after in zip(self.epochs, self.epochs[1:], strict=False):
            if after.epoch <= before.epoch:
                raise ValueError(f"epochs: epoch {after.epoch} stands after {before.epoch}, must be greater")
            if before.ends is None or after.begins < before.ends:
                raise ValueError(f"epochs: epoch {before.epoch} must end before epoch {after.epoch} begins")
        return self

    def current(self, moment: datetime) -> EpochPart | None:
        """Return the epoch for which clients make reports at a moment; None if there is no such epoch."""
        begun = (part for part in self.epochs if part.begins <= moment)
        return next((part for part in begun if part.ends is None or moment < part.ends), None)

    def accepts(self, epoch: int, moment: datetime) -> bool:
        """Return whether reports of the epoch `epoch` are accepted at a moment."""
        return any(
            part.epoch == epoch and part.begins <= moment and (part.grace_ends is None or moment < part.grace_ends)
            for part in self.epochs
        )


def read_collection(path: Path) -> CollectionFile:
    """Read a collection file; UsageError if it is unreadable or invalid: the message names each field and its error."""
    return parse_model(CollectionFile, read_file(path, "collection file"), f"collection file {path}")


def read_epoch(directory: Path, part: EpochPart) -> Campaign:
    """Read an epoch's campaign file from the campaign's directory; UsageError if it is invalid or for another epoch."""
    path = directory / part.file
    campaign = Campaign.read(path)
    if (campaign.id, campaign.epoch) != (directory.name, part.epoch):
        raise UsageError(
            f"{path} is of campaign {campaign.id} epoch {campaign.epoch}, not {directory.name} epoch {part.epoch}"
        )
    return campaign


def epoch_folder(campaign: Campaign) -> str:
    """Return the name of the folder for the segments of a campaign file: EPOCH-FINGERPRINT."""
    return folder_name(campaign.epoch, campaign.fingerprint.hex())


def folder_name(epoch: int, fingerprint: str) -> str:
    """Return EPOCH-FINGERPRINT with 16 digits of the fingerprint; `fingerprint` may be longer."""
    return f"{epoch:06d}-{fingerprint[:FINGERPRINT_DIGITS]}"
