"""What the logs of a campaign come to: one frozen value, from which all that looks at a deployment is computed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product
from typing import Any, Literal

from hushcount.campaigns.campaign import Stream
from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.windows import Window
from hushcount.errors import HushcountError
from hushcount.senders import Authentication
from pipelines.deployment.settings import Party
from pipelines.handover.names import Batch
from pipelines.log.closing import GIVEN_UP, Segment
from pipelines.log.hops import HopName
from pipelines.outputs.counts import HopCounts

SEGMENT_STATES = ("batched", "waiting", "too_late", "given_up", "quarantined")
"""What became of a segment: in a batch, waiting, dropped, given up with a lost log, or put aside as damaged."""


@dataclass(frozen=True)
class Head:
    """The newest entry of a log, or one that something speaks of: its number in its generation, and digest.

    Attributes:
        generation: 1; each log that replaces a lost one has the next.
        number: 0: the log is empty.
    """

    generation: int = 1
    number: int = 0
    digest: str | None = None


@dataclass(frozen=True)
class Hopped:
    """A hop that is done.

    Attributes:
        entry: that says so.
        at: when that was put.
        folder: of the attempt; None: the hop had nothing to read, and wrote nothing.
        summary: digest of the summary as it is published; None without one.
        counts: what it counted; no streams if it had nothing to read.
        made_from: digest of the summary of what it read; None: it read none.
        charge: what the summary says of its charge, as `pipelines.ledger.proofs.noted`; None: nothing was charged.
        gone: whether its files were found missing.
    """

    entry: Head
    at: datetime
    folder: str | None
    summary: str | None
    counts: HopCounts
    made_from: str | None
    charge: Mapping[str, Any] | None
    gone: bool = False

    @property
    def is_adopted(self) -> bool:
        """Whether its log was lost, and the one that replaced it took the output up."""
        return self.entry.number == 1


@dataclass(frozen=True)
class Batched:
    """A batch that a closing window made.

    Attributes:
        window: at whose end it was made.
        oldest: start of the oldest window with a segment in it.
        collected: reports, by stream; without those that went back to wait.
        segments: by stream, until it is shuffled; then empty.
        given_back: whether all its segments went back.
    """

    batch: Batch
    window: Window
    oldest: datetime
    collected: Mapping[Stream, int]
    segments: Mapping[Stream, tuple[Segment, ...]]
    given_back: bool = False

    @property
    def all_segments(self) -> list[Segment]:
        return [segment for segments in self.segments.values() for segment in segments]


@dataclass(frozen=True)
class Collected:
    """What collectors stored of one window, as far as closed windows took it in.

    Attributes:
        closed_at: when the window was closed; None: it was not, or as an empty one before another.
        reports: by stream.
        refused: requests refused at the door, by reason.
        damaged: damaged stretches of journals, by the path of the manifest that says so.
        collectors: who wrote a manifest, and the weakest way in which each told clients apart.
        bytes: of its segments.
        files: its manifests and segments, by their paths in the folder of segments; only manifests once all is deleted.
    """

    window: Window
    closed_at: datetime | None = None
    reports: Mapping[Stream, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    damaged: Mapping[str, int] = field(default_factory=dict)
    collectors: Mapping[str, Authentication] = field(default_factory=dict)
    bytes: int = 0
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dropped:
    """Why the reports of a segment are in no result."""

    window: str
    stream: Stream
    reports: int
    reason: str

    @property
    def state(self) -> Literal["too_late", "given_up"]:
        """What became of its segment."""
        return "given_up" if self.reason == GIVEN_UP else "too_late"


@dataclass(frozen=True)
class Outgoing:
    """An alert that was noted, and what became of it.

    Attributes:
        kind: of the alert.
        standing: whether what it says is still so.
        body: what is sent; empty once it was sent or given up.
        state: pending: it is to be sent at `next_at`.
        attempts: that ended, and `failure` of the last one; empty if it did not fail.
        began, settled: when it was noted; when it was sent or given up.
    """

    id: str
    kind: str
    subject: str
    fact: str
    body: str
    began: datetime
    standing: bool = True
    state: Literal["pending", "sent", "given_up"] = "pending"
    attempts: int = 0
    failure: str = ""
    next_at: datetime | None = None
    settled: datetime | None = None


@dataclass(frozen=True)
class Fold:
    """What the logs of the parties here say of one campaign.

    Attributes:
        heads: newest entry of each party's log.
        ledger: id of the ledger in which the party charges; None: it has charged nothing yet.
        latest: when the newest entry was put that proves a time; None: there is none.
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
        alerts: by id.
    """

    campaign: str
    heads: Mapping[Party, Head] = field(default_factory=dict)
    ledger: str | None = None
    latest: datetime | None = None
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
    alerts: Mapping[str, Outgoing] = field(default_factory=dict)

    @property
    def known_windows(self) -> dict[str, Window]:
        """The windows that were taken in or closed, by name."""
        return {name: one.window for name, one in self.windows.items()}

    @property
    def closed_windows(self) -> set[str]:
        """The names of those that are closed."""
        over = self.closed
        return {
            name
            for name, one in self.windows.items()
            if one.closed_at is not None or (over is not None and one.window.end <= over)
        }

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
    def analyzed(self) -> set[Batch]:
        """The batches of which frequency reports were counted: those have a tally."""
        named = (name for name, hops in self.done.items() if "analyze" in hops and hops["analyze"].counts.accepted)
        return {batch for name in named if (batch := Batch.named(self.campaign, name)) is not None}

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
    return Fold(
        campaign,
        heads={party: head for fold in folds for party, head in fold.heads.items()},
        ledger=next((fold.ledger for fold in folds if fold.ledger is not None), None),
        latest=max(moments, default=None),
        closed=shuffling.closed,
        restored=shuffling.restored,
        windows=shuffling.windows,
        waiting=shuffling.waiting,
        aside=shuffling.aside,
        dropped=shuffling.dropped,
        batches=shuffling.batches,
        done=done,
        received=tuple(one for fold in folds for one in fold.received),
        deleted={what: complete for fold in folds for what, complete in fold.deleted.items()},
        unreceived=tuple(what for fold in folds for what in fold.unreceived),
        alerts={id: one for fold in folds for id, one in fold.alerts.items()},
    )
