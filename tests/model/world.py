"""A world: one operator's store, ledger, keys and clock, collectors that put reports there, and real runs.

Only two things are not real: Beam's engine (`plain_engine.py`) and the clock.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.clock import MACHINE
from hushcount.collection.windows import Window
from hushcount.errors import HushcountError
from pipelines.deployment.settings import Deployment
from pipelines.engine import runner as runner_module
from pipelines.files import leases, storage
from pipelines.jobs import shuffle
from pipelines.ledger import runs
from pipelines.log import log
from pipelines.log.log import Logs
from pipelines.schedule.done import Done
from pipelines.schedule.run import run
from pipelines.schedule.work import NOTHING, Vouched
from tests.model.made import BEGIN, Settings, made
from tests.model.points import Answer, Killed, Points, Process
from tests.model.timeline import Followed, Timeline
from tests.support import plain_engine
from tests.support.clocks import stopped
from tests.support.collecting import DAY
from tests.support.stub_store import StubStore

IN_A_STORE = "stub://model/store"


@dataclass(frozen=True)
class Kind:
    """What kind of world it is.

    Attributes:
        remote: whether its store has objects only.
        retention: what is deleted when its time is over; "": nothing.
        apart: whether the shuffler has a deployment of its own, and the parties that read what it hands on another.
        grace: in days: of so many windows that are due the batches go through one graph.
    """

    remote: bool = False
    retention: str = ""
    apart: bool = False
    grace: int = 1


@dataclass
class Sent:
    """A segment of reports that a collector acknowledged.

    Attributes:
        window: in which they came.
        paths: by stream.
        content: bytes of its files, by path.
        sealed: digests of its reports, by stream.
        copied: whether clients sent them again.
    """

    window: Window
    paths: dict[Stream, str]
    content: dict[str, bytes]
    sealed: dict[Stream, set[bytes]]
    copied: bool = False


@dataclass(frozen=True)
class Acknowledged:
    """A file of a segment.

    Attributes:
        came: when the store had its manifest, in truth.
        stamped: the same, as the file is stamped.
    """

    window: Window
    stream: Stream
    reports: int
    came: datetime
    stamped: datetime


@dataclass
class World:
    """See the module.

    Attributes:
        root: of its local files.
        kind: of world.
        points: where runs may be interrupted.
        day: the true time, in days.
        wrong: by how many days the clock of the next run is wrong.
        store_wrong: by how many the clock of a store of objects is.
        serial: of collectors.
        settings: what the deployment file says.
        collecting: windows of the collectors that were started anew after the last change.
        left: those of collectors that were not; None: all were.
        followed: what runs took up of them.
        ends: when the windows ended that the log closed, by name.
        closed_at: when that was first seen.
        sent: what collectors acknowledged.
        acknowledged: each segment, copies too, by path.
        gone: outputs, or their summaries, that somebody deleted and nobody restored yet, with what they held, by path.
        old_ledger: whether the ledger is an older copy, and no run has come to its end since.
        unmarked: outputs of which somebody deleted the summary, before the next run came to its end.
        harmed: segments that somebody damaged, and that are not restored yet, with how, by path.
        once_harmed: those that were.
        restored: whether the ledger was ever restored or lost.
        log_restored: whether the logs ever were.
        logs_then: the files of the logs as they were last night, by path.
        unread: streams of what was handed on that nobody left a receipt of, by place.
        limited_then: the limit of the ledger's copy.
        lost_keys: key files that are damaged or away, with what they hold.
        retired: whose key was destroyed for good.
        limited: the limit that was set, as (epsilon, days).
        last: what the last run did, and whether it came to its end.
        began: when it began, and by when all windows had closed then.
        said: sentences of all runs.
    """

    root: Path
    kind: Kind
    points: Points
    day: float = 0.0
    wrong: float = 0.0
    store_wrong: float = 0.0
    settings: Settings = field(default_factory=Settings)
    left: Timeline | None = None
    followed: Followed = field(default_factory=Followed)
    ends: dict[str, datetime] = field(default_factory=dict)
    closed_at: dict[str, datetime] = field(default_factory=dict)
    sent: list[Sent] = field(default_factory=list)
    acknowledged: dict[str, Acknowledged] = field(default_factory=dict)
    gone: dict[str, dict[str, bytes]] = field(default_factory=dict)
    unmarked: set[str] = field(default_factory=set)
    old_ledger: bool = False
    restored: bool = False
    log_restored: bool = False
    logs_then: dict[str, bytes] = field(default_factory=dict)
    unread: dict[str, set[str]] = field(default_factory=dict)
    limited_then: tuple[float, str] | None = None
    harmed: dict[str, str] = field(default_factory=dict)
    once_harmed: set[str] = field(default_factory=set)
    lost_keys: dict[Path, bytes] = field(default_factory=dict)
    retired: set[str] = field(default_factory=set)
    limited: tuple[float, str] | None = None
    last: Done | None = None
    began: tuple[datetime, datetime] = (BEGIN, BEGIN)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        shutil.copytree(made().folder, self.root, dirs_exist_ok=True)
        if not self.kind.remote:
            (self.root / "store").mkdir()
        self.settings = Settings(grace=24 * self.kind.grace)
        self.collecting = Timeline(DAY)
        self._configure()
        self.campaign_path = self.deployment.campaigns / "words" / "epoch-000001.json"
        self.campaign = Campaign.read(self.campaign_path)
        self.serial = itertools.count()

    def _configure(self) -> None:
        """Write the deployment files, and read them."""
        store = IN_A_STORE if self.kind.remote else "store"
        text = self.settings.deployment(store, self.kind.retention)
        self.deployment = self._written("deployment.toml", text)
        self.parts = [self.deployment]
        if self.kind.apart:
            self.parts = [self._written("shuffler.toml", f'parties = ["shuffler"]\n{text}')]
            self.parts += [self._written("readers.toml", f'parties = ["aux-server", "analyzer"]\n{text}')]

    def _written(self, name: str, text: str) -> Deployment:
        (self.root / name).write_text(text)
        return Deployment.read(self.root / name)

    def change(self, settings: Settings, *, restarted: bool) -> None:
        """Change the settings, and start the collectors anew, or only some; what is refused changes nothing."""
        before, self.settings = self.settings, settings
        try:
            self._configure()
        except HushcountError as error:
            self.said.append(str(error))
            self.settings = before
            self._configure()
            return
        if not restarted and self.left is None:
            self.left = self.collecting.copy()
        if settings.length != before.length:
            self.followed.change(self.collecting.at(self.moment()).end)
        self.collecting.change(self.moment(), timedelta(hours=settings.length))

    def moment(self) -> datetime:
        """Return the true time."""
        return BEGIN + self.day * DAY

    def now(self) -> datetime:
        """Return what the clock says."""
        return self.moment() + self.wrong * DAY

    def store_time(self) -> float:
        """Return what the clock of a store of objects says, in seconds since 1970."""
        return (self.moment() + self.store_wrong * DAY).timestamp()

    def lost_roles(self) -> set[str]:
        """Return whose keys cannot be used."""
        return self.retired | {path.name.partition("-")[0] for path in self.lost_keys}

    def run(
        self,
        at: int | str = 0,
        what: Callable[[], None] = lambda: None,
        *,
        at_entry: int = 0,
        answer: Answer = "lost",
        turn: Callable[[], None] = lambda: None,
        vouched: Vouched = NOTHING,
        parts: Sequence[Deployment] = (),
    ) -> Done | None:
        """Run once, one part after the other; `what` happens before change `at`. None: it did not come to its end."""
        done: Done | None = Done()
        settings, started = self.settings, self.moment()
        grace = timedelta(hours=settings.grace)
        closed = max(self.ends.values(), default=BEGIN)
        self.followed.begin(started, grace)
        with self.points.process(Process(at, what, answer, at_entry, turn)):
            try:
                for part in parts or self.parts:
                    if self.points.at_work > 1:
                        # Neither of two runs minds the other's lease, which stands still.
                        with self.points.outside():
                            self.end_lease()
                    of_part = run(part, clock=stopped(self.now()), vouched=vouched)
                    done.problems += of_part.problems
                    done.dropped += of_part.dropped
                    done.waiting += of_part.waiting
            except Killed:
                self.said.append("killed")
                done = None
            except HushcountError as error:
                self.said.append(str(error))
                done = None
        if done is not None:
            self.said += [*done.problems, *done.dropped, *done.waiting]
            if not any("--log-was-restored" in one or "--ledger-was-lost" in one for one in done.problems):
                self.old_ledger = False
            self.unmarked.clear()
            if self.settings == settings and not (self.wrong or self.store_wrong) and self._has_times(done):
                self.followed.end(started, grace)
        is_wrong = self.followed.unseen is not None and bool(self.wrong or self.store_wrong)
        if is_wrong or self.settings.length != settings.length:
            # A wrong clock may let a change begin at another time, and a run with the settings of before takes it back.
            self.followed.in_step = False
        self.last, self.began = done, (started, closed)
        return done

    def _has_times(self, done: Done) -> bool:
        """Return whether the log says how long windows are, and a run did not say that another change is to come."""
        if any("that was announced" in one or "restored" in one for one in done.problems):
            return False
        # A log that cannot be read breaks a promise, and says nothing of windows.
        with suppress(HushcountError):
            return bool(Logs(self.parts[0]).read("words").times)
        return False

    def end_lease(self) -> None:
        """Delete the lease, as another run does that has seen it stand still, and as anybody may."""
        for path, _ in storage.list_files(self.deployment.folder("log"), ".lease.json"):
            storage.remove(path)


@contextmanager
def world(kind: Kind) -> Iterator[World]:
    """Yield a new world in a folder of its own, in which jobs run at once and time is what the world says."""
    points = Points()
    root = Path(tempfile.mkdtemp(prefix="hushcount-world-"))
    StubStore.clear()
    try:
        with pytest.MonkeyPatch.context() as patch:
            plain_engine.instead_of_beam(patch.setattr)
            patch.setattr(runner_module, "reach_with", lambda _: None)
            # Several shards of few reports.
            patch.setattr(shuffle, "_SHARD_RECORDS", 4)
            here = World(root, kind, points)
            patch.setitem(vars(MACHINE), "seconds", lambda: here.now().timestamp())
            points.put(patch.setattr)
            StubStore.clock = here.store_time
            # All processes here are one.
            patch.setattr(runs, "_is_under_way", lambda _: bool(points.at_work))
            patch.setattr(leases, "_is_gone", lambda _: points.at_work < 2)
            # A checkpoint for few entries.
            patch.setattr(log, "_EVERY", 3)
            yield here
    finally:
        shutil.rmtree(root, ignore_errors=True)
