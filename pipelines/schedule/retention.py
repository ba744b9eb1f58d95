"""Retention: delete files after the time for which the deployment keeps them; the log keeps the numbers of reports.

A batch's files are deleted only after the batch has passed every hop that runs here, and when no later batch can need
to be compared with these files. Files that parties elsewhere read are also kept until these parties left receipts, but
at most as long as the deployment says. The log states the begin and the end of each deletion, so any run can continue a
deletion that another run began.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from re import escape, fullmatch

from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.manifests import SUFFIX
from hushcount.collection.windows import Window, window_start
from hushcount.errors import HushcountError
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.handover.hops import CHAIN, HANDED_ON, Hop, hop_names
from pipelines.handover.paths import Batch, WindowPath
from pipelines.jobs.dead_letters import CURES
from pipelines.jobs.dead_letters import FOLDER as DEAD_LETTERS
from pipelines.log.entries import Decision, Deleted, Deleting
from pipelines.log.fold import Fold
from pipelines.log.log import Log, Logs
from pipelines.schedule.publishing import withdraw
from pipelines.schedule.stating import handed_on
from pipelines.windows.calendar import Calendar
from pipelines.windows.rules import calendar_of

_TEMPORARY = rf"\.[^/]+{escape(storage.TEMPORARY)}"
_IN_WINDOW = rf"[^/]+/[^/]+/[^/]+/([^/]+/[^/]+\.blocks|[^/]+{escape(SUFFIX)}|([^/]+/)?{_TEMPORARY})"
_NEVER = datetime.max.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class _Old:
    """Outputs of a hop for some batches, which nobody needs any more.

    Attributes:
        what: FOLDER, or FOLDER/dead_letter.
        unreceived: the batches for which a recipient's receipt is still missing.
    """

    hop: Hop
    what: str
    batches: tuple[str, ...]
    unreceived: tuple[str, ...] = ()


def delete_old(
    logs: Logs, deployment: Deployment, epochs: Epochs, listed: datetime | None, now: datetime
) -> Iterator[str]:
    """Delete what the deployment's retention does not keep; yield the name of each deletion.

    A name is CAMPAIGN/BATCH FOLDER, or CAMPAIGN/EPOCH-FINGERPRINT/WINDOW segments.

    Args:
        listed: start of the oldest window with a manifest that no closed window has taken, or None.

    Raises:
        HushcountError: a file cannot be deleted; the next call of this function continues the deletion.
        OSError: the same.
    """
    campaign, keep = epochs.campaign, deployment.file.retention.segments
    for old in _old(deployment, epochs, logs.read(campaign), listed, now):
        log = logs.of(old.hop.party, campaign)
        log.decide(partial(_deleting, old), now)
        for name in old.batches:
            # Meanwhile the log may have been replaced by a log that does not state this deletion.
            if not log.read().is_deleting(old.what, name):
                continue
            done = log.fold.hops_of(name).get(old.hop.name)
            out = deployment.folder(old.hop.folder, campaign, name)
            if old.what != old.hop.folder:
                out = storage.join(out, (done and done.folder) or "", DEAD_LETTERS)
            if not storage.list_objects(out):
                # There are no files, because the operator deleted them, or no dead letters were written.
                continue
            withdraw(out)
            yield f"{campaign}/{name} {old.what}"
        log.decide(partial(_deleted, old), now)
    if keep is not None and deployment.shuffles:
        logs.read(campaign)
        folders = _delete_segments(deployment, logs.of("shuffler", campaign), now - keep)
        if folders:
            gone = Deleted(folder="segments", windows=tuple(folders))
            logs.of("shuffler", campaign).decide(partial(_if_there, gone), now)
        yield from (f"{folder} segments" for folder in folders)


def _old(deployment: Deployment, epochs: Epochs, fold: Fold, listed: datetime | None, now: datetime) -> Iterator[_Old]:
    part, parties, calendar = deployment.file.retention, deployment.file.parties, calendar_of(deployment, fold)
    horizon = min(now, _earliest_needed(fold), listed or _NEVER, _still_long(calendar, fold, now))
    through = _through(deployment, epochs, fold)
    waiting = {(one.hop, one.batch) for one in handed_on(deployment, fold) if one.missing}
    wanted = [(hop, hop.folder, getattr(part, hop.folder)) for hop in HANDED_ON.values()]
    wanted += [(hop, f"{hop.folder}/{DEAD_LETTERS}", part.dead_letters) for hop in CHAIN.values()]
    for hop, what, keep in wanted:
        if hop.party not in parties or keep is None:
            continue
        old = {
            batch.name: end
            for batch in through
            if _has_left(fold, hop, what, batch.name) and not fold.deleted.get(f"{what} {batch.name}")
            if _until(calendar, end := _end(deployment, fold, batch), what, keep) < horizon
        }
        waits = waiting if what == hop.folder else set()
        unreceived = {name for name in old if (hop.name, name) in waits}
        # The time to wait for receipts begins when the output was handed over, which may be long after the window.
        since = {name: max(old[name], fold.hops_of(name)[hop.name].at) for name in unreceived}
        over = {name for name in unreceived if part.at_most is not None and since[name] + part.at_most < horizon}
        if gone := sorted(old.keys() - unreceived | over):
            yield _Old(hop, what, tuple(gone), tuple(sorted(over)))


def _has_left(fold: Fold, hop: Hop, what: str, name: str) -> bool:
    """Return whether a hop wrote an output of a batch, or may have written dead letters if `what` names these."""
    done = fold.hops_of(name).get(hop.name)
    if done is None or done.folder is None:
        return False
    return what == hop.folder or not CURES.keys().isdisjoint(done.counts.rejected)


def _end(deployment: Deployment, fold: Fold, batch: Batch) -> datetime:
    """Return when the window of a batch ended."""
    made = fold.batches.get(batch.name)
    # A party that reads no manifests assumes that the window had the current length.
    if made is not None:
        return made.window.end
    return deployment.windows.tiling.window_at(window_start(batch.window)).end


def _until(calendar: Calendar, end: datetime, what: str, keep: timedelta) -> datetime:
    """Return until when a folder of a batch is kept, if the batch's window ended at the time `end`.

    Shuffled reports are kept as long as late reports may be compared with them. The log's calendar tells how long that
    is, because the deployment file may now state a shorter grace than was in force when the batch was made.
    """
    return max(end + keep, calendar.compared_until(end) if what == CHAIN["shuffle"].folder else end)


def _through(deployment: Deployment, epochs: Epochs, fold: Fold) -> list[Batch]:
    """Return the batches that have passed every hop that runs here."""
    through = []
    for name, finished in fold.done.items():
        batch = fold.named(name)
        campaign = epochs.campaigns.get(batch.file)
        if campaign and finished.keys() >= set(hop_names(campaign, deployment.file.parties)):
            through.append(batch)
    return sorted(through)


def _earliest_needed(fold: Fold) -> datetime:
    """Return the start of the earliest window with reports that are still to be shuffled."""
    undone = [one.oldest for name, one in fold.batches.items() if fold.is_undone(name)]
    return min([*undone, *(segment.window.start for segment in fold.waiting.values())], default=_NEVER)


def _still_long(calendar: Calendar, fold: Fold, now: datetime) -> datetime:
    """Return the begin of the first window that a collector may still hold open with an older, longer length.

    A collector holds such a window open if it was not restarted when windows became shorter.
    """
    newest: dict[str, Window] = {}
    for one in fold.windows.values():
        for collector in one.collectors:
            newest[collector] = max(newest.get(collector, one.window), one.window)
    longer = (one for one in newest.values() if one.length > calendar.at(one.end).tiling.longest)
    return min((one.end for one in longer if now <= calendar.grace_ends(one) + one.length), default=_NEVER)


def _deleting(old: _Old, fold: Fold) -> Decision | None:
    new = tuple(
        name for name in old.batches if old.hop.name in fold.hops_of(name) and not fold.is_deleting(old.what, name)
    )
    unreceived = tuple(name for name in old.unreceived if name in new)
    return Deleting(folder=old.what, batches=new, unreceived=unreceived) if new else None


def _deleted(old: _Old, fold: Fold) -> Decision | None:
    left = tuple(name for name in old.batches if fold.deleted.get(f"{old.what} {name}") is False)
    return Deleted(folder=old.what, batches=left) if left else None


def _if_there(gone: Deleted, fold: Fold) -> Decision | None:
    folders = tuple(f"{folder}/" for folder in gone.windows)
    left = (path for path in fold.files if not path.endswith(SUFFIX))
    return gone if any(path.startswith(folders) for path in left) else None


def _delete_segments(deployment: Deployment, log: Log, before: datetime) -> list[str]:
    """Delete the folders of windows that ended before a moment and have no waiting segment; return their names.

    Manifests are deleted last, because they lead the next run to the files that a killed deletion left; so no log entry
    is needed before a deletion. Half-written files of a killed collector are deleted too.
    """
    root, fold = deployment.folder("segments"), log.fold
    needed = {segment.path for segment in fold.waiting.values()}
    for name, one in fold.batches.items():
        if fold.is_undone(name):
            needed |= {segment.path for segment in one.all_segments}
    ended = {name for name, window in fold.known_windows.items() if window.end < before}
    known, kept = fold.files, {WindowPath.of(path) for path in needed}
    files: dict[WindowPath, list[str]] = defaultdict(list)
    for path in storage.list_objects(storage.join(root, fold.campaign)) if ended else ():
        relative = storage.relative(path, root)
        if fullmatch(_IN_WINDOW, relative):
            files[WindowPath.of(relative)].append(relative)
    gone = []
    for folder, paths in sorted(files.items()):
        # A folder is kept if it has a file that no closed window took, or a segment that waits, even if that segment's
        # file is missing.
        finished = {path for path in paths if not fullmatch(_TEMPORARY, path.rpartition("/")[2])}
        if folder in kept or folder.window not in ended or not known >= finished:
            continue
        if not log.stands():
            raise HushcountError(f"the log of {log.party} was restored while segments were deleted: run again")
        # Segments lie deeper in the folder than manifests, so this order deletes segments first.
        for path in sorted(paths, key=lambda path: (-path.count("/"), path)):
            storage.remove(storage.join(root, path))
        for name in (*ENVELOPES, ""):
            storage.remove_empty(storage.join(root, str(folder), name))
        gone.append(str(folder))
    return gone
