"""Publish an epoch: copy its campaign file into the campaign's folder, and set the end of the previous epoch."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.log import require_follows
from hushcount.campaigns.parts import SamplePart
from hushcount.campaigns.signatures import signature_path
from hushcount.clock import MACHINE
from hushcount.collection.epochs import COLLECTION_FILE, CollectionFile, EpochPart, read_collection, read_epoch
from hushcount.collection.tilings import Tiling
from hushcount.collection.windows import duration_text
from hushcount.errors import HushcountError, UsageError
from hushcount.formats.whole_files import sync, write_over
from hushcount.passes.pass_keys import PASSES_FILE, PassKeys, keys_of, passes_beside, read_pass_keys
from pipelines.deployment.campaigns import oblivious_campaigns, taken_buckets
from pipelines.deployment.listed_windows import listed_until
from pipelines.deployment.settings import Deployment

_FILE_MODE = 0o644
_LOCK_FILE = ".publish.lock"
_LOCK_MODE = 0o666
_BUSY_SECONDS = 30.0
_PAUSE_SECONDS = 0.05


def publish(
    deployment: Deployment,
    campaign_path: Path,
    begins: datetime | None = None,
    now: datetime | None = None,
    early: bool = False,
) -> EpochPart:
    """Publish a campaign file: collectors accept reports under it from the moment when its epoch begins.

    The function writes the campaign file, its dictionary, its signature if there is one, and then, in one step,
    collection.json. Collectors notice a new collection.json by themselves, and clients fetch the newest campaign file.
    If the process is killed before it writes collection.json, nobody reads the other new files, and the next publish
    replaces them.

    Args:
        campaign_path: the campaign file; its epoch must be greater than all published epochs.
        begins: when the epoch begins; by default a first epoch begins at once, and a later epoch at the end of the
            present window.
        early: whether the epoch may begin before the previous epoch has lasted its least_length.

    Returns:
        The published epoch; an unchanged file is not published again.

    Raises:
        UsageError: the file is invalid; or its epoch or `begins` is not later than those of the published epochs; or
            `begins` is too early; or the file does not list the deployment's windows as it must, or does not name
            the head of the published epochs, or names a key of the evaluator that another campaign file of the
            deployment names.
        HushcountError: another process has been publishing for half a minute.
    """
    campaign = Campaign.read(campaign_path)
    with publishing(deployment.campaigns / campaign.id):
        return publish_alone(deployment, campaign, campaign_path, deployment.windows.tiling, begins, now, early)


@contextmanager
def publishing(folder: Path) -> Iterator[None]:
    """Hold a lock, so that other processes that publish into the folder wait; the lock ends with the process.

    Raises:
        HushcountError: another process has held the lock for half a minute.
    """
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    descriptor = _lock_file(folder / _LOCK_FILE)
    try:
        end = MACHINE.steady() + _BUSY_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if MACHINE.steady() > end:
                    raise HushcountError(
                        f"another process has been publishing into {folder} for {_BUSY_SECONDS:.0f} s: nothing was "
                        "published; try again when it has ended"
                    ) from None
                time.sleep(_PAUSE_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _lock_file(path: Path) -> int:
    try:
        # Open the file for writing, because NFS locks no other file.
        return os.open(path, os.O_RDWR | os.O_CREAT, _LOCK_MODE)
    except PermissionError:
        # Another user made the file, so open it for reading; a local disk can lock such a file too.
        return os.open(path, os.O_RDONLY | os.O_CREAT, _LOCK_MODE)


def publish_alone(
    deployment: Deployment,
    campaign: Campaign,
    campaign_path: Path,
    tiling: Tiling,
    begins: datetime | None = None,
    now: datetime | None = None,
    early: bool = True,
) -> EpochPart:
    """Publish a campaign that was read from a file, as `publish` does; the caller holds the lock `publishing`.

    Args:
        tiling: how time is cut into windows when the epoch begins.
    """
    folder = deployment.campaigns / campaign.id
    earlier = read_collection(folder / COLLECTION_FILE).epochs if (folder / COLLECTION_FILE).exists() else ()
    published = {part.epoch: (part, read_epoch(folder, part)) for part in earlier}
    if campaign.epoch in published:
        part, there = published[campaign.epoch]
        if there.fingerprint == campaign.fingerprint:
            _renew_signature(campaign_path, folder, part)
            return part
    moment = (now or MACHINE.now()).replace(microsecond=0)
    start = begins or (tiling.window_at(moment).end if earlier else moment)
    if earlier:
        _require_later(campaign.epoch, start, earlier[-1])
        if not early:
            _require_length(deployment, campaign, start, earlier[-1])
    listed_until(campaign, tiling, start)
    require_follows(campaign, published[earlier[-1].epoch][1] if earlier else None)
    if campaign.passes is not None:
        _copy_passes(campaign, campaign_path, folder, moment)
    if not campaign.is_oblivious and campaign.sample is None:
        return _published(deployment, campaign, campaign_path, published, start)
    # Lock all campaigns: two campaigns with a key of the evaluator or a bucket in common, published at once, would each
    # find it unused.
    with publishing(deployment.campaigns):
        if campaign.is_oblivious:
            _require_fresh_key(deployment, campaign)
        if campaign.sample is not None:
            _require_free_buckets(deployment, campaign.id, campaign.sample)
        return _published(deployment, campaign, campaign_path, published, start)


def _published(
    deployment: Deployment,
    campaign: Campaign,
    campaign_path: Path,
    published: Mapping[int, tuple[EpochPart, Campaign]],
    start: datetime,
) -> EpochPart:
    """Write the campaign's files, and then the collection file that names them."""
    folder = deployment.campaigns / campaign.id
    name = f"epoch-{campaign.epoch:06d}.json"
    _copy(campaign, campaign_path, folder, name, _served(folder, published.values()))
    # The files that collection.json names must be on the disk before collection.json is.
    sync(folder)
    ended = tuple(
        part
        if part.ends is not None
        else part.model_copy(update={"ends": start, "grace_ends": start + deployment.windows.grace})
        for part, _ in published.values()
    )
    new = EpochPart(epoch=campaign.epoch, file=name, begins=start)
    collection = CollectionFile(epochs=(*ended, new))
    write_over(folder / COLLECTION_FILE, collection.model_dump_json(indent=2) + "\n", _FILE_MODE)
    sync(folder)
    return new


