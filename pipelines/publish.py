"""Publish an epoch: its campaign file joins the campaign's folder, and the epoch before it ends when it begins."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from hushcount.campaign import Campaign
from hushcount.collection import COLLECTION_FILE, CollectionFile, EpochPart, read_collection
from hushcount.errors import UsageError
from hushcount.files import write_new, write_over
from hushcount.signatures import signature_path
from hushcount.windows import window_at
from pipelines.deployment import Deployment

_FILE_MODE = 0o644


def publish(
    deployment: Deployment, campaign_path: Path, begins: datetime | None = None, now: datetime | None = None
) -> EpochPart:
    """Let a campaign file be collected under, from a moment on.

    Written are the campaign file, its dictionary, its signature if it has one, and then, in one step, collection.json.
    Collectors notice by themselves; clients fetch the newest.

    Args:
        deployment: whose collectors are to take it.
        campaign_path: the campaign file; its epoch must be greater than those that are there.
        begins: when; for the first epoch at once, for a later one at the end of the present window by default.
        now: the present.

    Returns:
        The epoch as it was published. What is published already, unchanged, is not published again.

    Raises:
        UsageError: the file is invalid, its epoch or `begins` is not later than those that are there.
    """
    campaign = Campaign.read(campaign_path)
    folder = deployment.campaigns / campaign.id
    earlier = read_collection(folder / COLLECTION_FILE).epochs if (folder / COLLECTION_FILE).exists() else ()
    same = _published(folder, earlier, campaign)
    if same is not None:
        return same
    moment = (now or datetime.now(timezone.utc)).replace(microsecond=0)
    start = begins or (window_at(moment, deployment.windows.length).end if earlier else moment)
    if earlier and (campaign.epoch <= earlier[-1].epoch or start <= earlier[-1].begins):
        raise UsageError(
            f"epoch {campaign.epoch} from {start.isoformat()} on must come after epoch {earlier[-1].epoch}, which "
            f"begins {earlier[-1].begins.isoformat()}: give a greater epoch, or a later --begins"
        )
    name = f"epoch-{campaign.epoch:06d}{campaign_path.suffix}"
    _copy(campaign, campaign_path, folder, name)
    ended = tuple(
        part
        if part.ends is not None
        else part.model_copy(update={"ends": start, "grace_ends": start + deployment.windows.grace})
        for part in earlier
    )
    published = EpochPart(epoch=campaign.epoch, file=name, begins=start)
    collection = CollectionFile(epochs=(*ended, published))
    write_over(folder / COLLECTION_FILE, collection.model_dump_json(indent=2) + "\n", _FILE_MODE)
    return published


def _published(folder: Path, earlier: tuple[EpochPart, ...], campaign: Campaign) -> EpochPart | None:
    for part in earlier:
        if part.epoch == campaign.epoch and Campaign.read(folder / part.file).fingerprint == campaign.fingerprint:
            return part
    return None


def _copy(campaign: Campaign, source: Path, folder: Path, name: str) -> None:
    """Put the campaign file, its dictionary and its signature into the folder; those of a killed try may be there."""
    campaign.read_dictionary()
    folder.mkdir(parents=True, exist_ok=True)
    data = campaign.model_dump(mode="json", exclude_none=True)
    if campaign.dictionary is not None:
        given = source.parent / campaign.dictionary.path
        kept = f"epoch-{campaign.epoch:06d}.dictionary{''.join(given.suffixes[-2:])}"
        if given.absolute() != (folder / kept).absolute():
            _put(folder / kept, given.read_bytes())
        # The path of the dictionary is no part of the fingerprint, which is that of its items.
        data["dictionary"]["path"] = kept
    changed = Campaign.model_validate(data)
    if changed.fingerprint != campaign.fingerprint:
        raise UsageError(f"campaign file {source} cannot be published: its fingerprint depends on where it lies")
    _put(folder / name, changed.text(folder / name).encode())
    if signature_path(source).exists() and source.absolute() != (folder / name).absolute():
        write_over(signature_path(folder / name), signature_path(source).read_bytes(), _FILE_MODE)


def _put(path: Path, data: bytes) -> None:
    try:
        write_new(path, data, _FILE_MODE)
    except FileExistsError:
        if path.read_bytes() != data:
            raise UsageError(f"{path} is there and is another: make a campaign file of a greater epoch") from None
