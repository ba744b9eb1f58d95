"""Several runs at once over one log, at random: rule 1, "decide anew", holds whoever comes between look and put."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from hushcount.campaigns.campaign import Stream
from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.manifests import Manifest, SegmentPart
from hushcount.collection.tilings import Tiling
from hushcount.collection.windows import window_at, window_start
from hushcount.errors import FormatError
from hushcount.wire.blocks import Header, encode_blocks
from pipelines.deployment.settings import Deployment
from pipelines.log import folding
from pipelines.log.entries import Closed, Decision, Finished, GivenBack
from pipelines.log.entry_files import Entry
from pipelines.log.facts import Head, Times
from pipelines.log.fold import Fold
from pipelines.log.log import Log
from pipelines.log.segments import segments_of
from pipelines.outputs.counts import HopCounts, StreamCounts
from pipelines.schedule.advancing import _finished, _given_back
from pipelines.windows.calendar import Calendar
from pipelines.windows.closing import Listed, Rule
from pipelines.windows.intake import closed_next
from tests.pipelines.windows.test_closing import FILE, OF_BOTH
from tests.support.decisions import CAMPAIGN, HOUR, MINUTE, START, deployment_in

RULE = Rule(Calendar((Times(None, Tiling(HOUR), 2 * HOUR),)), 10 * MINUTE, frozenset(), {FILE: OF_BOTH})
RUNS, STEPS, SEEDS = 3, 80, 20


class Hasty(Log):
    """A log that keeps its first decision when another entry came first."""

    def decide(self, decision: Callable[[Fold], Decision | None], at: datetime) -> Entry | None:
        first = decision(self.read())
        return super().decide(lambda _: first, at)


@dataclass
class World:
    """One store, and what of it each run has seen: its look may be old."""

    deployment: Deployment
    random: Random
    kind: type[Log]
    now: datetime = START + HOUR
    listed: list[Listed] = field(default_factory=list)
    busy: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.logs = [self.kind(self.deployment, "shuffler", CAMPAIGN) for _ in range(RUNS)]
        self.looks: list[tuple[datetime, list[Listed]]] = [(self.now, [])] * RUNS

    def step(self, depth: int = 0) -> None:
        """Let any run do anything; while it decides, others may do the same."""
        run = self.random.choice([one for one in range(RUNS) if one not in self.busy])
        self.busy.append(run)
        actions = (self._collect, self._look, self._look, self._close, self._close, self._shuffle, self._give_back)
        self.random.choice(actions)(run, depth)
        self.busy.remove(run)

    def _meanwhile(self, depth: int) -> None:
        while depth < 2 and self.random.random() < 0.4:
            self.step(depth + 1)

    def _collect(self, _: int, __: int) -> None:
        """A collector closes this hour or an older one."""
        self.now += self.random.randrange(90) * MINUTE
        window = window_at(self.now - self.random.choice([1, 1, 2, 3]) * HOUR, HOUR)
        name, stream, records = (
            f"c{len(self.listed)}",
            self.random.choice(OF_BOTH.streams),
            self.random.choice([20, 60]),
        )
        content = b"".join(
            encode_blocks(Header(ENVELOPES[stream], 6, records, bytes(32), CAMPAIGN), b"sealed" * records)
        )
        part = SegmentPart(
            name=f"{name}-000000.blocks", records=records, bytes=len(content),
            digest=hashlib.blake2b(content, digest_size=32).hexdigest(),
        )  # fmt: skip
        manifest = Manifest(
            collector=name, campaign=CAMPAIGN, epoch=1, fingerprint="a" * 64, window=window.name, seconds=3600,
            authentication="client-token", segments={stream: (part,)},
        )  # fmt: skip
        path = f"{CAMPAIGN}/000001-{'a' * 16}/{window.name}/{name}.manifest.json"
        for segment in segments_of(path, manifest):
            file = Path(self.deployment.folder("segments", *segment.path.split("/")))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        self.listed.append(Listed(path, self.now, manifest))

    def _look(self, run: int, _: int) -> None:
        self.now += self.random.randrange(30) * MINUTE
        self.looks[run] = (self.now, [*self.listed])

    def _close(self, run: int, depth: int) -> None:
        now, listed = self.looks[run]

        def wanted(fold: Fold) -> Decision | None:
            new = [one for one in listed if fold.files.isdisjoint(one.files)]
            closing = closed_next(self.deployment, fold, new, RULE, now)
            self._meanwhile(depth)
            return None if closing is None else closing[0]

        self.logs[run].decide(wanted, now)

    def _undone(self, run: int) -> str | None:
        """Return a batch that this run has seen and that may be another's by now."""
        fold = self.logs[run].fold
        undone = sorted(name for name in fold.batches if fold.is_undone(name))
        return self.random.choice(undone) if undone else None

    def _shuffle(self, run: int, depth: int) -> None:
        if (name := self._undone(run)) is None:
            return
        made = self.logs[run].fold.batches[name]
        # A stream that turns out too small goes back by this.
        streams = {
            stream: StreamCounts(number, number, {})
            for place, (stream, number) in enumerate(made.collected.items())
            if place == 0 or self.random.random() < 0.7
        }
        folder = f"{self.random.getrandbits(64):016x}"
        done = Finished(batch=name, hop="shuffle", folder=folder, summary=HopCounts.of("shuffle", streams).data())
        self._meanwhile(depth)

        def wanted(fold: Fold) -> Decision | None:
            decision = _finished(done, fold)
            self._meanwhile(depth)
            return decision

        self.logs[run].decide(wanted, self.now)

    def _give_back(self, run: int, depth: int) -> None:
        if (name := self._undone(run)) is None:
            return

        def wanted(fold: Fold) -> Decision | None:
            decision = _given_back(GivenBack(batch=name), fold)
            self._meanwhile(depth)
            return decision

        self.logs[run].decide(wanted, self.now)

    def entries(self) -> list[Decision]:
        """Return all decisions; their numbers have no gaps."""
        log = Log(self.deployment, "shuffler", CAMPAIGN)
        paths = Path(self.deployment.folder("log", "shuffler", CAMPAIGN, "000001")).glob("*.json")
        numbers = [*range(1, log.read().heads["shuffler"].number + 1)]
        assert sorted(int(path.stem) for path in paths) == numbers
        return [log.entry(Head(1, number)).decision for number in numbers]


