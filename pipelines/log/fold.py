"""The state that results from the logs of a campaign: one frozen value, from which every view is computed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import product

from hushcount.campaigns.campaign import Stream
from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.windows import Window
from hushcount.errors import HushcountError
from pipelines.deployment.settings import Party
from pipelines.handover.hops import HopName
from pipelines.handover.paths import Batch
from pipelines.log.facts import Batched, Collected, Dropped, Head, Hopped, Times
from pipelines.log.segments import Segment

SEGMENT_STATES = ("batched", "waiting", "too_late", "given_up", "quarantined")
"""The states of a segment: in a batch, waiting, dropped, given up with a lost log, or put aside as damaged."""


@dataclass(frozen=True)
class Fold:
    """The contents of the logs on one campaign of all parties that run here.

    Attributes:
        heads: newest entry of each party's log.
        ledger: id of the ledger in which the party charges; None if it has charged nothing yet.
        latest: time of the newest entry that proves a time; None if there is no such entry.
        times: the lengths and graces of windows; empty if the log states none yet.
        closed: every window that ended by this time is closed; None if no window is closed.
        restored: when a new log was begun because entries were lost; None if no entries were ever lost.
        windows: the windows, by name, that have a manifest that was taken, or an entry that closed them.
        waiting: segments that no batch has taken, by path.
        aside: the reason why a waiting segment is put aside, by the segment's path.
        dropped: segments that no batch will take, by path.
        batches: the batches, by name; only the shuffler's log has batches.
        done: the hops of a batch that are done, by the batch's name.
        received: receipts of parties elsewhere, each as "PARTY HOP BATCH".
        deleted: outputs that retention deletes, each as "FOLDER BATCH", and whether the output is completely deleted.
        unreceived: deleted outputs for which a recipient's receipt is missing, each as "FOLDER BATCH".
        told: the changes in alerts that receivers accepted, by window, as `entries.Told.up`; only of the last windows.
    """

    campaign: str
    heads: Mapping[Party, Head] = field(default_factory=dict)
    ledger: str | None = None
    latest: datetime | None = None
    times: tuple[Times, ...] = ()
    closed: datetime | None = None
    restored: datetime | None = None
    windows: Mapping[str, Collected] = field(default_factory=dict)
    waiting: Mapping[str, Segment] = field(default_factory=dict)
    aside: Mapping[str, str] = field(default_factory=dict)
    dropped: Mapping[str, Dropped] = field(default_factory=dict)
    batches: Mapping[str, Batched] = field(default_factory=dict)
    done: Mapping[str, Mapping[HopName, Hopped]] = field(default_factory=dict)
    received: tuple[str, ...] = ()
    deleted: Mapping[str, bool] = field(default_factory=dict)
    unreceived: tuple[str, ...] = ()
    told: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)

    @property
    def known_windows(self) -> dict[str, Window]:
        """The windows in `windows`, by name."""
        return {name: one.window for name, one in self.windows.items()}

    @property
    def files(self) -> set[str]:
        """The paths of all manifests that were taken, and of their segments that are not deleted."""
        return {path for one in self.windows.values() for path in one.files}

    @property
    def made_batches(self) -> list[Batch]:
        """The batches that were not given back, oldest window first."""
        return sorted(one.batch for one in self.batches.values() if not one.given_back)

    def named(self, name: str) -> Batch:
        """Return the batch with a name that the log holds; raises HushcountError if this name is not valid."""
        batch = Batch.named(self.campaign, name)
        if batch is None:
            raise HushcountError(f"the log of {self.campaign} names batch {name}, an invalid name: restore the log")
        return batch

    def hops_of(self, batch: str) -> Mapping[HopName, Hopped]:
        """Return the hops of a batch that are done."""
        return self.done.get(batch, {})

    def streams_of(self, batch: str) -> set[Stream]:
        """Return the streams that the finished hops of a batch counted."""
        return {stream for hop in self.hops_of(batch).values() for stream in hop.counts.streams}

    @property
    def entries(self) -> Iterator[Head]:
        """The entries that say that a hop is done."""
        return (done.entry for hops in self.done.values() for done in hops.values())

    def is_deleting(self, folder: str, batch: str) -> bool:
        """Return whether retention deletes, or has deleted, a batch's part of a folder."""
        return f"{folder} {batch}" in self.deleted

    def is_undone(self, batch: str) -> bool:
        """Return whether a batch is neither given back nor shuffled, so that its segments are needed."""
        return not self.batches[batch].given_back and "shuffle" not in self.hops_of(batch)

    @property
    def _states(self) -> Mapping[tuple[str, Stream], dict[str, int]]:
        found: dict[tuple[str, Stream], Counter[str]] = defaultdict(Counter)
        for path, segment in self.waiting.items():
            state = "quarantined" if path in self.aside else "waiting"
            found[segment.window.name, segment.stream][state] += segment.records
        for one in self.dropped.values():
            found[one.window, one.stream][one.state] += one.reports
        for name, collected in self.windows.items():
            for stream, number in collected.reports.items():
                rest = number - found[name, stream].total()
                if rest:
                    found[name, stream]["batched"] = rest
        return found

    @property
    def counts_by_window(self) -> dict[tuple[str, Stream], dict[str, int]]:
        """The number of collected reports in each state, by window and stream; only states with reports."""
        return {place: dict(sorted(states.items())) for place, states in sorted(self._states.items()) if states}

    @property
    def counts_by_state(self) -> dict[tuple[Stream, str], int]:
        """The number of collected reports of all windows, by stream and state."""
        found: dict[tuple[Stream, str], int] = dict.fromkeys(product(ENVELOPES, SEGMENT_STATES), 0)
        for (_, stream), states in self._states.items():
            for state, number in states.items():
                found[stream, state] += number
        return found


def merged(campaign: str, folds: Sequence[Fold]) -> Fold:
    """Return one fold for the logs of several parties; no two of these logs hold decisions about the same thing."""
    done: dict[str, dict[HopName, Hopped]] = defaultdict(dict)
    for fold in folds:
        for batch, hops in fold.done.items():
            done[batch] |= hops
    moments = [fold.latest for fold in folds if fold.latest is not None]
    (shuffling,) = [fold for fold in folds if "shuffler" in fold.heads] or [Fold(campaign)]
    return replace(
        shuffling,
        heads={party: head for fold in folds for party, head in fold.heads.items()},
        ledger=next((fold.ledger for fold in folds if fold.ledger is not None), None),
        latest=max(moments, default=None),
        done=done,
        received=tuple(one for fold in folds for one in fold.received),
        deleted={what: complete for fold in folds for what, complete in fold.deleted.items()},
        unreceived=tuple(what for fold in folds for what in fold.unreceived),
        told={window: up for fold in folds for window, up in fold.told.items()},
    )
