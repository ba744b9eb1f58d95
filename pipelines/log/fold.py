"""What the logs of a campaign come to: one frozen value, from which all that looks at a deployment is computed."""

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
"""What became of a segment: in a batch, waiting, dropped, given up with a lost log, or put aside as damaged."""


@dataclass(frozen=True)
class Fold:
    """What the logs of the parties here say of one campaign.

    Attributes:
        heads: newest entry of each party's log.
        ledger: id of the ledger in which the party charges; None: it has charged nothing yet.
        latest: when the newest entry was put that proves a time; None: there is none.
        times: the lengths and graces of windows; empty: the log has none yet.
        closed: every window that ended by then is closed; None: none is.
        restored: when the log was begun anew because entries of it were lost; None: it never was.
        windows: with a manifest that was taken in, or closed by an entry of their own; by name.
        waiting: segments that no batch has taken, by path.
        aside: why some of these are put aside, by path.
        dropped: segments that no batch takes any more, by path.
        batches: by name; of the shuffler only.
        done: the hops of a batch that are done, by its name.
        received: of which outputs which parties elsewhere left a receipt, as "PARTY HOP BATCH".
        deleted: what retention deletes, as "FOLDER BATCH", and whether all of it is gone.
        unreceived: those of them that went without the receipts of all recipients.
        told: what changed and was told, by window, as `entries.Told.up`; of the last windows of which anything was.
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
        """The windows that were taken in or closed, by name."""
        return {name: one.window for name, one in self.windows.items()}

    @property
    def files(self) -> set[str]:
        """The manifests that were taken in and their segments, without deleted ones."""
        return {path for one in self.windows.values() for path in one.files}

    @property
    def made_batches(self) -> list[Batch]:
        """The batches that stand, oldest window first."""
        return sorted(one.batch for one in self.batches.values() if not one.given_back)

    def named(self, name: str) -> Batch:
        """Return the batch of a name that the log has; HushcountError: no batch can have it."""
        batch = Batch.named(self.campaign, name)
        if batch is None:
            raise HushcountError(f"the log of {self.campaign} speaks of batch {name}, which is none: restore the log")
        return batch

    def hops_of(self, batch: str) -> Mapping[HopName, Hopped]:
        """Return the hops of a batch that are done."""
        return self.done.get(batch, {})

    def streams_of(self, batch: str) -> set[Stream]:
        """Return the streams that the finished hops of a batch counted."""
        return {stream for hop in self.hops_of(batch).values() for stream in hop.counts.streams}

    @property
    def entries(self) -> Iterator[Head]:
        """The entries by which hops are done."""
        return (done.entry for hops in self.done.values() for done in hops.values())

    def is_deleting(self, folder: str, batch: str) -> bool:
        """Return whether retention deletes, or has deleted, a batch's part of a folder."""
        return f"{folder} {batch}" in self.deleted

    def is_undone(self, batch: str) -> bool:
        """Return whether a batch stands and is not shuffled: its segments are needed."""
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
        """The collected reports by window and stream, and their number in each state; only states that have any."""
        return {place: dict(sorted(states.items())) for place, states in sorted(self._states.items()) if states}

    @property
    def counts_by_state(self) -> dict[tuple[Stream, str], int]:
        """How many collected reports are in which state, by stream and state, of all windows."""
        found: dict[tuple[Stream, str], int] = dict.fromkeys(product(ENVELOPES, SEGMENT_STATES), 0)
        for (_, stream), states in self._states.items():
            for state, number in states.items():
                found[stream, state] += number
        return found


def merged(campaign: str, folds: Sequence[Fold]) -> Fold:
    """Return what the logs of several parties say together: no two of them decide about the same thing."""
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
