"""What everybody can see of a world: its outputs that are complete, its ledger, and what its log says.

The log is read here a second time, by a count of its own: what it says became of each segment.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hushcount.collection.windows import Window, window_start
from hushcount.wire.blocks import read_block, read_header
from pipelines.audit.reconcile import Account, account_of
from pipelines.deployment.settings import Party
from pipelines.files import storage
from pipelines.handover.hops import CHAIN
from pipelines.ledger.charges import Charge
from pipelines.ledger.file import opened as opened_ledger
from pipelines.ledger.file import read_charges
from pipelines.log import entries
from pipelines.log.entries import Decision
from pipelines.log.entry_files import read_entry
from pipelines.log.fold import Fold
from pipelines.log.log import Logs
from pipelines.log.segments import GIVEN_UP, segments_of
from pipelines.outputs.staging import SUMMARY
from tests.model.collectors import digest_of
from tests.model.world import World
from tests.support.site import view_of

_GIVEN_UP = "given_up"


@dataclass(frozen=True)
class Output:
    """An output that says that it is complete.

    Attributes:
        folder: shuffled, released, found or results.
        batch: whose.
        files: their content, by path from its folder on.
    """

    folder: str
    batch: str
    files: dict[str, bytes]

    @property
    def place(self) -> str:
        return f"{self.folder}/{self.batch}"

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads(self.files[SUMMARY])

    @property
    def digest(self) -> str:
        parts = [f"{name} {hashlib.blake2b(content).hexdigest()}" for name, content in sorted(self.files.items())]
        return hashlib.blake2b("\n".join(parts).encode()).hexdigest()

    @property
    def key(self) -> str | None:
        """Under which it is charged; None: it is charged nowhere."""
        charged = (self.summary.get("ledger") or {}).get("charged") or {}
        return charged.get("key")

    def records(self, name: str) -> list[bytes]:
        """Return the digests of the records of a folder of block files; what is damaged is missing."""
        found = []
        for path, content in self.files.items():
            if f"{name}/" in path and path.endswith(".blocks") and "dead_letter" not in path:
                stream = io.BytesIO(content)
                header = read_header(stream, path)
                for index in range(header.blocks):
                    block = read_block(stream, header, index) or b""
                    found += [
                        digest_of(block[at : at + header.record_bytes])
                        for at in range(0, len(block), header.record_bytes)
                    ]
        return found

    @property
    def values(self) -> frozenset[str]:
        """The values that it reveals."""
        return frozenset(content.decode() for path, content in self.files.items() if path.endswith("found.csv"))


def outputs(world: World) -> Iterator[Output]:
    """Yield all that is complete."""
    for folder in (hop.folder for hop in CHAIN.values()):
        home = world.deployment.folder(folder, "words")
        for path, _ in storage.list_tree(home, f"*/{SUMMARY}"):
            if not path.split("/")[-2].startswith("."):
                yield output(folder, path.rpartition("/")[0])


def output(folder: str, where: str) -> Output:
    """Return one that lies somewhere."""
    files = {storage.relative(path, where): storage.read_bytes(path, 1 << 30) for path in storage.list_objects(where)}
    if (own := json.loads(files[SUMMARY]).get("folder")) is not None:
        # They lie in the folder of the attempt.
        mine = {path.removeprefix(f"{own}/"): held for path, held in files.items() if path.startswith(f"{own}/")}
        files = {**mine, SUMMARY: files[SUMMARY]}
    return Output(folder, where.rpartition("/")[2], files)


def charges(world: World) -> list[Charge]:
    """Return what was charged."""
    ledger = world.deployment.ledger
    if ledger is None or not ledger.exists():
        return []
    with opened_ledger(ledger) as connection:
        return [charge for charge in read_charges(connection, "words") if charge.state == "committed"]


def accounts(world: World) -> list[Account]:
    """Return what `hushcount status` and `hushcount doctor` say of each part, the shuffler's first."""
    return [account_of(view_of(part, world.now()), digests=True) for part in world.parts]


def unread(world: World, one: Output) -> set[str]:
    """Return the streams of what the shuffler handed on of which no receipt is there."""
    readers = {"reports": "analyzer", "discovery": "aux-server"}
    return {
        stream
        for stream in one.summary["streams"]
        if not any(
            path.rpartition("/")[2].startswith(f"{one.batch}.shuffle.")
            for path, _ in storage.list_files(world.deployment.folder("receipts", readers[stream], "words"), ".json")
        )
    }


def folded(world: World) -> Fold:
    """Return what the logs of all parties come to."""
    return Logs(world.deployment).read("words")


