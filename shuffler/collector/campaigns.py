"""The campaigns that are collected now: their directory, read again when `hushcount run` replaces a file there."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from hushcount.campaigns.campaign import Stream
from hushcount.campaigns.signatures import signature_path
from hushcount.collection.envelopes import envelope_dtype
from hushcount.collection.epochs import COLLECTION_FILE, EpochPart, epoch_folder, read_collection, read_epoch
from hushcount.errors import UsageError

_MOST_SIGNATURE_BYTES = 4096
_MEDIA_TYPES = {".json": b"application/json", ".toml": b"application/toml", ".gz": b"application/gzip"}


@dataclass(frozen=True)
class Target:
    """One stream of one campaign file: where a report goes."""

    campaign: str  # id
    epoch: int
    fingerprint: bytes  # of the campaign file, 32 bytes
    folder: str  # CAMPAIGN/EPOCH-FINGERPRINT, as in the store
    stream: Stream
    sealed_bytes: int  # length of a sealed report
    record_bytes: int  # length of an envelope


@dataclass(frozen=True)
class Document:
    """A public file: its bytes and the headers that describe them."""

    data: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    etag: bytes


@dataclass(frozen=True)
class CollectedEpoch:
    """One epoch of a campaign: when its reports are accepted, and the files that its clients need."""

    epoch: int
    begins: float  # seconds since 1970; the next two may be infinity
    ends: float  # when clients stop making reports for it
    grace_ends: float  # until when its reports are accepted
    targets: Mapping[Stream, Target] = field(hash=False)
    campaign_file: Document
    dictionary: Document | None

    def accepts(self, now: float) -> bool:
        return self.begins <= now < self.grace_ends

    def is_current(self, now: float) -> bool:
        return self.begins <= now < self.ends


@dataclass(frozen=True)
class CollectedCampaign:
    """What is known about one campaign's directory."""

    id: str
    epochs: Mapping[int, CollectedEpoch]  # by number; empty if the files could never be read
    stamp: tuple[int, int, int]  # of the collection file when it was read last
    fault: str | None  # what is wrong with the present file, in one sentence

    def current(self, now: float) -> CollectedEpoch | None:
        """Return the epoch that clients make reports for, or None."""
        return next((epoch for epoch in self.epochs.values() if epoch.is_current(now)), None)


Campaigns = Mapping[str, CollectedCampaign]
"""What is collected, by campaign id."""


def read_campaigns(directory: Path, known: Campaigns) -> Campaigns:
    """Return what is collected now; `known` gives unchanged campaigns, and the earlier state of damaged files."""
    try:
        names = sorted(entry.name for entry in directory.iterdir() if (entry / COLLECTION_FILE).exists())
    except OSError as error:
        raise UsageError(f"cannot read campaigns directory {directory}: {error.strerror}") from None
    return {name: _read_campaign(directory / name, known.get(name)) for name in names}


def collected_epochs(campaigns: Campaigns) -> Iterator[CollectedEpoch]:
    """Return the epochs of all campaigns."""
    return (epoch for campaign in campaigns.values() for epoch in campaign.epochs.values())


def accepted_targets(campaigns: Campaigns, now: float) -> list[Target]:
    """Return a target for each stream of each epoch that accepts reports at a moment."""
    return [target for epoch in collected_epochs(campaigns) if epoch.accepts(now) for target in epoch.targets.values()]


def _read_campaign(directory: Path, known: CollectedCampaign | None) -> CollectedCampaign:
    path, stamp = directory / COLLECTION_FILE, (0, 0, 0)
    earlier = {} if known is None else known.epochs
    try:
        status = path.stat()
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        if known is not None and known.stamp == stamp and known.fault is None:
            return known
        now = time.time()
        epochs = {
            part.epoch: _read_epoch(directory, part, earlier.get(part.epoch))
            for part in read_collection(path).epochs
            if _seconds(part.grace_ends) > now
        }
    except (UsageError, OSError) as error:
        fault = str(error) if isinstance(error, UsageError) else f"cannot read {path}: {error.strerror}"
        return CollectedCampaign(directory.name, earlier, stamp, fault)
    return CollectedCampaign(directory.name, epochs, stamp, None)


def _read_epoch(directory: Path, part: EpochPart, known: CollectedEpoch | None) -> CollectedEpoch:
    """Read an epoch's campaign file and dictionary, with their signatures if there are any."""
    path = directory / part.file
    campaign = read_epoch(directory, part)
    folder = f"{campaign.id}/{epoch_folder(campaign)}"
    targets = {}
    for stream in campaign.streams:
        length = campaign.sealed_bytes(stream)
        of = (campaign.id, campaign.epoch, campaign.fingerprint, folder, stream)
        targets[stream] = Target(*of, length, envelope_dtype(length).itemsize)
    if known is not None and {target.folder for target in known.targets.values()} != {folder}:
        raise UsageError(f"{path} changed: a campaign file is immutable, give a changed one a new epoch")
    dictionary = None
    if campaign.dictionary is not None:
        # Reading it checks it: clients never get one that is not the campaign's.
        campaign.read_dictionary()
        dictionary = _document(directory / campaign.dictionary.path, b"text/plain; charset=utf-8")
    return CollectedEpoch(
        part.epoch,
        part.begins.timestamp(),
        _seconds(part.ends),
        _seconds(part.grace_ends),
        targets,
        _document(path, b"application/json"),
        dictionary,
    )


def _seconds(moment: datetime | None) -> float:
    return float("inf") if moment is None else moment.timestamp()


def _document(path: Path, media_type: bytes) -> Document:
    data = path.read_bytes()
    etag = b'"' + hashlib.blake2b(data, digest_size=16).hexdigest().encode() + b'"'
    headers = [(b"content-type", _MEDIA_TYPES.get(path.suffix, media_type)), (b"etag", etag)]
    signature = signature_path(path)
    if signature.exists():
        raw = signature.read_bytes()
        if len(raw) > _MOST_SIGNATURE_BYTES:
            raise UsageError(f"signature {signature} has {len(raw)} bytes, must have at most {_MOST_SIGNATURE_BYTES}")
        # A byte sequence as RFC 8941 writes it in a header.
        headers.append((b"campaign-signature", b":" + base64.b64encode(raw) + b":"))
    return Document(data, tuple(headers), etag)
