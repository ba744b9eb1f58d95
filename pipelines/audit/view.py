"""What the audit looks at: a campaign, its rows of the state and its files in the store, at one moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

from sqlalchemy import Connection, Row, Select, Table, func, select

from hushcount.collection.windows import Window, window_start
from hushcount.formats.reading import parse_object
from pipelines.batches.rows import closed_windows, known_windows
from pipelines.batches.state import HOPS, MANIFESTS, SEGMENTS
from pipelines.batches.waiting import stored_segments
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment

Verdict = Literal["good", "warning", "bad"]


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes:
        name: of the thing that was checked.
        verdict: good; warning: it will be bad soon; bad.
        sentence: what was found. An error of ours says its own cure.
        cure: what to do where it is not good.
    """

    name: str
    verdict: Verdict
    sentence: str
    cure: str = ""

    @property
    def says(self) -> str:
        """The sentence, with the cure where one is needed."""
        return f"{self.sentence}: {self.cure}" if self.cure and self.verdict != "good" else self.sentence


@dataclass(frozen=True)
class View:
    """One campaign of a deployment at one moment. Each part of it is read once, by the first check that needs it.

    Attributes:
        deployment: whose settings and store they are.
        epochs: of the campaign, with its files.
        state: connection to a snapshot of the state.
        now: the present.
    """

    deployment: Deployment
    epochs: Epochs
    state: Connection
    now: datetime

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
        """The windows that are known, by name."""
        return known_windows(self.state, self.campaign)

    @cached_property
    def _closed(self) -> set[str]:
        return closed_windows(self.state, self.campaign)

    def _rows(self, query: Select[Any], table: Table) -> Sequence[Row[Any]]:
        return self.state.execute(query.where(table.c.campaign == self.campaign)).all()

    @cached_property
    def manifests(self) -> Sequence[Row[Any]]:
        """The rows of all registered manifests, oldest window first."""
        return self._rows(select(MANIFESTS).order_by(MANIFESTS.c.window, MANIFESTS.c.path), MANIFESTS)

    @cached_property
    def sums(self) -> Sequence[Row[Any]]:
        """The `records` of all segments, added up by window, stream, state and batch."""
        by = (SEGMENTS.c.window, SEGMENTS.c.stream, SEGMENTS.c.state, SEGMENTS.c.batch)
        return self._rows(select(*by, func.sum(SEGMENTS.c.records).label("records")).group_by(*by), SEGMENTS)

    @cached_property
    def counts(self) -> dict[str, dict[str, Any]]:
        """What each hop counted of each stream, by batch and hop: as the state has it, which may not add up."""
        found: dict[str, dict[str, Any]] = defaultdict(dict)
        for row in self._rows(select(HOPS).order_by(HOPS.c.batch), HOPS):
            found[row.batch][row.hop] = parse_object(row.counts.encode(), "state")["streams"]
        return found

    @cached_property
    def stored(self) -> dict[str, int]:
        """The bytes of every segment in the store, by its path in the folder of segments."""
        return {str(segment): size for segment, size in stored_segments(self.deployment, self.campaign)}

    @cached_property
    def unlisted(self) -> dict[str, int]:
        """Those of them that no registered manifest lists."""
        listed = {path for (path,) in self._rows(select(SEGMENTS.c.path), SEGMENTS)}
        return {path: size for path, size in self.stored.items() if path not in listed}

    def is_over(self, window: str) -> bool:
        """Return whether the manifests of a window should be there; raises ValueError if it is not a window's name."""
        times = self.deployment.windows
        return window in self._closed or window_start(window) + times.length + times.patience < self.now