TWICE, ENDED, ORDER = "a segment is in two batches", "a batch ended twice", "a window closed behind a later one"


def faults_in(decisions: list[Decision]) -> set[str]:
    """Follow the segments by what the entries say alone; return which parts of the rule they break."""
    held: set[str] = set()
    streams: dict[str, dict[Stream, tuple[str, ...]]] = {}
    ended: set[str] = set()
    found: set[str] = set()
    ends = START - 99 * HOUR
    for decision in decisions:
        if isinstance(decision, Closed):
            start = window_start(decision.window)
            found |= {ORDER} if start < ends else set()
            ends = start + timedelta(seconds=decision.seconds)
            for file, listed in decision.batches.items():
                streams[f"{decision.window}-{file}"] = listed
                paths = {path for each in listed.values() for path in each}
                found |= {TWICE} if held & paths else set()
                held |= paths
        elif isinstance(decision, GivenBack | Finished):
            found |= {ENDED} if decision.batch in ended else set()
            ended.add(decision.batch)
            summary = decision.summary if isinstance(decision, Finished) else None
            for stream, listed_paths in streams.get(decision.batch, {}).items():
                held -= set() if summary is not None and stream in summary["streams"] else {*listed_paths}
    return found


def explore(root: Path, kind: type[Log], seed: int) -> list[Decision]:
    """Let runs with this kind of log do anything at random; return what they decided."""
    world = World(deployment_in(root), Random(seed), kind)
    for _ in range(STEPS):
        world.step()
    return world.entries()


def test_no_segment_is_in_two_batches_and_what_ended_one_is_final(tmp_path: Path) -> None:
    kinds = Counter[str]()
    for seed in range(SEEDS):
        decisions = explore(tmp_path / str(seed), Log, seed)
        assert faults_in(decisions) == set()
        kinds += Counter(decision.kind for decision in decisions)
        # Whatever was taken in is in a batch, waits, or was dropped.
        fold = Log(deployment_in(tmp_path / str(seed)), "shuffler", CAMPAIGN).read()
        batched = {
            path
            for one in decisions
            if isinstance(one, Closed)
            for listed in one.batches.values()
            for paths in listed.values()
            for path in paths
        }
        everything = {path for path in fold.files if path.endswith(".blocks")}
        assert everything == batched | fold.waiting.keys() | fold.dropped.keys()
    # It went where the faults would be.
    assert min(kinds[kind] for kind in ("closed", "done", "given_back")) > SEEDS


def test_the_search_finds_a_log_that_keeps_its_first_decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the rule itself if nothing refuses to write and read such entries."""
    real = folding.Effects.add

    def add(state: folding.Effects, entry: Entry, here: Head) -> None:
        with suppress(KeyError, folding.Undecidable):
            real(state, entry, here)

    monkeypatch.setattr(folding.Effects, "add", add)
    found = [faults_in(explore(tmp_path / str(seed), Hasty, seed)) for seed in range(SEEDS)]
    assert set[str]().union(*found) == {TWICE, ENDED, ORDER}


def test_no_entry_is_written_that_the_rule_forbids(tmp_path: Path) -> None:
    """Nor does a log that keeps its first decision get one."""
    refused = 0
    for seed in range(SEEDS):
        try:
            explore(tmp_path / str(seed), Hasty, seed)
        except FormatError:
            refused += 1
        assert faults_in(World(deployment_in(tmp_path / str(seed)), Random(seed), Log).entries()) == set()
    assert refused
