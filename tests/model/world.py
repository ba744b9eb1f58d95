"""A world: one operator's store, ledger, keys and clock, collectors that put reports there, and real runs.

Only two things are not real: Beam's engine (`plain_engine.py`) and the clock.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.collection.epochs import epoch_folder
from hushcount.collection.manifests import Manifest, SegmentPart
from hushcount.collection.segment_names import mark
from hushcount.errors import HushcountError
from pipelines.deployment.settings import Deployment
from pipelines.engine import runner as runner_module
from pipelines.files import leases, storage
from pipelines.jobs import shuffle
from pipelines.ledger import records, runs
from pipelines.log import log
from pipelines.schedule.report import Done
from pipelines.schedule.run import run
from pipelines.schedule.work import NOTHING, Vouched
from tests.model.made import DEPLOYMENT, SEGMENT, made
from tests.model.points import Answer, Killed, Points, Process
from tests.support import plain_engine
from tests.support.collecting import DAY, START, window_name
from tests.support.records import ENVELOPES, envelopes, file_bytes
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
        window: its day.
        paths: by stream.
        content: bytes of its files, by path.
        sealed: digests of its reports, by stream.
        copied: whether clients sent them again.
    """

    window: int
    paths: dict[Stream, str]
    content: dict[str, bytes]
    sealed: dict[Stream, set[bytes]]
    copied: bool = False


