"""Reads the directory of the collected campaigns, and reads it again when `hushcount run` replaces a file there."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.campaigns.signatures import SIGNATURE_BYTES, signature_path
from hushcount.clock import MACHINE, Clock
from hushcount.collection.envelopes import envelope_dtype
from hushcount.collection.epochs import COLLECTION_FILE, EpochPart, epoch_folder, read_collection, read_epoch
from hushcount.formats.reading import read_file
from service.campaign_folders import CampaignFolder, read_folders
from service.epochs import EpochTimes, seconds, times_of
from service.passes import Passes, PassTaker
from shuffler.collector import published

_JSON = b"application/json"


@dataclass(frozen=True)
class Target:
    """One stream of one campaign file: each report is sent to a target."""

    campaign: str  # id
    epoch: int
    fingerprint: bytes  # fingerprint of the campaign file, 32 bytes
    folder: str  # CAMPAIGN/EPOCH-FINGERPRINT, as in the store
    stream: Stream
    sealed_bytes: int  # length of a sealed report
    record_bytes: int  # length of an envelope
    passes: Passes | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Document:
    """A public file: its bytes and the headers that describe them."""

    data: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    etag: bytes


@dataclass(frozen=True)
class CollectedEpoch(EpochTimes):
    """One epoch of a campaign: when its reports are accepted, and the files that its clients need."""

    targets: Mapping[Stream, Target] = field(hash=False)
    campaign_file: Document
    dictionary: Document | None


@dataclass(frozen=True)
class CollectedCampaign(CampaignFolder):
    """The facts about one campaign's directory."""

    epochs: Mapping[str, CollectedEpoch] = field(default_factory=dict)
    """The epochs by fingerprint, including epochs that have not begun; empty if the files were never readable."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """By fingerprint, the numbers of all epochs that were ever published."""
    log: Document | None = None
    """The log of all epochs that were ever published; None if the files were never readable."""


Campaigns = Mapping[str, CollectedCampaign]
"""The collected campaigns, by id."""


def read_campaigns(
    directory: Path, record: Path, taker: PassTaker, known: Campaigns, clock: Clock = MACHINE
) -> Campaigns:
    """Return the campaigns that are collected now; an unchanged or damaged campaign is taken from `known`.

    `record` is the folder of the logs that this collector published; `taker` says which passes it takes. An epoch is
    left out after the end of its grace.
    """
    return read_folders(directory, known, partial(_read_campaign, record, taker, clock), CollectedCampaign)


def collected_epochs(campaigns: Campaigns) -> Iterator[CollectedEpoch]:
    """Return the epochs of all campaigns."""
    return (epoch for campaign in campaigns.values() for epoch in campaign.epochs.values())


def accepted_targets(campaigns: Campaigns, now: float) -> list[Target]:
    """Return a target for each stream of each epoch that accepts reports at this moment."""
    return [target for epoch in collected_epochs(campaigns) if epoch.accepts(now) for target in epoch.targets.values()]


def _read_campaign(record: Path, taker: PassTaker, clock: Clock, directory: Path) -> CollectedCampaign:
    now, collection = clock.seconds(), read_collection(directory / COLLECTION_FILE)
    kept = published.kept_log(record, directory.name)
    campaigns = [read_epoch(directory, part) for part in collection.epochs]
    log = published.log_of(directory, collection, campaigns, kept)
    open_ones = [
        (part, campaign)
        for part, campaign in zip(collection.epochs, campaigns, strict=True)
        if seconds(part.grace_ends) > now
    ]
    passes = taker.passes(directory, [campaign for _, campaign in open_ones])
    epochs = {
        campaign.fingerprint.hex(): _read_epoch(directory, part, campaign, passes) for part, campaign in open_ones
    }
    published.keep(record, kept, log)
    numbers = {entry.fingerprint: entry.epoch for entry in log.entries}
    served = _document(log.text().encode(), _JSON)
    return CollectedCampaign(directory.name, epochs=epochs, numbers=numbers, log=served)


def _read_epoch(directory: Path, part: EpochPart, campaign: Campaign, passes: Passes | None) -> CollectedEpoch:
    """Read the files that an epoch's clients need: campaign file with its signature, as bytes, and dictionary."""
    folder = f"{campaign.id}/{epoch_folder(campaign)}"
    targets = {}
    for stream in campaign.streams:
        length = campaign.sealed_bytes(stream)
        of = (campaign.id, campaign.epoch, campaign.fingerprint, folder, stream)
        targets[stream] = Target(*of, length, envelope_dtype(length).itemsize, passes)
    # Reading checks the dictionary, so clients never get a dictionary that differs from the campaign's dictionary.
    dictionary = campaign.read_dictionary()
    return CollectedEpoch(
        *times_of(part),
        targets,
        _file(directory / part.file, _JSON),
        None if dictionary is None else _document(dictionary.packed(), b"application/gzip"),
    )


def _file(path: Path, media_type: bytes) -> Document:
    """Return a file, and its signature if it has a signature."""
    extra: list[tuple[bytes, bytes]] = []
    signature = signature_path(path)
    if signature.exists():
        # The header's value is a byte sequence in the syntax of RFC 8941.
        raw = read_file(signature, "signature", SIGNATURE_BYTES)
        extra.append((b"campaign-signature", b":" + base64.b64encode(raw) + b":"))
    return _document(path.read_bytes(), media_type, *extra)


def _document(data: bytes, media_type: bytes, *more: tuple[bytes, bytes]) -> Document:
    # The ETag covers the signature, so that a renewed signature changes the ETag too.
    told = b"".join(value for _, value in more) + data
    etag = b'"' + hashlib.blake2b(told, digest_size=16).hexdigest().encode() + b'"'
    return Document(data, ((b"content-type", media_type), (b"etag", etag), *more), etag)
