"""The campaigns that a server has computed: each is computed once for all readers, and anew when its results change."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from hushcount.clock import Clock
from pipelines.audit.view import View
from pipelines.deployment.campaigns import campaign_names, read_campaign
from pipelines.deployment.settings import Deployment
from pipelines.epochs.tracked_items import ITEMS_FILE
from pipelines.handover.hops import outputs
from pipelines.monitoring.dashboard import health_of, lead_of, panel_of, titled
from pipelines.monitoring.known import Known
from pipelines.pages.figures import Panel, Served, Trend
from pipelines.pages.series import Grain, Series
from pipelines.questions.spans import Span

PATH = "/campaigns/"
_KEY = "campaign-0"
_STATE_AGE = timedelta(minutes=10)
"""How old the state of the jobs may be on a page; results are never older than their version."""
_MOST_BYTES = 1 << 30
_AT_ONCE = 2
"""How many campaigns are computed at one time."""


@dataclass(frozen=True, eq=False)
class Made:
    """A campaign at one moment: its page, and what the page and programs get beside it."""

    version: str
    at: datetime
    panel: Panel
    html: bytes
    known: Known

    @property
    def all_series(self) -> Mapping[Grain, Series]:
        """The estimates of all items, by grain; empty: the campaign counts no named items, or has no results."""
        return _series(self.panel)

    @property
    def series(self) -> Series | None:
        """The estimates of all items in all windows."""
        return self.all_series.get("window")

    @property
    def pieces(self) -> str:
        """A short name of the numbers in the pieces, which a browser keeps for good."""
        return _pieces(self.all_series)

    @property
    def bytes(self) -> int:
        """About the memory that it takes."""
        # The rows of the panel are about as large as their HTML.
        series = sum(3 * one.count.nbytes + one.found.nbytes for one in self.all_series.values())
        return 2 * len(self.html) + self.known.bytes + series


class Campaigns:
    """Computes campaigns in threads: a campaign once at a time, others beside it; the least used are forgotten."""

    def __init__(self, deployment: Deployment, clock: Clock, span: Span) -> None:
        self.deployment = deployment
        self._clock, self._span = clock, span
        self._made: OrderedDict[str, Made] = OrderedDict()
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        # Threads of their own, so that slow campaigns leave others for what is quick.
        self._slow = ThreadPoolExecutor(_AT_ONCE, "campaign")

    def names(self) -> list[str]:
        """Return the names of the deployment's campaigns."""
        return campaign_names(self.deployment.campaigns)

    async def version(self, name: str) -> str:
        """Return a short name of the results that the campaign has now; no result is read."""
        return await asyncio.to_thread(_version, self.deployment, name)

    async def made(self, name: str) -> Made:
        """Return the campaign, computed from the results that it has now; UsageError: it cannot be read."""
        async with self._locks[name]:
            version, made = await self.version(name), self._made.get(name)
            if made is None or made.version != version or self._clock.now() - made.at > _STATE_AGE:
                make = partial(_made, self.deployment, name, version, self._clock.now(), self._span, made)
                made = await asyncio.get_running_loop().run_in_executor(self._slow, make)
            self._made[name] = made
            self._made.move_to_end(name)
        while len(self._made) > 1 and sum(one.bytes for one in self._made.values()) > _MOST_BYTES:
            self._made.popitem(last=False)
        return made


def _series(panel: Panel) -> Mapping[Grain, Series]:
    return next((block.series for block in panel.blocks if isinstance(block, Trend)), {})


def _pieces(all_series: Mapping[Grain, Series]) -> str:
    return hashlib.sha256(b"".join(one.digest for one in all_series.values())).hexdigest()[:16]


def _version(deployment: Deployment, name: str) -> str:
    listed = "\n".join(path for _, path in outputs(deployment, "results", name)).encode()
    tracked = deployment.campaigns / name / ITEMS_FILE
    return hashlib.sha256(listed + (tracked.read_bytes() if tracked.exists() else b"")).hexdigest()[:16]


def _made(deployment: Deployment, name: str, version: str, now: datetime, span: Span, before: Made | None) -> Made:
    """Return the campaign; of `before`, its older self, what still holds is not computed again."""
    (view,) = View(deployment, now, [read_campaign(deployment.campaigns / name)]).each()
    if before is not None and before.version == version:
        # Only the state of the jobs is old.
        health, known = health_of(view, _KEY, span), before.known
        panel = replace(before.panel, blocks=(*before.panel.blocks[: -len(health)], *health))
    else:
        panel, shown = panel_of(view, _KEY, span, None if before is None else before.known)
        known = Known() if shown is None else shown.known
    served = Served(f"{PATH}{name}", version, f"{PATH}{name}/pieces/{_pieces(_series(panel))}")
    page = titled(deployment, [lead_of(now, span)], [panel], served)
    return Made(version, now, panel, page.encode(), known)
