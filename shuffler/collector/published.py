"""The log of a campaign as this collector publishes it: append-only, even if the campaigns directory changes later.

Clients and auditors rely on an append-only log. Otherwise an operator could give each client its own campaign file,
collect reports for all these files, and link every report to its sender. So the collector keeps the published log in
JOURNAL/published, and serves only a log that continues the kept log.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import read_campaign_signature
from hushcount.campaigns.log import LOG_BYTES, CampaignLog, LogEntry, parse_log, require_follows
from hushcount.campaigns.signatures import signature_path
from hushcount.collection.epochs import CollectionFile
from hushcount.errors import HushcountError, UsageError
from hushcount.formats.reading import read_file, validated
from hushcount.formats.whole_files import sync, write_over

FOLDER = "published"
_MODE = 0o600


def kept_log(folder: Path, campaign: str) -> CampaignLog:
    """Return the log in JOURNAL/published, empty for a new campaign; HushcountError: the log is damaged."""
    path = folder / f"{campaign}.json"
    if not path.exists():
        return validated(CampaignLog, {"campaign": campaign}, f"the log of campaign {campaign}")
    return parse_log(read_file(path, "published log", LOG_BYTES), f"published log {path}")


def log_of(
    directory: Path, collection: CollectionFile, campaigns: Sequence[Campaign], kept: CampaignLog
) -> CampaignLog:
    """Return the log of a campaign's directory, made from the campaign file of each epoch.

    Raises:
        UsageError: a campaign file does not name the head of the log before it, or the log does not continue the kept
            log.
    """
    entries: list[LogEntry] = []
    for part, campaign in zip(collection.epochs, campaigns, strict=True):
        path = signature_path(directory / part.file)
        signature = read_campaign_signature(path) if path.exists() else None
        entries.append(LogEntry(epoch=part.epoch, fingerprint=campaign.fingerprint.hex(), signature=signature))
    data = {"campaign": directory.name, "entries": entries}
    log = validated(CampaignLog, data, f"the log of campaign {directory.name}")
    _require_continued(kept, log)
    for before, campaign in zip((None, *campaigns), campaigns, strict=False):
        require_follows(campaign, before)
    return log


def keep(folder: Path, kept: CampaignLog, log: CampaignLog) -> None:
    """Write a log, which continues the kept log, to the disk before it is served. HushcountError: the disk fails."""
    if log == kept:
        return
    path = folder / f"{log.campaign}.json"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        sync(folder.parent)
        write_over(path, log.text(), _MODE)
        sync(folder)
    except OSError as error:
        raise HushcountError(f"cannot write the published log {path}: {error.strerror}") from None


def _require_continued(kept: CampaignLog, log: CampaignLog) -> None:
    now = {entry.epoch: entry.fingerprint for entry in log.entries}
    for entry in kept.entries:
        there = now.get(entry.epoch)
        if there != entry.fingerprint:
            said = "is missing" if there is None else f"is {there}"
            raise UsageError(
                f"epoch {entry.epoch} of campaign {log.campaign} was published as {entry.fingerprint} and now {said}: "
                "a published epoch must stay as it is: restore the campaigns directory, and publish changes as a new "
                "epoch"
            )
    for place, entry in enumerate(kept.entries):
        new = log.entries[place].epoch
        if new != entry.epoch:
            raise UsageError(
                f"epoch {new} of campaign {log.campaign} comes before epoch {entry.epoch}, which is already published: "
                "give the new epoch a greater number"
            )