def handed_on_at(world: World, batch: str) -> datetime:
    """Return when a batch was shuffled, by the log; now, if that does not know it."""
    done = folded(world).hops_of(batch).get("shuffle")
    return world.moment() if done is None else done.at


def note_ends(world: World) -> None:
    """Note when the windows ended that the log closed, and when they are seen to be closed."""
    for entry in decisions(world, "shuffler"):
        if isinstance(entry, entries.Closed):
            world.ends[entry.window] = window_of(entry).end
            world.closed_at.setdefault(entry.window, world.moment())


def window_of(closed: entries.Closed) -> Window:
    """Return the window that an entry closes."""
    start = window_start(closed.window)
    return Window(start, start + timedelta(seconds=closed.seconds))


@dataclass(frozen=True)
class Fate:
    """What the log says became of a segment.

    Attributes:
        state: stored (no window took it in), waiting, quarantined, too_late, given_up or batched.
        batch: its last one, if it is batched.
        shuffled: whether that is shuffled.
    """

    state: str
    batch: str = ""
    shuffled: bool = False


def fates(world: World) -> dict[str, Fate]:
    """Return what the shuffler's log says became of each segment, by its path in the folder of segments.

    Raises:
        KeyError: it decides about a segment that is not there for it.
    """
    held: dict[str, str] = {}
    aside: set[str] = set()
    listed: dict[str, dict[str, tuple[str, ...]]] = {}
    shuffled: set[str] = set()
    for entry in decisions(world, "shuffler"):
        if isinstance(entry, entries.Opened) and entry.restored is not None:
            for manifest in entry.restored.manifests:
                held |= {one.path: "waiting" for one in segments_of(manifest.path, manifest)}
            undone = [listed.pop(name) for name in listed.keys() - shuffled]
            held |= {path: "waiting" for streams in undone for paths in streams.values() for path in paths}
            held |= {path: _GIVEN_UP for path, state in held.items() if state == "waiting"}
            shuffled |= {one.batch for one in entry.restored.adopted if one.hop == "shuffle"}
            aside = set()
        elif isinstance(entry, entries.Closed):
            for manifest in entry.manifests:
                held |= {one.path: "waiting" for one in segments_of(manifest.path, manifest)}
            for file, streams in entry.batches.items():
                name = f"{entry.window}-{file}"
                listed[name] = dict(streams)
                for paths in streams.values():
                    held |= {path: _taken(held, path, name) for path in paths}
            for path, reason in entry.dropped.items():
                held[path] = _taken(held, path, _GIVEN_UP if reason == GIVEN_UP else "too_late")
            aside = set(entry.aside)
        elif isinstance(entry, entries.GivenBack):
            held |= {path: "waiting" for paths in listed.pop(entry.batch).values() for path in paths}
            aside |= entry.aside.keys()
        elif isinstance(entry, entries.Finished) and entry.hop == "shuffle":
            streams = listed[entry.batch]
            back = streams.keys() - (entry.summary or {}).get("streams", {}).keys()
            held |= {path: "waiting" for stream in back for path in streams[stream]}
            shuffled.add(entry.batch)
    return {path: _fate(state, path in aside, shuffled) for path, state in held.items()}


def decisions(world: World, party: Party) -> list[Decision]:
    """Return what a party's log decides, in its order: a new log goes on from where it says that the old one ended."""
    folder = world.deployment.folder("log", party, "words")
    found: dict[int, list[tuple[int, int, Decision]]] = {}
    for path, _ in sorted(storage.list_tree(folder, "0*/*.json")):
        generation = int(path.split("/")[-2])
        entry = read_entry(storage.read_bytes(path), path, _no_list)
        if generation not in found:
            restored = entry.decision.restored if isinstance(entry.decision, entries.Opened) else None
            end = (0, 0) if restored is None else (restored.generation, restored.number)
            found[generation] = [one for one in found.get(end[0], []) if one[:2] <= end]
        found[generation].append((generation, entry.number, entry.decision))
    return [decision for _, _, decision in found[max(found)]] if found else []


def _no_list(digest: str) -> bytes:
    raise AssertionError(f"entries here are short, and one names {digest}")


def _taken(held: dict[str, str], path: str, state: str) -> str:
    if held[path] != "waiting":
        raise KeyError(f"{path} is {held[path]}, and {state} is decided")
    return state


def _fate(state: str, aside: bool, shuffled: set[str]) -> Fate:
    if state == "waiting":
        return Fate("quarantined" if aside else "waiting")
    return Fate(state) if state in ("too_late", _GIVEN_UP) else Fate("batched", state, state in shuffled)
