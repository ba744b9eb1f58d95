"""The next epoch: discovered items join the dictionary, unseen ones leave it, parameters are planned anew ([J] 6.2).

What is published follows from what was released, the dictionary and the shares, and from the keys that are active: no
report is looked at. A ledger must compose by plain sums then, for an epoch's parameters depend on the results of the
one before (docs/adr/0009).

The items are written before the epoch that is made of them, and the newest epoch itself says what it was planned for:
a run that is killed between any two steps is gone on with by the next one, with the same result.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Set
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

from sqlalchemy import Connection

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary
from hushcount.campaigns.signatures import signature_path
from hushcount.collection.epochs import COLLECTION_FILE, EpochPart, folder_name, read_collection
from hushcount.collection.windows import window_at
from hushcount.errors import UsageError
from hushcount.formats.whole_files import write_new
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import plan
from keys.listing import PUBLIC_FILE
from keys.store import KeyReference, PublicFile, active_key, read_public
from pipelines.batches.rows import hops_done, made_batches, streams_done
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.publish import publish_alone, publishing
from pipelines.deployment.settings import Deployment, NextEpochPart
from pipelines.epochs.review import read_decisions
from pipelines.epochs.tracked_items import (
    ITEMS_FILE,
    TrackedItems,
    estimated_items,
    found_items,
    has_results,
    read_tracked,
    updated,
    write_tracked,
)
from pipelines.files import storage
from pipelines.jobs.new_campaign import create_campaign
from pipelines.outputs.staging import SUMMARY

_FILE_MODE = 0o644


def follow(
    connection: Connection, deployment: Deployment, epochs: Epochs, part: NextEpochPart, now: datetime
) -> EpochPart | None:
    """Bring a campaign's items up to date with all finished batches, and publish the next epoch if anything changed.

    Nothing is published while the newest epoch has not begun, nor after one that was given an end; nor before the
    newest has its least length, unless other keys are active by now: that is the operator's doing, and no stranger's.
    What was found joins when the operator has approved it, if it is to be reviewed.

    Args:
        connection: to the state.
        deployment: whose.
        epochs: of the campaign.
        part: what may change.
        now: the present when the run began; the epoch begins at the end of the window that is present when it is
            published, by the clock, if that is later.

    Returns:
        The epoch that was published, or None.

    Raises:
        UsageError: the mechanism cannot be planned for the new dictionary, or the epoch cannot be signed as the newest.
        HushcountError: somebody else is publishing, and does not come to an end.
    """
    path, campaign = epochs.newest
    dictionary = campaign.read_dictionary()
    if dictionary is None and not part.settings and campaign.mechanism is None:
        raise UsageError(f"campaign {campaign.id} has neither dictionary nor mechanism: there is nothing to plan anew")
    listed = () if dictionary is None else dictionary.items
    before = read_tracked(epochs.directory / ITEMS_FILE, listed)
    taken_over = before.taken_over(campaign.fingerprint.hex(), listed, _listed_before(epochs, before.epochs))
    decisions = read_decisions(epochs.directory)
    rejected = frozenset(decisions.rejected)
    settled = frozenset((*decisions.approved, *listed))
    tracked = _up_to_date(connection, deployment, epochs, part, taken_over.without(rejected), rejected, settled)
    if tracked != before:
        write_tracked(epochs.directory / ITEMS_FILE, tracked)
    newest = epochs.collection.epochs[-1]
    if newest.begins > now or newest.ends is not None:
        return None
    keys = _keys(deployment, campaign, now)
    # A client does not report what is listed for discovery: without estimates nothing shows whether it is still used.
    windows = () if campaign.mechanism is None else _windows(connection, deployment, epochs.campaign, tracked)
    kept = tracked.kept(windows, part.unseen_windows)
    given = [one.item for one in tracked.items if one.source == "given"]
    wanted = decisions.admitted(kept, given, listed, part.most_additions, not part.review)
    share = None if part.target_rank is None else tracked.target_share
    same_items = dictionary is None or Dictionary(wanted).digest == dictionary.digest
    same_keys = (keys.analyzer, keys.aux_server) == (campaign.keys.analyzer, campaign.keys.aux_server)
    if same_items and same_keys and _same_plan(campaign, part, share):
        return None
    if same_keys and window_at(now, deployment.windows.length).end < newest.begins + part.least_length:
        return None
    signer = _signer(deployment, path, campaign, part, now)
    with publishing(epochs.directory), _made(campaign, keys, wanted, part, share, signer) as (following, made):
        if read_collection(epochs.directory / COLLECTION_FILE) != epochs.collection:
            # Somebody published meanwhile: the next run follows that epoch.
            return None
        names = (campaign.fingerprint.hex(), following.fingerprint.hex())
        write_tracked(epochs.directory / ITEMS_FILE, tracked.model_copy(update={"epochs": names}))
        # A run takes hours: an epoch that began meanwhile would have ended the one before while that was collected.
        return publish_alone(deployment, following, made, now=max(now, datetime.now(timezone.utc)))


def rehearse(deployment: Deployment, epochs: Epochs, part: NextEpochPart, now: datetime) -> str:
    """Plan and sign the next epoch of a campaign as it is now, throw it away, and say what it would be.

    Raises:
        UsageError, HushcountError: what `follow` would raise when something has changed.
    """
    path, campaign = epochs.newest
    dictionary = campaign.read_dictionary()
    listed = () if dictionary is None else dictionary.items
    tracked = read_tracked(epochs.directory / ITEMS_FILE, listed)
    share = None if part.target_rank is None else tracked.target_share
    signer = _signer(deployment, path, campaign, part, now)
    with _made(campaign, _keys(deployment, campaign, now), listed, part, share, signer) as (following, _):
        return f"epoch {following.epoch} can be planned, " + (
            "unsigned" if signer is None else f"signed by {signer.id}"
        )


def _listed_before(epochs: Epochs, known: tuple[str, ...]) -> set[str]:
    """Return what all epochs before the newest list, from the last one on that the items have been taken over from.

    Nothing where none of the known ones is there any more: somebody made another collection.
    """
    earlier = [campaign for _, (_, campaign) in sorted(epochs.files.items())]
    last = max((place for place, one in enumerate(earlier) if one.fingerprint.hex() in known), default=len(earlier))
    dictionaries = [campaign.read_dictionary() for campaign in earlier[last:-1]]
    listed = [set[str]() if dictionary is None else set(dictionary.items) for dictionary in dictionaries]
    return set.intersection(*listed) if listed else set()


def _up_to_date(
    connection: Connection,
    deployment: Deployment,
    epochs: Epochs,
    part: NextEpochPart,
    tracked: TrackedItems,
    rejected: Set[str],
    settled: Set[str],
) -> TrackedItems:
    """Return the items after all batches that the analyzer was done with, and the share that the newest one shows."""
    streams = streams_done(connection, epochs.campaign)
    for batch in _finished(connection, epochs):
        if batch in tracked.batches:
            continue
        found = deployment.folder("found", epochs.campaign, batch) if "discovery" in streams[batch] else None
        results = deployment.folder("results", epochs.campaign, batch) if "reports" in streams[batch] else None
        if not has_results(found, results):
            continue
        newest = batch > max(tracked.batches, default="")
        rows, reports = ([], 0) if results is None else estimated_items(results)
        revealed = found_items(found) if found is not None and part.add_found else []
        revealed = [item for item in revealed if item not in rejected]
        tracked = updated(tracked, batch, revealed, [item for item, _, detected in rows if detected], settled)
        share = _target_share([count for _, count, _ in rows], part.target_rank, reports)
        if newest and share is not None:
            tracked = tracked.model_copy(update={"target_share": share})
    return tracked


def _finished(connection: Connection, epochs: Epochs) -> Iterator[str]:
    """Yield the batches of which every hop of the analyzer has run, or was passed over, oldest first."""
    files = {folder_name(*key): campaign for key, (_, campaign) in epochs.files.items()}
    for batch, hops in sorted(hops_done(connection, epochs.campaign).items()):
        campaign = files.get(batch.partition("-")[2])
        if campaign is None:
            continue
        needed = {"discover"} if campaign.discovery is not None else set()
        if needed | ({"analyze"} if campaign.mechanism is not None else set()) <= hops:
            yield batch


def _windows(connection: Connection, deployment: Deployment, campaign: str, tracked: TrackedItems) -> tuple[str, ...]:
    """Return the windows of whose reports the items are up to date with, ascending: of none is a batch on its way."""
    batches = {batch.name for batch in made_batches(connection, campaign)} | hops_done(connection, campaign).keys()
    if "shuffler" not in deployment.file.parties:
        shuffled = storage.list_tree(deployment.folder("shuffled", campaign), f"*/{SUMMARY}")
        batches |= {path.split("/")[-2] for path, _ in shuffled}
    unfinished = {_window(batch) for batch in batches - set(tracked.batches)}
    # Without estimates a batch does not show that an item is unseen.
    streams = streams_done(connection, campaign)
    estimated = {batch for batch in tracked.batches if "reports" in streams.get(batch, {"reports"})}
    return tuple(sorted({_window(batch) for batch in estimated} - unfinished))


def _window(batch: str) -> str:
    return batch.partition("-")[0]


def _target_share(counts: list[float], rank: int | None, reports: int) -> float | None:
    """Return the share of the item of that rank, to a power of two: noise must not make an epoch. None: unknown."""
    if rank is None or not counts or not reports:
        return None
    # Of the reports: the counts of many items that hardly anybody holds add up to their noise.
    count = max(sorted(counts, reverse=True)[min(rank, len(counts)) - 1], 1.0)
    return min(0.5, 2.0 ** round(math.log2(count / reports)))


def _same_plan(campaign: Campaign, part: NextEpochPart, share: float | None) -> bool:
    """Return whether the campaign has the parameters that are planned for a share; where none is known, it has."""
    mechanism = campaign.mechanism
    if mechanism is None or share is None:
        return True
    domain = None if campaign.dictionary is None else campaign.dictionary.items + 1
    seed = str(mechanism.parameters.get("seed", ""))
    try:
        planned = plan(mechanism.name, mechanism.epsilon, domain, part.settings, Objective("target", share), seed)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return planned == mechanism.parameters


@contextmanager
def _made(
    campaign: Campaign,
    keys: PublicFile,
    wanted: tuple[str, ...],
    part: NextEpochPart,
    share: float | None,
    signer: KeyReference | None,
) -> Iterator[tuple[Campaign, Path]]:
    """Make the next campaign, signed if it is to be; its file is gone after the block."""
    discovery = None
    if campaign.discovery is not None:
        discovery = campaign.discovery.model_dump(exclude={"hash_key", "hash_key_commitment"})
    with tempfile.TemporaryDirectory(prefix="hushcount-epoch-") as scratch:
        listed = None
        if campaign.dictionary is not None:
            listed = Path(scratch) / "dictionary.txt"
            listed.write_text("".join(f"{item}\n" for item in wanted), encoding="utf-8")
        following = create_campaign(
            campaign.id,
            keys,
            Path(scratch),
            mechanism=None if campaign.mechanism is None else campaign.mechanism.name,
            epsilon=None if campaign.mechanism is None else campaign.mechanism.epsilon,
            dictionary=listed,
            settings=part.settings,
            objective=Objective() if share is None else Objective("target", share),
            memory=campaign.memory_values if campaign.memory else 0,
            shuffle=campaign.shuffle.model_dump(),
            discovery=discovery,
            epoch=campaign.epoch + 1,
        )
        path = Path(scratch) / f"{campaign.id}.json"
        following.write(path)
        if signer is not None:
            signature = signer.sign(following.fingerprint, "campaign")
            write_new(signature_path(path), signature.model_dump_json() + "\n", _FILE_MODE)
        yield Campaign.read(path), path


def _signer(
    deployment: Deployment, path: Path, campaign: Campaign, part: NextEpochPart, now: datetime
) -> KeyReference | None:
    """Return the operator's key that the next epoch is signed with, or None where the newest is not signed either."""
    if part.sign_with is None:
        if signature_path(path).exists():
            raise UsageError(
                f"epoch {campaign.epoch} is signed, and clients that verify would refuse an unsigned one after it: set "
                f"sign_with under [next_epoch.{campaign.id}] to the operator's key directory"
            )
        return None
    return active_key(deployment.key_source(part.sign_with), "operator", now)


def _keys(deployment: Deployment, campaign: Campaign, now: datetime) -> PublicFile:
    """Return the keys that are active now, of those whose listing is here; else those of the campaign."""
    listed = PublicFile()
    directory = Path(deployment.keys)
    if (directory / PUBLIC_FILE).exists():
        listed = read_public([directory], now)
    return PublicFile(
        analyzer=listed.analyzer or campaign.keys.analyzer,
        aux_server=(listed.aux_server or campaign.keys.aux_server) if campaign.keys.aux_server else (),
    )
