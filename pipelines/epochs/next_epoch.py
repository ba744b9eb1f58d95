"""The next epoch: discovered items join the dictionary, unseen items leave it, parameters are planned anew ([J] 6.2).

The next epoch depends only on released results, the dictionary, the tracked items and the active keys; no report is
read. An epoch's parameters depend on results of the previous epoch, so a ledger must add up the epsilons and deltas of
its charges (docs/adr/0009).

The operator, or a publisher to whom the operator delegates, signs the campaign file. In an oblivious campaign each
epoch needs a fresh key of the evaluator.

A run writes the items, with the fingerprints of their epochs, before it publishes the epoch with these items. So if the
run is killed, the next run publishes the same epoch.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary
from hushcount.campaigns.parts import WindowsPart
from hushcount.campaigns.signatures import signature_path
from hushcount.clock import MACHINE, Clock
from hushcount.collection.epochs import COLLECTION_FILE, EpochPart, read_collection
from hushcount.collection.tilings import Tiling
from hushcount.collection.windows import Window
from hushcount.errors import UsageError
from hushcount.formats.whole_files import write_new
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import plan
from hushcount.passes.pass_keys import extended
from keys.directories import PublicFile
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.listed_windows import LEFT, listed_until, windows_of
from pipelines.deployment.parts import NextEpochPart
from pipelines.deployment.publish import publish_alone, publishing
from pipelines.deployment.settings import Deployment
from pipelines.epochs.epoch_keys import Signer, keys_of, require_rehearsed, same_keys, signer_of, with_evaluator
from pipelines.epochs.tracked_items import (
    ITEMS_FILE,
    TrackedItems,
    estimated_items,
    found_items,
    has_results,
    read_decisions,
    read_tracked,
    updated,
    write_tracked,
)
from pipelines.handover.hops import hop_names, outputs
from pipelines.handover.paths import Batch
from pipelines.jobs.new_campaign import create_campaign
from pipelines.log.fold import Fold
from pipelines.windows.calendar import Calendar
from pipelines.windows.rules import calendar_of

_FILE_MODE = 0o644
_SECOND = timedelta(seconds=1)


def follow(
    fold: Fold,
    deployment: Deployment,
    epochs: Epochs,
    part: NextEpochPart,
    now: datetime,
    clock: Clock = MACHINE,
    say: Callable[[str], None] = lambda _: None,
) -> EpochPart | None:
    """Bring a campaign's items up to date with all finished batches, and publish the next epoch if anything changed.

    No epoch is published before the newest epoch begins, nor if the newest epoch has an end. Before the newest epoch
    has lasted its least length, only a change of windows or of active keys is published; a publisher cannot sign new
    keys. New keys are published only after each of them has opened made-up reports in this process. If discovered
    values are to be reviewed, a value joins the dictionary only after the operator has approved it.

    Args:
        now: the present when the run began.
        say: is called before a rehearsal.
        clock: the clock of this machine. A new epoch begins when the window that is open at its publication ends.

    Returns:
        The published epoch, or None.

    Raises:
        UsageError: the mechanism cannot be planned for the new dictionary; or the newest epoch is signed, but no signer
            is set; or the active keys changed, but a publisher signs; or no fresh evaluator key is left.
        SignatureError: the delegation does not allow the publisher to sign the new epoch.
        HushcountError: a new key did not open the reports of its rehearsal; or another process has been publishing for
            half a minute.
    """
    path, campaign = epochs.newest
    dictionary = campaign.read_dictionary()
    if dictionary is None and not part.settings and campaign.mechanism is None:
        raise UsageError(f"campaign {campaign.id} has neither dictionary nor mechanism: there is nothing to plan anew")
    listed = epochs.listed
    before = read_tracked(epochs.directory / ITEMS_FILE, listed)
    taken_over = before.taken_over(campaign.fingerprint.hex(), listed, _listed_before(epochs, before.epochs))
    decisions = read_decisions(epochs.directory)
    rejected = frozenset(decisions.rejected)
    settled = frozenset((*decisions.approved, *listed))
    tracked = _up_to_date(fold, deployment, epochs, part, taken_over.without(rejected), rejected, settled)
    if tracked != before:
        with publishing(epochs.directory):
            if not _are(epochs, before):
                # Another run of this party changed the items or published an epoch, so leave the work to the next run.
                return None
            write_tracked(epochs.directory / ITEMS_FILE, tracked)
    newest = epochs.collection.epochs[-1]
    if newest.begins > now or newest.ends is not None:
        return None
    keys = keys_of(deployment, campaign, now)
    # Clients do not report listed items for discovery, so only estimates can show that an item is unused.
    windows = () if "reports" not in campaign.streams else _windows(fold, deployment, tracked)
    kept = tracked.kept(windows, part.unseen_windows)
    given = [one.item for one in tracked.items if one.source == "given"]
    wanted = decisions.admitted(kept, given, listed, part.most_additions, not part.review)
    share = None if part.target_rank is None else tracked.target_share
    same_items = dictionary is None or set(Dictionary(wanted).items) == set(dictionary.items)
    same_passes = extended(campaign) == campaign.passes
    unchanged = same_keys(campaign, keys)
    calendar = calendar_of(deployment, fold)
    tiling = _next_tiling(calendar, now)
    left = _listed_for(tiling, campaign, now)
    if unchanged and same_items and same_passes and left > LEFT and _same_plan(campaign, part, share):
        return None
    if unchanged and left and calendar.window_at(now).end < earliest_begin(calendar.window_at, newest, part, now):
        return None
    keys, _ = with_evaluator(deployment, epochs, part, keys, now)
    signer = signer_of(deployment, path, campaign, part, now)
    with _made(campaign, keys, wanted, part, share, windows_of(tiling, now), signer) as (following, made):
        # Before the lock, because others wait for the lock only half a minute.
        require_rehearsed(deployment, campaign, following, made, say)
        with publishing(epochs.directory):
            if not _are(epochs, tracked):
                # Somebody else published an epoch, so the next run plans the epoch that follows.
                return None
            named = tracked.model_copy(update={"epochs": (campaign.fingerprint.hex(), following.fingerprint.hex())})
            write_tracked(epochs.directory / ITEMS_FILE, named)
            # Use the present, not the start of the run hours ago: the previous epoch must not end in the past.
            return publish_alone(
                deployment, following, made, tiling, calendar.window_at(at := max(now, clock.now())).end, now=at
            )


def earliest_begin(
    window_at: Callable[[datetime], Window], newest: EpochPart, part: NextEpochPart, now: datetime
) -> datetime:
    """Return the earliest moment when a run begins the next epoch, unless the keys change: at the end of a window.

    Args:
        window_at: returns the window of a moment.
    """
    least = newest.begins + part.least_length - _SECOND
    return max(window_at(moment).end for moment in (least, now))


def rehearse(deployment: Deployment, epochs: Epochs, part: NextEpochPart, calendar: Calendar, now: datetime) -> str:
    """Plan and sign a next epoch with the present dictionary, but do not publish it; return a sentence on this epoch.

    Raises:
        UsageError, HushcountError: for the same reasons as in `follow`.
    """
    path, campaign = epochs.newest
    tracked = read_tracked(epochs.directory / ITEMS_FILE, epochs.listed)
    share = None if part.target_rank is None else tracked.target_share
    signer = signer_of(deployment, path, campaign, part, now)
    keys, left = with_evaluator(deployment, epochs, part, keys_of(deployment, campaign, now), now)
    ahead = windows_of(_next_tiling(calendar, now), now)
    with _made(campaign, keys, epochs.listed, part, share, ahead, signer) as (following, _):
        signed = "unsigned" if signer is None else f"signed by {signer}"
        evaluated = (
            f"; after it the evaluator's keys are enough for {left} more epochs" if campaign.is_oblivious else ""
        )
        return f"epoch {following.epoch} can be planned, {signed}{evaluated}"


def _are(epochs: Epochs, tracked: TrackedItems) -> bool:
    """Return whether the collection file and the items file are unchanged since this run read them."""
    there = read_tracked(epochs.directory / ITEMS_FILE, epochs.listed)
    return there == tracked and read_collection(epochs.directory / COLLECTION_FILE) == epochs.collection


def _listed_before(epochs: Epochs, known: tuple[str, ...]) -> set[str]:
    """Return the items that are in every dictionary from the last known epoch to the epoch before the newest.

    The set is empty if no epoch has one of the `known` fingerprints, because somebody replaced the collection.
    """
    earlier = [campaign for _, (_, campaign) in sorted(epochs.files.items())]
    last = max((place for place, one in enumerate(earlier) if one.fingerprint.hex() in known), default=len(earlier))
    dictionaries = [campaign.read_dictionary() for campaign in earlier[last:-1]]
    listed = [set[str]() if dictionary is None else set(dictionary.items) for dictionary in dictionaries]
    return set.intersection(*listed) if listed else set()


def _up_to_date(
    fold: Fold,
    deployment: Deployment,
    epochs: Epochs,
    part: NextEpochPart,
    tracked: TrackedItems,
    rejected: Set[str],
    settled: Set[str],
) -> TrackedItems:
    """Return the items after all batches that the analyzer finished, with the target share of the newest batch."""
    for batch in _finished(fold, epochs):
        if batch in tracked.batches:
            continue
        streams = fold.streams_of(batch)
        found = deployment.folder("found", epochs.campaign, batch) if "discovery" in streams else None
        results = deployment.folder("results", epochs.campaign, batch) if "reports" in streams else None
        if not has_results(found, results):
            continue
        newest = batch > max(tracked.batches, default="")
        rows, reports = ([], 0) if results is None else estimated_items(results)
        joining = found_items(found) if found is not None and part.add_found else []
        revealed = [item for item in joining if item not in rejected]
        tracked = updated(tracked, batch, revealed, [item for item, _, detected in rows if detected], settled)
        share = _target_share([count for _, count, _ in rows], part.target_rank, reports)
        if newest and share is not None:
            tracked = tracked.model_copy(update={"target_share": share})
    return tracked


def _finished(fold: Fold, epochs: Epochs) -> Iterator[str]:
    """Yield the batches that all hops of the analyzer have finished, oldest first."""
    for name, hops in sorted(fold.done.items()):
        batch = Batch.named(epochs.campaign, name)
        campaign = None if batch is None else epochs.campaigns.get(batch.file)
        if campaign is not None and hops.keys() >= {*hop_names(campaign, ("analyzer",))}:
            yield name


def _windows(fold: Fold, deployment: Deployment, tracked: TrackedItems) -> tuple[str, ...]:
    """Return the windows that have estimates and no unfinished batch, oldest first."""
    batches = {batch.name for batch in fold.made_batches} | fold.done.keys()
    if "shuffler" not in deployment.file.parties:
        batches |= {batch.name for batch, _ in outputs(deployment, "shuffled", fold.campaign)}
    unfinished = {_window(batch) for batch in batches - set(tracked.batches)}
    # Leave out batches without estimates, because they do not show that an item is unused.
    estimated = {one for one in tracked.batches if one not in fold.done or "reports" in fold.streams_of(one)}
    return tuple(sorted({_window(batch) for batch in estimated} - unfinished))


def _window(batch: str) -> str:
    return batch.partition("-")[0]


def _target_share(counts: list[float], rank: int | None, reports: int) -> float | None:
    """Return the share of the item with rank `rank`, as a power of two, so that noise seldom causes a new epoch."""
    if rank is None or not counts or not reports:
        return None
    # Divide by the number of reports, not by the sum of all counts, which is mostly noise of many rare items.
    count = max(sorted(counts, reverse=True)[min(rank, len(counts)) - 1], 1.0)
    return min(0.5, 2.0 ** round(math.log2(count / reports)))


def _same_plan(campaign: Campaign, part: NextEpochPart, share: float | None) -> bool:
    """Return whether the campaign has the parameters that would be planned for a share; true if `share` is None."""
    mechanism = campaign.mechanism
    if mechanism is None or share is None:
        return True
    seed = str(mechanism.parameters.get("seed", ""))
    try:
        planned = plan(
            mechanism.name, mechanism.epsilon, campaign.domain, part.settings, Objective("target", share), seed
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    return planned == mechanism.parameters


def _next_tiling(calendar: Calendar, now: datetime) -> Tiling:
    """Return the tiling whose windows the next epoch lists: that in force when it begins, with the next window."""
    return calendar.at(calendar.window_at(now).end).tiling


def _listed_for(tiling: Tiling, campaign: Campaign, now: datetime) -> timedelta:
    """Return for how long the campaign lists the windows of a tiling; nothing if it lists others."""
    try:
        until = listed_until(campaign, tiling, now)
    except UsageError:
        return timedelta()
    return timedelta.max if until is None else until - now


@contextmanager
def _made(
    campaign: Campaign,
    keys: PublicFile,
    wanted: tuple[str, ...],
    part: NextEpochPart,
    share: float | None,
    windows: WindowsPart | None,
    signer: Signer | None,
) -> Iterator[tuple[Campaign, Path]]:
    """Yield the next campaign and its file, signed if there is a signer; the file is deleted after the block."""
    if signer is not None and signer.delegation is not None and not same_keys(campaign, keys):
        raise UsageError(
            f"the parties' active keys differ from those of epoch {campaign.epoch} of campaign {campaign.id}, and a "
            "publisher cannot change keys: the operator must make the next epoch with hushcount campaign new --after, "
            "sign it, publish it, and delegate anew"
        )
    discovery = None
    if campaign.discovery is not None:
        discovery = campaign.discovery.model_dump(exclude={"hash_key", "hash_key_commitment"})
    with tempfile.TemporaryDirectory(prefix="hushcount-epoch-") as scratch:
        listed = None
        if campaign.dictionary is not None and campaign.number is None:
            listed = Path(scratch) / "dictionary.txt"
            listed.write_text("".join(f"{item}\n" for item in wanted), encoding="utf-8")
        following = create_campaign(
            campaign.id,
            keys,
            Path(scratch),
            mechanism=None if campaign.mechanism is None else campaign.mechanism.name,
            epsilon=None if campaign.mechanism is None else campaign.mechanism.epsilon,
            noise=campaign.noise,
            dictionary=listed,
            number=campaign.number,
            url=campaign.url,
            axes=campaign.axes,
            settings=part.settings,
            objective=Objective() if share is None else Objective("target", share),
            memory=campaign.memory_values if campaign.memory else 0,
            sample=campaign.sample,
            collectors=campaign.collectors,
            passes=extended(campaign),
            windows=windows,
            shuffle=campaign.shuffle.model_dump(),
            discovery=discovery,
            epoch=campaign.epoch + 1,
            previous=campaign.head,
        )
        path = Path(scratch) / f"{campaign.id}.json"
        following.write(path)
        if signer is not None:
            write_new(signature_path(path), signer.sign(following).text(), _FILE_MODE)
        yield Campaign.read(path), path