def _require_fresh_key(deployment: Deployment, campaign: Campaign) -> None:
    """Refuse an evaluator's key that another campaign file names: a key can be destroyed only if one file needs it."""
    (key,) = campaign.keys.evaluator
    for one in oblivious_campaigns(deployment.campaigns):
        (theirs,) = one.keys.evaluator
        if theirs.id == key.id and (one.id, one.epoch) != (campaign.id, campaign.epoch):
            raise UsageError(
                f"epoch {campaign.epoch} of campaign {campaign.id} names the evaluator's key {key.id} of epoch "
                f"{one.epoch} of campaign {one.id}: each campaign file needs a fresh one, make it with hushcount "
                f"campaign new --config {deployment.path}, and --after unless it is the campaign's first"
            )


def _require_free_buckets(deployment: Deployment, name: str, sample: SamplePart) -> None:
    for other, theirs in taken_buckets(deployment.campaigns, sample.layer, name):
        if sample.meets(theirs):
            raise UsageError(
                f"sample of campaign {name} has buckets of campaign {other} in layer {sample.layer}: make the file "
                f"with hushcount campaign new --config {deployment.path}, which takes free ones"
            )


def _require_length(deployment: Deployment, campaign: Campaign, start: datetime, last: EpochPart) -> None:
    """Refuse to end an epoch before its least length, because clients with a memory spend epsilon in each epoch."""
    part = deployment.file.next_epoch.get(campaign.id)
    if part is not None and start < last.begins + part.least_length:
        raise UsageError(
            f"epoch {campaign.epoch} would begin {start.isoformat()}, epoch {last.epoch} began "
            f"{last.begins.isoformat()} and has a least_length of {duration_text(part.least_length)} under "
            f"[next_epoch.{campaign.id}], because clients with a memory spend epsilon anew in each epoch: give a later "
            "--begins, or --early to begin nevertheless"
        )


