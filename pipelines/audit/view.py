"""What the audit looks at: a deployment, one of its campaigns, the state and the store, at one moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

from sqlalchemy import Connection, Row, Select, Table, func, select

from hushcount.campaigns.campaign import Stream
from hushcount.collection.windows import Window, window_start
from hushcount.errors import HushcountError
from hushcount.formats.reading import parse_object
from pipelines.batches.rows import closed_windows, known_windows
from pipelines.batches.state import HOPS, MANIFESTS, SEGMENTS
from pipelines.batches.waiting import stored_segments
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.handover.names import SegmentPath

Verdict = Literal["good", "warning", "bad"]


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes:
        name: of the thing that was checked.
        verdict: good; warning: it will be bad soon; bad.
        sentence: what was found. An error of ours says its own cure.
        cure: what to do unless it is good.
    """

    name: str
    verdict: Verdict
    sentence: str
    cure: str = ""

    @property
    def says(self) -> str:
        """The sentence, with the cure if one is needed."""
        return f"{self.sentence}: {self.cure}" if self.cure and self.verdict != "good" else self.sentence


@dataclass(frozen=True)
class StreamRow:
    """What one job counted of one batch's stream; `rejected` by reason. As the state has it: it may not add up."""

    batch: str
    hop: str
    stream: Stream
    received: int
    accepted: int
    rejected: dict[str, int]


@dataclass(frozen=True)
class View:
    """A deployment at one moment. Each part of it is read once, by the first check that needs it.

    Attributes:
        deployment: its settings and store.
        now: the present.
        campaigns: its valid campaigns, with their files.
        faults: what is wrong with each other campaign.
        connection: to a snapshot of the state; None: the state is not open.
        one: the campaign that is looked at; None: the deployment as a whole.
    """

    deployment: Deployment
    now: datetime
    campaigns: Sequence[Epochs] = ()
    faults: Mapping[str, str] = field(default_factory=dict)
    connection: Connection | None = None
    one: Epochs | None = None

    def each(self) -> Iterator[View]:
        """Yield a view of each campaign."""
        return (replace(self, one=epochs) for epochs in self.campaigns)

    @property
    def epochs(self) -> Epochs:
        """Of the campaign that is looked at."""
        if self.one is None:
            raise HushcountError("a check of one campaign was given none: report this bug")
        return self.one

    @property
    def state(self) -> Connection:
        """The snapshot of the state."""
        if self.connection is None:
            raise HushcountError("a check of the state was made without it: report this bug")
        return self.connection

    @property
    def campaign(self) -> str:
        """Id of the campaign."""
        return self.epochs.campaign

    @property
    def shuffles(self) -> bool:
        """Whether the shuffler runs here: no other party knows of segments and manifests."""
        return "shuffler" in self.deployment.file.parties

    @cached_property
    def windows(self) -> dict[str, Window]:
        """The known windows, by name."""
        return known_windows(self.state, self.campaign)

    @cached_property
    def _closed(self) -> set[str]:
        return closed_windows(self.state, self.campaign)

    def rows(self, query: Select[Any], table: Table) -> Sequence[Row[Any]]:
        """Return the campaign's rows of a table."""
        return self.state.execute(query.where(table.c.campaign == self.campaign)).all()

    @cached_property
    def manifests(self) -> Sequence[Row[Any]]:
        """The rows of all registered manifests, oldest window first."""
        return self.rows(select(MANIFESTS).order_by(MANIFESTS.c.window, MANIFESTS.c.path), MANIFESTS)

    @cached_property
    def sums(self) -> Sequence[Row[Any]]:
        """The `records` of all segments, added up by window, stream, state and batch."""
        by = (SEGMENTS.c.window, SEGMENTS.c.stream, SEGMENTS.c.state, SEGMENTS.c.batch)
        return self.rows(select(*by, func.sum(SEGMENTS.c.records).label("records")).group_by(*by), SEGMENTS)

    @cached_property
    def hops(self) -> Sequence[Row[Any]]:
        """The rows of all hops that have run, by batch."""
        return self.rows(select(HOPS).order_by(HOPS.c.batch), HOPS)

    @cached_property
    def counts(self) -> dict[str, dict[str, dict[Stream, StreamRow]]]:
        """What each hop counted, by batch, hop and stream."""
        found: dict[str, dict[str, dict[Stream, StreamRow]]] = defaultdict(dict)
        for row in self.hops:
            streams = parse_object(row.counts.encode(), "state")["streams"]
            found[row.batch][row.hop] = {
                name: StreamRow(row.batch, row.hop, name, part["received"], part["accepted"], part["rejected"])
                for name, part in streams.items()
            }
        return found

    @cached_property
    def rescued(self) -> list[tuple[str, str, int]]:
        """Batch, hop and number where libsodium opened reports that the lanes had not, in each hop's newest batch.

        What happened before says nothing of the machine that opens now.
        """
        numbers = []
        for row in {row.hop: row for row in self.hops}.values():
            opening = parse_object(row.counts.encode(), "state").get("opening") or {}
            if number := opening.get("rescued", 0):
                numbers.append((row.batch, row.hop, number))
        return numbers

    @cached_property
    def stored(self) -> dict[SegmentPath, int]:
        """The bytes of every segment in the store."""
        return dict(stored_segments(self.deployment, self.campaign))

    @cached_property
    def unlisted(self) -> dict[SegmentPath, int]:
        """Those of them that no registered manifest lists."""
        listed = {path for (path,) in self.rows(select(SEGMENTS.c.path), SEGMENTS)}
        return {segment: size for segment, size in self.stored.items() if str(segment) not in listed}

    def is_over(self, window: str) -> bool:
        """Return whether the manifests of a window should be there; raises ValueError if it is not a window's name."""
        times = self.deployment.windows
        return window in self._closed or window_start(window) + times.length + times.patience < self.now
