"""Fold a log, entry by entry: for each kind of decision, check that the log allows it, and change the fold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from hushcount.campaigns.campaign import Stream
from hushcount.collection.manifests import SUFFIX
from hushcount.collection.windows import Window, window_start
from hushcount.errors import FormatError
from hushcount.senders import weakest
from pipelines.deployment.settings import Party
from pipelines.handover.paths import Batch
from pipelines.ledger.stated_charges import noted
from pipelines.log import entries
from pipelines.log.entry_files import Entry
from pipelines.log.facts import Batched, Collected, Dropped, Head, Hopped, Times
from pipelines.log.fold import Fold
from pipelines.log.segments import GIVEN_UP, Segment, segments_of, window_of
from pipelines.outputs.counts import HopCounts
from pipelines.outputs.received_summary import counts_in, made_from_in
from pipelines.outputs.summary import digest_of_json

TOLD_WINDOWS = 8
"""The number of windows whose alerts a fold remembers; no alert compares more windows."""
LOG = "log"
"""The field of a published summary that names the log entry that says that its hop is done."""


def published(summary: dict[str, Any], entry: Head) -> dict[str, Any]:
    """Return a summary as it is published, with the log entry that it comes from."""
    return {**summary, LOG: asdict(entry)}


class Undecidable(Exception):
    """An entry holds a decision that the entries before it do not allow."""


class Effects:
    """The parts of a fold, as collections that can change."""

    def __init__(self, fold: Fold) -> None:
        # Entries replace only single values in this fold; they change collections in the copies below.
        self._fold = fold
        self._windows, self._waiting, self._aside = dict(fold.windows), dict(fold.waiting), dict(fold.aside)
        self._dropped, self._batches = dict(fold.dropped), dict(fold.batches)
        self._done = {batch: dict(hops) for batch, hops in fold.done.items()}
        self._deleted, self._told = dict(fold.deleted), dict(fold.told)

    def fold(self, heads: dict[Party, Head]) -> Fold:
        return replace(
            self._fold,
            heads=heads,
            windows=dict(self._windows),
            waiting=dict(self._waiting),
            aside=dict(self._aside),
            dropped=dict(self._dropped),
            batches=dict(self._batches),
            done={batch: dict(hops) for batch, hops in self._done.items()},
            deleted=dict(self._deleted),
            told=dict(self._told),
        )

    def add(self, entry: Entry, here: Head) -> None:  # noqa: PLR0912  # one branch for each kind
        # An alert may be sent, and may be the first entry of a log, while the clock is far ahead, so the entries of
        # alerts prove no time.
        if not isinstance(entry.decision, entries.Opened | entries.Told):
            # Time stamps that are later than a confirmed clock came from a wrong clock, so they no longer count.
            before = None if isinstance(entry.decision, entries.Confirmed) else self._fold.latest
            self._fold = replace(self._fold, latest=entry.at if before is None else max(before, entry.at))
        match entry.decision:
            case entries.Opened() as opened:
                if opened.campaign != self._fold.campaign:
                    raise Undecidable(f"belongs to campaign {opened.campaign}")
                if opened.restored is not None:
                    self._restore(opened.restored, entry.at, here)
            case entries.Settings() | entries.CalendarSettings() as settings:
                self._set(settings)
            case entries.Closed() as closed:
                self._close(closed, entry.at)
            case entries.Charging() as charging:
                self._fold = replace(self._fold, ledger=charging.ledger)
            case entries.Finished() as finished:
                self._finish(finished, entry.at, here)
            case entries.GivenBack() as back:
                self._require_undone(back.batch, "given back")
                self._give_back(back.batch, self._batches[back.batch].segments.keys())
                self._aside |= back.aside
            case entries.Gone() as gone:
                hops = self._done[gone.batch]
                hops[gone.hop] = replace(hops[gone.hop], gone=True)
            case entries.Received() as received:
                self._receive(received)
            case entries.Deleting() as deleting:
                for batch in deleting.batches:
                    self._deleted.setdefault(f"{deleting.folder} {batch}", False)
                new = tuple(f"{deleting.folder} {batch}" for batch in deleting.unreceived)
                self._fold = replace(self._fold, unreceived=self._fold.unreceived + new)
            case entries.Deleted() as deleted:
                self._delete(deleted)
            case entries.Confirmed():
                pass
            case entries.Told() as told:
                self._told[told.window] = {**self._told.get(told.window, {}), **told.up}
                self._told = dict(sorted(self._told.items())[-TOLD_WINDOWS:])

    def _set(self, settings: entries.Settings | entries.CalendarSettings) -> None:
        begins, before, over = settings.begins, self._fold.times, self._fold.closed
        if begins is None and before:
            raise Undecidable("sets the first windows, which an earlier entry did already")
        if begins is not None:
            if not before or (over is not None and begins < over):
                raise Undecidable(f"changes windows from {begins} on, but later windows are closed already")
            # Earlier settings that begin at `begins` or later no longer apply.
            before = tuple(one for one in before if one.begins is None or one.begins < begins)
        new = Times(begins, settings.tiling, timedelta(seconds=settings.grace))
        # If a change was taken back, two settings in a row are equal, and the second one is left out.
        kept = before[:1] + tuple(one for last, one in pairwise(before) if not one.same(last))
        self._fold = replace(self._fold, times=(*kept, new))

    def _close(self, closed: entries.Closed, at: datetime) -> None:
        start = window_start(closed.window)
        window = Window(start, start + timedelta(seconds=closed.seconds))
        if self._fold.closed is not None and start < self._fold.closed:
            raise Undecidable(f"closes window {closed.window}, which is closed already")
        for manifest in closed.manifests:
            self._take_in(manifest)
        known = self._windows.get(closed.window, Collected(window))
        self._windows[closed.window] = replace(known, closed_at=at)
        self._fold, self._aside = replace(self._fold, closed=window.end), dict(closed.aside)
        for file, streams in closed.batches.items():
            epoch, _, fingerprint = file.partition("-")
            batch = Batch(self._fold.campaign, closed.window, int(epoch), fingerprint)
            taken: dict[Stream, tuple[Segment, ...]] = {
                stream: tuple(self._waiting.pop(path) for path in paths) for stream, paths in streams.items()
            }
            every = [segment for segments in taken.values() for segment in segments]
            self._batches[batch.name] = Batched(
                batch,
                window,
                min([window.start, *(segment.window.start for segment in every)]),
                {stream: sum(one.records for one in segments) for stream, segments in taken.items()},
                taken,
            )
        for path, reason in closed.dropped.items():
            segment = self._waiting.pop(path)
            self._dropped[path] = Dropped(segment.window.name, segment.stream, segment.records, reason)

    def _take_in(self, manifest: entries.TakenManifest) -> None:
        window, segments = window_of(manifest), segments_of(manifest.path, manifest)
        known = self._windows.get(manifest.window, Collected(window))
        if again := {manifest.path, *(segment.path for segment in segments)} & {*known.files}:
            raise Undecidable(f"takes in {min(again)}, which was taken in before")
        self._waiting |= {segment.path: segment for segment in segments}
        reports = dict(known.reports)
        for segment in segments:
            reports[segment.stream] = reports.get(segment.stream, 0) + segment.records
        refused = {
            reason: known.refused.get(reason, 0) + manifest.refused.get(reason, 0)
            for reason in {**known.refused, **manifest.refused}
        }
        name = manifest.collector
        way = weakest([manifest.authentication, known.collectors.get(name, manifest.authentication)])
        self._windows[manifest.window] = Collected(
            # Collectors with different settings may disagree on the length; the window ends when the longest length
            # ends.
            max(known.window, window),
            known.closed_at,
            reports,
            refused,
            {**known.damaged, manifest.path: manifest.damaged} if manifest.damaged else known.damaged,
            {**known.collectors, name: way},
            known.bytes + sum(segment.bytes for segment in segments),
            (*known.files, manifest.path, *(segment.path for segment in segments)),
        )

    def _restore(self, restored: entries.Restored, at: datetime, here: Head) -> None:
        """Give up segments that the lost entries may have counted, and adopt outputs that others may have read."""
        for manifest in restored.manifests:
            self._take_in(manifest)
        for name in [name for name, one in self._batches.items() if "shuffle" not in self._done.get(name, {})]:
            self._give_back(name, self._batches[name].segments.keys())
        for path, segment in self._waiting.items():
            self._dropped[path] = Dropped(segment.window.name, segment.stream, segment.records, GIVEN_UP)
        self._waiting, self._aside = {}, {}
        closed, last = self._fold.closed or restored.through, self._fold.restored or restored.through
        self._fold = replace(self._fold, closed=max(closed, restored.through), restored=max(last, restored.through))
        for adopted in restored.adopted:
            counts = counts_in(adopted.summary, f"entry {here.number}")
            self._done.setdefault(adopted.batch, {})[adopted.hop] = Hopped(
                here,
                at,
                adopted.folder,
                adopted.digest,
                counts,
                made_from_in(adopted.summary, f"entry {here.number}"),
                noted(adopted.summary),
            )
            if adopted.hop == "shuffle":
                collected = {stream: one.received for stream, one in counts.streams.items()}
                self._take_up(adopted.batch, adopted.seconds, collected)
        for held in restored.held:
            nothing = HopCounts.of(held.hop, {})
            self._done.setdefault(held.batch, {})[held.hop] = Hopped(here, at, None, held.summary, nothing, None, None)
            if held.hop == "shuffle":
                self._take_up(held.batch, held.seconds, {})

    def _take_up(self, name: str, seconds: int, collected: Mapping[Stream, int]) -> None:
        """Add a batch whose segments are unknown, because the entry that listed them is lost."""
        batch = self._fold.named(name)
        start = window_start(batch.window)
        window = Window(start, start + timedelta(seconds=seconds))
        self._batches[name] = Batched(batch, window, start, collected, {})

    def _finish(self, finished: entries.Finished, at: datetime, here: Head) -> None:
        hops = self._done.setdefault(finished.batch, {})
        if finished.hop in hops:
            raise Undecidable(f"says that {finished.hop} of batch {finished.batch} is done, but it was done before")
        if finished.hop == "shuffle":
            self._require_undone(finished.batch, "done")
        summary = finished.summary
        counts, charge, digest, made_from = HopCounts.of(finished.hop, {}), None, None, None
        if summary is not None:
            where = f"entry {here.number}"
            counts, made_from, charge = counts_in(summary, where), made_from_in(summary, where), noted(summary)
            digest = digest_of_json(published(summary, here))
        hops[finished.hop] = Hopped(here, at, finished.folder, digest, counts, made_from, charge)
        if finished.hop == "shuffle":
            batch = self._batches[finished.batch]
            self._give_back(finished.batch, batch.segments.keys() - counts.streams.keys())
            self._batches[finished.batch] = replace(self._batches[finished.batch], segments={})

    def _require_undone(self, name: str, what: str) -> None:
        """Raise Undecidable if a batch is already shuffled or given back, because the first decision on it counts."""
        if self._batches[name].given_back or "shuffle" in self._done.get(name, {}):
            raise Undecidable(f"says that batch {name} is {what}, but an earlier entry decided on that batch")

    def _give_back(self, name: str, streams: Iterable[Stream]) -> None:
        """Let a batch's segments of these streams wait again; a batch with no other streams counts as given back."""
        batch, left = self._batches[name], set(streams)
        for stream in left:
            self._waiting |= {segment.path: segment for segment in batch.segments[stream]}
        kept = {stream: segments for stream, segments in batch.segments.items() if stream not in left}
        collected = {stream: number for stream, number in batch.collected.items() if stream not in left}
        self._batches[name] = replace(batch, segments=kept, collected=collected, given_back=not kept)

    def _receive(self, received: entries.Received) -> None:
        for batch in received.batches:
            # This line raises KeyError if no output was handed on.
            _ = self._done[batch][received.hop]
        new = (f"{received.party} {received.hop} {batch}" for batch in received.batches)
        known = self._fold.received
        self._fold = replace(self._fold, received=known + tuple(sorted({*new} - {*known})))

    def _delete(self, deleted: entries.Deleted) -> None:
        for batch in deleted.batches:
            self._deleted[f"{deleted.folder} {batch}"] = True
        gone = tuple(f"{folder}/" for folder in deleted.windows)
        for name, window in self._windows.items() if gone else ():
            # A deleted manifest may come back from a backup; its path is kept, so that it is not counted again.
            left = tuple(path for path in window.files if path.endswith(SUFFIX) or not path.startswith(gone))
            if left != window.files:
                self._windows[name] = replace(window, files=left)