@dataclass
class World:
    """See the module.

    Attributes:
        root: of its local files.
        kind: of world.
        points: where runs may be interrupted.
        day: the true time, in days.
        wrong: by how many days the clock of the next run is wrong.
        sent: what collectors acknowledged.
        acknowledged: window, stream and number of the reports of each segment, copies too, by path.
        gone: outputs, or their summaries, that somebody deleted and nobody restored yet, with what they held, by path.
        old_ledger: whether the ledger is an older copy, and no run has come to its end since.
        unmarked: outputs of which somebody deleted the summary, before the next run came to its end.
        harmed: segments that somebody damaged, and that are not restored yet, with how, by path.
        restored: whether the ledger was ever restored or lost.
        log_restored: whether the logs ever were.
        logs_then: the files of the logs as they were last night, by path.
        received: outputs of which all who read them left a receipt, by place.
        limited_then: the limit of the ledger's copy.
        lost_keys: key files that are damaged or away, with what they hold.
        retired: whose key was destroyed for good.
        limited: the limit that was set, as (epsilon, days).
        last: what the last run did, and whether it came to its end.
        said: sentences of all runs.
    """

    root: Path
    kind: Kind
    points: Points
    day: float = 0.0
    wrong: float = 0.0
    sent: list[Sent] = field(default_factory=list)
    acknowledged: dict[str, tuple[str, Stream, int]] = field(default_factory=dict)
    gone: dict[str, dict[str, bytes]] = field(default_factory=dict)
    unmarked: set[str] = field(default_factory=set)
    old_ledger: bool = False
    restored: bool = False
    log_restored: bool = False
    logs_then: dict[str, bytes] = field(default_factory=dict)
    received: set[str] = field(default_factory=set)
    limited_then: tuple[float, str] | None = None
    harmed: dict[str, str] = field(default_factory=dict)
    lost_keys: dict[Path, bytes] = field(default_factory=dict)
    retired: set[str] = field(default_factory=set)
    limited: tuple[float, str] | None = None
    last: Done | None = None
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        shutil.copytree(made().folder, self.root, dirs_exist_ok=True)
        store = IN_A_STORE if self.kind.remote else "store"
        self.config = self.root / "deployment.toml"
        text = DEPLOYMENT.format(store=store, grace=self.kind.grace, tail=self.kind.retention)
        self.config.write_text(text)
        if not self.kind.remote:
            (self.root / "store").mkdir()
        self.deployment = Deployment.read(self.config)
        self.parts = [self.deployment]
        if self.kind.apart:
            self.parts = [self._part("shuffler.toml", '"shuffler"', text)]
            self.parts += [self._part("readers.toml", '"aux-server", "analyzer"', text)]
        self.campaign_path = self.deployment.campaigns / "words" / "epoch-000001.json"
        self.campaign = Campaign.read(self.campaign_path)
        self._serial = itertools.count()

    def _part(self, name: str, parties: str, text: str) -> Deployment:
        (self.root / name).write_text(f"parties = [{parties}]\n{text}")
        return Deployment.read(self.root / name)

    def now(self) -> datetime:
        """Return what the clock says."""
        return START + (self.day + self.wrong) * DAY

    def true_time(self) -> float:
        """Return what the time is, in seconds since 1970."""
        return (START + self.day * DAY).timestamp()

    def lost_roles(self) -> set[str]:
        """Return whose keys cannot be used."""
        return self.retired | {path.name.partition("-")[0] for path in self.lost_keys}

    def collect(self, window: int, reports: int = SEGMENT, copies: Sent | None = None) -> Sent:
        """Let a collector close a window: a segment of each stream, with copies of an earlier one's reports beside."""
        serial = next(self._serial)
        collector = f"c{serial}"
        home = self.window(window)
        sent = Sent(window, {}, {}, {})
        segments: dict[Stream, tuple[SegmentPart, ...]] = {}
        for stream in self.campaign.streams:
            rows = made().sealed[stream][serial * SEGMENT : serial * SEGMENT + reports]
            enveloped = envelopes(self.campaign, rows, [f"client {serial} {index}" for index in range(reports)])
            data = file_bytes(ENVELOPES[stream], enveloped, self.campaign.fingerprint, self.campaign.id)
            parts = []
            contents = [(data, reports)]
            if copies is not None:
                contents.append((copies.content[copies.paths[stream]], len(copies.sealed[stream])))
                copies.copied = True
            for number, (content, held) in enumerate(contents):
                key = f"{collector} {window}".encode()
                name = f"{collector}-{number:06d}-00000000-{mark('client-token', key)}.blocks"
                path = storage.join(home, stream, name)
                storage.write_whole(path, [content])
                digest = hashlib.blake2b(content, digest_size=32).hexdigest()
                parts.append(SegmentPart(name=name, records=held, bytes=len(content), digest=digest))
                self.acknowledged[path] = window_name(window), stream, held
                if not number:
                    sent.paths[stream], sent.content[path] = path, content
            segments[stream] = tuple(parts)
            sent.sealed[stream] = {digest_of(row.tobytes()) for row in rows}
        self.close(window, collector, segments)
        self.sent.append(sent)
        return sent

    def close(self, window: int, collector: str, segments: dict[Stream, tuple[SegmentPart, ...]]) -> None:
        """Write a collector's manifest of a window."""
        manifest = Manifest(
            collector=collector, campaign="words", epoch=1, fingerprint=self.campaign.fingerprint.hex(),
            window=window_name(window), seconds=86_400, authentication="client-token", segments=segments, refused={},
        )  # fmt: skip
        path = storage.join(self.window(window), f"{collector}.manifest.json")
        storage.write_json(path, manifest.model_dump(mode="json"))
        if not self.kind.remote:
            os.utime(path, (self.true_time(), self.true_time()))

    def window(self, window: int) -> str:
        """Return where collectors put what comes in a window."""
        folder = self.deployment.folder("segments")
        return storage.join(folder, "words", epoch_folder(self.campaign), window_name(window))

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
        with self.points.process(Process(at, what, answer, at_entry, turn)):
            try:
                for part in parts or self.parts:
                    of_part = run(part, now=self.now(), vouched=vouched)
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
        self.last = done
        return done

    def end_lease(self) -> None:
        """Delete the lease, as another run does that has seen it stand still, and as anybody may."""
        for path, _ in storage.list_files(self.deployment.folder("log"), ".lease.json"):
            storage.remove(path)


def digest_of(sealed: bytes) -> bytes:
    """Return what a sealed report is known by here."""
    return hashlib.blake2b(sealed, digest_size=16).digest()


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
            points.put(patch.setattr)
            StubStore.clock = here.true_time
            # All processes here are one.
            patch.setattr(runs, "_is_under_way", lambda _: bool(points.at_work))
            patch.setattr(leases, "_is_gone", lambda _: points.at_work < 2)
            # A checkpoint for few entries.
            patch.setattr(log, "_EVERY", 3)
            for module in list(sys.modules.values()):
                if getattr(module, "utc_now", None) is records.utc_now and module is not records:
                    patch.setattr(module, "utc_now", here.now)
            yield here
    finally:
        shutil.rmtree(root, ignore_errors=True)
