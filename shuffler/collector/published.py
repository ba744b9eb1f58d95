"""The log of a campaign as this collector publishes it: append-only, whatever the campaigns directory says later.

Clients and auditors rely on it: an operator who could give each client a campaign file of its own, and have them all
collected, would know whose report is whose. So the collector keeps the log that it published in JOURNAL/published, and
serves nothing that does not continue it.
"""

from __future__ import annotations

from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import read_campaign_signature
from hushcount.campaigns.log import LOG_BYTES, CampaignLog, LogEntry, parse_log
from hushcount.campaigns.signatures import signature_path
from hushcount.collection.epochs import CollectionFile, read_epoch
from hushcount.errors import HushcountError, UsageError
from hushcount.formats.reading import read_file
from hushcount.formats.whole_files import sync, write_over

FOLDER = "published"
_MODE = 0o644


def log_of(directory: Path, collection: CollectionFile) -> CampaignLog:
    """Return the log of a campaign's directory, made from the campaign file of each epoch.

    Raises:
        UsageError: a campaign file is missing or invalid, or does not name the head of the log before it.
    """
    entries: list[LogEntry] = []
    before: Campaign | None = None
    for part in collection.epochs:
        campaign, path = read_epoch(directory, part), directory / part.file
        head = before.head.hex() if before is not None else None
        if campaign.previous != head:
            raise UsageError(
                f"{path} has previous {campaign.previous or 'absent'}, must be {head or 'absent'}: make epoch "
                f"{campaign.epoch} with hushcount campaign new --after the file of the epoch before it"
            )
        signature = read_campaign_signature(signature_path(path)) if signature_path(path).exists() else None
        entries.append(LogEntry(epoch=part.epoch, fingerprint=campaign.fingerprint.hex(), signature=signature))
        before = campaign
    return CampaignLog(campaign=directory.name, entries=tuple(entries))


def keep(folder: Path, log: CampaignLog) -> None:
    """Keep a log that is about to be served, durably, in JOURNAL/published.

    Raises:
        UsageError: it does not continue the log that was kept before, or that file is damaged.
        HushcountError: it cannot be kept.
    """
    path = folder / f"{log.campaign}.json"
    kept = parse_log(read_file(path, "published log", LOG_BYTES), f"published log {path}") if path.exists() else None
    if kept is not None:
        _require_continued(kept, log)
    if kept is None or len(kept.entries) < len(log.entries):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_over(path, log.text(), _MODE)
            sync(folder)
        except OSError as error:
            raise HushcountError(f"cannot keep the log that is published in {path}: {error.strerror}") from None


def _require_continued(kept: CampaignLog, log: CampaignLog) -> None:
    now = {entry.epoch: entry.fingerprint for entry in log.entries}
    for entry in kept.entries:
        there = now.get(entry.epoch)
        if there != entry.fingerprint:
            said = "is missing" if there is None else f"is {there}"
            raise UsageError(
                f"campaign {log.campaign} epoch {entry.epoch} was published as {entry.fingerprint} and now {said}: "
                "what was published is not taken back, restore the campaigns directory; a changed file needs a new "
                "epoch"
            )
    if any(one.epoch != other.epoch for one, other in zip(kept.entries, log.entries, strict=False)):
        raise UsageError(f"campaign {log.campaign} has a new epoch before one that was published: give it a later one")