def _require_later(epoch: int, start: datetime, last: EpochPart) -> None:
    if epoch > last.epoch and start > last.begins and (last.ends is None or start >= last.ends):
        return
    ends = "" if last.ends is None else f" and ends {last.ends.isoformat()}"
    raise UsageError(
        f"epoch {epoch} from {start.isoformat()} on must come after epoch {last.epoch}, which begins "
        f"{last.begins.isoformat()}{ends}: give a greater epoch, or a later --begins"
    )


def _renew_signature(source: Path, folder: Path, part: EpochPart) -> None:
    """Publish the signature beside the file `source`, if there is one; it may replace a signature by an older key."""
    signed = signature_path(source)
    if not signed.exists():
        return
    write_over(signature_path(folder / part.file), signed.read_bytes(), _FILE_MODE)
    sync(folder)
    # Replace the collection file by a copy, because collectors then read the campaign again.
    write_over(folder / COLLECTION_FILE, (folder / COLLECTION_FILE).read_bytes(), _FILE_MODE)
    sync(folder)


def _served(folder: Path, published: Collection[tuple[EpochPart, Campaign]]) -> set[Path]:
    """Return the files of published epochs: collectors may read them, so only other files may be overwritten."""
    dictionaries = {folder / campaign.dictionary.path for _, campaign in published if campaign.dictionary is not None}
    files = {folder / part.file for part, _ in published}
    return dictionaries | files | {signature_path(file) for file in files}


def _copy(campaign: Campaign, source: Path, folder: Path, name: str, served: set[Path]) -> None:
    """Put campaign file, dictionary and signature into the folder; files of an interrupted publish are overwritten."""
    dictionary = campaign.read_dictionary()
    data = campaign.model_dump(mode="json", exclude_none=True)
    if dictionary is not None:
        kept = f"epoch-{campaign.epoch:06d}.dictionary.txt.gz"
        _put(folder / kept, dictionary.packed(), served)
        # The fingerprint does not change, because it covers the dictionary's items, but not the dictionary's path.
        data["dictionary"]["path"] = kept
    changed = Campaign.model_validate(data)
    if changed.fingerprint != campaign.fingerprint:
        raise UsageError(f"campaign file {source} cannot be published: its fingerprint depends on where it lies")
    _put(folder / name, changed.text().encode(), served)
    signed = signature_path(source)
    if signed.exists():
        _put(signature_path(folder / name), signed.read_bytes(), served)
    else:
        signature_path(folder / name).unlink(missing_ok=True)


def _copy_passes(campaign: Campaign, source: Path, folder: Path, now: datetime) -> None:
    """Put the public keys of passes into the folder: one file for all epochs, with all days from yesterday on."""
    beside, there = passes_beside(source, campaign.id), folder / PASSES_FILE
    # The file beside the campaign file may be an old one, if a publisher made epochs meanwhile.
    files = [path for path in (beside, there) if path.exists()] or [there]
    keys = max((read_pass_keys(path) for path in files), key=lambda keys: max(_days(keys)))
    keys_of(campaign, keys)
    if there.exists():
        published, yesterday = read_pass_keys(there), now.date() - timedelta(days=1)
        old, new = _days(published), _days(keys)
        changed = [day for day in old.keys() & new.keys() if old[day] != new[day]]
        lost = [day for day in old if yesterday <= day < keys.first]
        if keys.parties != published.parties or changed or lost:
            what = f"on {min(changed or lost)}" if changed or lost else "in collectors, evaluator or seconds"
            raise UsageError(
                f"pass keys differ from the published ones in {there} {what}, must keep all that clients may have "
                "passes of: give the file to which hushcount keys passes added days, or the campaign another id"
            )
    write_over(there, keys.model_dump_json(), _FILE_MODE)


def _days(keys: PassKeys) -> dict[date, tuple[str, ...]]:
    return {keys.first + timedelta(days=number): day for number, day in enumerate(keys.days)}


def _put(path: Path, data: bytes, served: set[Path]) -> None:
    if path not in served:
        write_over(path, data, _FILE_MODE)
    elif path.read_bytes() != data:
        raise UsageError(f"{path} is published with other content: make a campaign file of a greater epoch")
