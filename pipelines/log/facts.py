"""What a fold holds of entries, windows, segments, batches and hops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from hushcount.campaigns.campaign import Stream
from hushcount.collection.windows import Window
from hushcount.senders import Authentication
from pipelines.handover.paths import Batch
from pipelines.log.segments import GIVEN_UP, Segment
from pipelines.outputs.counts import HopCounts


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

    def is_named(self, entry: Head) -> bool:
        """Return whether something that names an entry, perhaps by the first digits of its digest, names this one."""
        return (entry.generation, entry.number) == (self.generation, self.number) and (self.digest or "").startswith(
            entry.digest or ""
        )


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
        charge: what the summary says of its charge, as `stated_charges.noted` has it; None: nothing was charged.
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
class Times:
    """What windows are from a moment on.

    Attributes:
        begins: when the first of them does; None: there were none before.
        length, grace: as in the deployment file.
    """

    begins: datetime | None
    length: timedelta
    grace: timedelta

    def same(self, other: Times) -> bool:
        """Return whether windows are the same, whenever they begin."""
        return (self.length, self.grace) == (other.length, other.grace)


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
