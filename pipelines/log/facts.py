"""The facts in a fold, about entries, windows, segments, batches and hops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from hushcount.campaigns.campaign import Stream
from hushcount.collection.tilings import Tiling
from hushcount.collection.windows import Window
from hushcount.senders import Authentication
from pipelines.handover.paths import Batch
from pipelines.log.segments import GIVEN_UP, Segment
from pipelines.outputs.counts import HopCounts


@dataclass(frozen=True)
class Head:
    """The newest entry of a log, or an entry that another file names, by its generation, number and digest.

    Attributes:
        generation: 1 for the first log of a campaign; a log that replaces a lost log has the next number.
        number: number of the entry in its generation; 0 if the log is empty.
    """

    generation: int = 1
    number: int = 0
    digest: str | None = None

    def is_named(self, entry: Head) -> bool:
        """Return whether `entry` names this entry; `entry` may hold only the first digits of the digest."""
        return (entry.generation, entry.number) == (self.generation, self.number) and (self.digest or "").startswith(
            entry.digest or ""
        )


@dataclass(frozen=True)
class Hopped:
    """A hop that is done.

    Attributes:
        entry: the log entry that says that the hop is done.
        at: when the entry in `entry` was put.
        folder: folder of the attempt; None if the hop had nothing to read, and so wrote nothing.
        summary: digest of the published summary; None if there is no summary.
        counts: the hop's counts; without streams if the hop had nothing to read.
        made_from: digest of the summary of the hop's input; None if the hop read no summary.
        charge: the charge in the summary, from `stated_charges.noted`; None if nothing was charged.
        gone: whether an entry says that the output's files are missing.
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
        """Whether this output was adopted by a log that replaced a lost log."""
        return self.entry.number == 1


@dataclass(frozen=True)
class Batched:
    """A batch that a closing window made.

    Attributes:
        window: the window that made the batch when it closed.
        oldest: start of the oldest window with a segment in the batch.
        collected: number of reports, by stream; without streams that were given back to wait for a later batch.
        segments: the segments, by stream, until the batch is shuffled; afterwards empty.
        given_back: whether all segments of the batch wait again.
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
    """The tiling and grace of windows from the moment `begins` on.

    Attributes:
        begins: when the first of these windows begins; None if there were no windows before.
        tiling, grace: as in the deployment file.
    """

    begins: datetime | None
    tiling: Tiling
    grace: timedelta

    def same(self, other: Times) -> bool:
        """Return whether other settings have the same tiling and grace."""
        return (self.tiling, self.grace) == (other.tiling, other.grace)


@dataclass(frozen=True)
class Collected:
    """The reports that collectors stored in one window, by the manifests that closed windows took.

    Attributes:
        closed_at: when an entry closed this window; None if the window is open, or is closed only because a later
            window was closed.
        reports: number of reports, by stream.
        refused: requests that collectors refused, by reason.
        damaged: damaged stretches of journals, by the path of the manifest that reports them.
        collectors: each collector that wrote a manifest, and the weakest way in which this collector told clients
            apart.
        bytes: total bytes of the segments.
        files: paths of manifests and segments in the folder of segments; only of manifests once the segments are
            deleted.
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
    """A segment with reports that are in no result, and the reason."""

    window: str
    stream: Stream
    reports: int
    reason: str

    @property
    def state(self) -> Literal["too_late", "given_up"]:
        """The state of the segment."""
        return "given_up" if self.reason == GIVEN_UP else "too_late"
