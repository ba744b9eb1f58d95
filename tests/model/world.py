"""A world: one operator's store, state, ledger, keys and clock, collectors that put reports there, and real runs.

Only two things are not real: Beam's engine (`plain_engine.py`) and the clock.
"""

from __future__ import annotations

import hashlib
import itertools
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.collection.epochs import epoch_folder
from hushcount.collection.manifests import Manifest, SegmentPart
from hushcount.collection.segment_names import mark
from hushcount.errors import HushcountError
from pipelines.deployment.settings import Deployment
from pipelines.engine import runner as runner_module
from pipelines.files import storage
from pipelines.jobs import shuffle
from pipelines.ledger import records, runs
from pipelines.schedule.run import Done, run
from tests.model.made import DEPLOYMENT, SEGMENT, made
from tests.model.points import Killed, Points, Process
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
    """

    remote: bool = False
    retention: str = ""


@dataclass
class Sent:
    """A segment of reports that a collector acknowledged.

    Attributes:
        window: its day.
        paths: by stream.
        content: bytes of its files, by path.
        sealed: digests of its reports, by stream.
    """

    window: int
    paths: dict[Stream, str]
    content: dict[str, bytes]
    sealed: dict[Stream, set[bytes]]


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
        harmed: files of the store that somebody damaged, and that are not restored yet.
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
    harmed: set[str] = field(default_factory=set)
    lost_keys: dict[Path, bytes] = field(default_factory=dict)
    retired: set[str] = field(default_factory=set)
    limited: tuple[float, int] | None = None
    last: Done | None = None
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        shutil.copytree(made().folder, self.root, dirs_exist_ok=True)
        store = IN_A_STORE if self.kind.remote else "store"
        self.config = self.root / "deployment.toml"
        self.config.write_text(DEPLOYMENT.format(store=store, tail=self.kind.retention))
        if not self.kind.remote:
            (self.root / "store").mkdir()
        self.deployment = Deployment.read(self.config)
        self.campaign_path = self.deployment.campaigns / "words" / "epoch-000001.json"
        self.campaign = Campaign.read(self.campaign_path)
        self.state = Path(self.deployment.state)
        self._serial = itertools.count()

    def now(self) -> datetime:
        """Return what the clock says."""
        return START + (self.day + self.wrong) * DAY

    def lost_roles(self) -> set[str]:
        """Return whose keys cannot be used."""
        return self.retired | {path.name.partition("-")[0] for path in self.lost_keys}

    def collect(self, window: int, copies: Sent | None = None) -> Sent:
        """Let a collector close a window: a segment of each stream, with copies of an earlier one's reports beside."""
        serial = next(self._serial)
        collector = f"c{serial}"
        home = self.window(window)
        sent = Sent(window, {}, {}, {})
        segments: dict[Stream, tuple[SegmentPart, ...]] = {}
        for stream in self.campaign.streams:
            rows = made().sealed[stream][serial * SEGMENT : (serial + 1) * SEGMENT]
            enveloped = envelopes(self.campaign, rows, [f"client {serial} {index}" for index in range(SEGMENT)])
            data = file_bytes(ENVELOPES[stream], enveloped, self.campaign.fingerprint, self.campaign.id)
            parts = []
            for number, content in enumerate(
                [data] if copies is None else [data, copies.content[copies.paths[stream]]]
            ):
                key = f"{collector} {window}".encode()
                name = f"{collector}-{number:06d}-00000000-{mark('client-token', key)}.blocks"
                path = storage.join(home, stream, name)
                storage.write_whole(path, [content])
                digest = hashlib.blake2b(content, digest_size=32).hexdigest()
                parts.append(SegmentPart(name=name, records=SEGMENT, bytes=len(content), digest=digest))
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
        storage.write_json(
            storage.join(self.window(window), f"{collector}.manifest.json"), manifest.model_dump(mode="json")
        )

    def window(self, window: int) -> str:
        """Return where collectors put what comes in a window."""
        folder = self.deployment.folder("segments")
        return storage.join(folder, "words", epoch_folder(self.campaign), window_name(window))

    def run(self, at: int = 0, what: Callable[[], None] = lambda: None) -> Done | None:
        """Run once; `what` happens before change number `at`. None: it did not come to its end."""
        process = Process(at, what)
        done = None
        with self.points.process(process):
            try:
                done = run(self.deployment, now=self.now())
            except Killed:
                self.said.append("killed")
            except (HushcountError, OperationalError) as error:
                self.said.append(str(error))
        if done is not None:
            self.said += [*done.problems, *done.dropped, *done.waiting]
        self.last = done
        self.process = process
        return done


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
        with pytest.MonkeyPatch.context() as patch, points.of_databases():
            plain_engine.instead_of_beam(patch.setattr)
            patch.setattr(runner_module, "reach_with", lambda _: None)
            # Several shards of few reports.
            patch.setattr(shuffle, "_SHARD_RECORDS", 4)
            here = World(root, kind, points)
            points.put(patch.setattr)
            patch.setattr(runs, "_is_under_way", lambda _: bool(points.running))
            for module in list(sys.modules.values()):
                if getattr(module, "utc_now", None) is records.utc_now and module is not records:
                    patch.setattr(module, "utc_now", here.now)
            yield here
    finally:
        shutil.rmtree(root, ignore_errors=True)