@dataclass
class Folding:
    """Adds entries to a fold; folds that were returned earlier do not change."""

    party: Party
    campaign: str
    head: Head = field(default_factory=Head)
    _fold: Fold | None = None

    def __post_init__(self) -> None:
        self._state = Effects(Fold(self.campaign) if self._fold is None else self._fold)

    @property
    def fold(self) -> Fold:
        """The fold of the entries that were added so far."""
        if self._fold is None:
            self._fold = self._state.fold({self.party: self.head})
        return self._fold

    def add(self, entry: Entry) -> None:
        """Add the next entry.

        Raises:
            FormatError: the entry does not follow the entry before it, or the log does not allow its decision. The
                entry may have been added in part, so do not use this object any more.
        """
        head, opened = self.head, entry.decision
        restored = opened.restored if isinstance(opened, entries.Opened) else None
        if restored is not None and (restored.generation, restored.number, restored.entry) == astuple(head):
            # The new entry begins a log that replaces the log read so far.
            head = Head(head.generation + 1, 0, head.digest)
        if (entry.number, entry.before) != (head.number + 1, head.digest):
            raise FormatError(
                f"entry {entry.number} of the log of {self.party} and {self.campaign} does not follow entry "
                f"{head.number}: something else wrote into the log; restore it"
            )
        where = f"entry {entry.number} of the log of {self.party} and {self.campaign}"
        if isinstance(entry.decision, entries.Opened) and entry.decision.party != self.party:
            raise FormatError(f"{where} belongs to {entry.decision.party}: restore the log")
        here = Head(head.generation, entry.number, entry.digest)
        try:
            self._state.add(entry, here)
        except KeyError as error:
            raise FormatError(
                f"{where} is about {error.args[0]!a}, which no earlier entry names: restore the log"
            ) from None
        except Undecidable as error:
            raise FormatError(f"{where} {error}: restore the log") from None
        self.head, self._fold = here, None
