"""What is damaged, deleted, lost or restored."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from keys.roles import OpeningRole
from keys.rotation import retire, rotate
from pipelines.files import storage
from pipelines.handover.hops import CHAIN
from pipelines.log.entries import Charging, Finished, Opened
from pipelines.outputs.staging import SUMMARY
from pipelines.schedule.work import Vouched
from tests.model.actions import Action, finish
from tests.model.memory import Broken, Memory, is_old
from tests.model.promises import LOST, look
from tests.model.seen import Fate, charges, decisions, fates, outputs
from tests.model.world import World


@dataclass(frozen=True)
class Checkpoints(Action):
    """The checkpoints of the logs are deleted, or cut."""

    cut: bool = False

    def do(self, world: World, memory: Memory) -> None:
        for party in world.deployment.file.parties:
            folder = world.deployment.folder("log", party, "words", "checkpoints")
            for path in [path for path, _ in storage.list_files(folder, ".json")]:
                held = storage.read_bytes(path, 1 << 20)
                storage.remove(path)
                if self.cut:
                    storage.write_whole(path, [held[: len(held) // 2]])


@dataclass(frozen=True)
class Delete(Action):
    """Somebody deletes the newest output of a folder; or only its summary.json, which the next run writes again."""

    folder: str
    summary: bool = True

    def do(self, world: World, memory: Memory) -> None:
        for one in [one for one in outputs(world) if one.folder == self.folder][-1:]:
            memory.outputs.setdefault(one.place, one)
            where = world.deployment.folder(one.folder, "words", one.batch)
            if self.summary:
                storage.remove(storage.join(where, SUMMARY))
                world.unmarked.add(one.place)
            else:
                paths = storage.list_objects(where)
                world.gone[one.place] = {path: storage.read_bytes(path, 1 << 30) for path in paths}
                storage.remove_directory(where)


@dataclass(frozen=True)
class Restore(Action):
    """The ledger is replaced by last night's copy, or lost; its draws, which lie beside it, stay.

    A run that finds another ledger than its log names charges nothing there, until the operator says that it is lost.
    """

    lost: bool = False

    def do(self, world: World, memory: Memory) -> None:
        replace_ledger(world, lost=self.lost)
        if not self.lost:
            return
        is_named = any(
            isinstance(one, Charging) for party in world.deployment.file.parties for one in decisions(world, party)
        )
        world.run()
        if is_named and charges(world):
            raise Broken("a ledger was charged in that is not the one that the log names")
        finish(world, memory, world.run(vouched=Vouched(ledger_was_lost=True)))


@dataclass(frozen=True)
class RestoreLogs(Action):
    """All logs are replaced by last night's copy, or lost, perhaps with the ledger; then the operator says so.

    Until then a run of a campaign with an output that its log lacks does nothing. What somebody deleted or damaged
    before is restored too.

    Attributes:
        at: the run that begins the new logs is killed before this change; 0: it is not.
    """

    lost: bool = False
    ledger: bool = False
    at: int = 0

    def do(self, world: World, memory: Memory) -> None:
        Heal().do(world, memory)
        for path in storage.list_objects(world.deployment.folder("log")):
            storage.remove(path)
        for path, held in () if self.lost else sorted(world.logs_then.items()):
            storage.write_whole(path, [held])
        if self.ledger:
            replace_ledger(world, lost=False)
        world.log_restored = True
        there, spent = {one.place: one.digest for one in outputs(world)}, charges(world)
        strange = there.keys() - done_by_log(world)
        done = world.run()
        look(world, memory)
        if done is not None and strange:
            if not any(LOST in one for one in done.problems):
                raise Broken(f"{min(strange)} is of a log that is lost, and a run went on without it")
            # A part that lacks nothing goes on.
            now = {one.place: one.digest for one in outputs(world)}
            if not world.kind.apart and (now != there or charges(world) != spent):
                raise Broken("a log lacks entries, and a run went on without them")
        vouched = Vouched(log_was_restored=True)
        if self.at:
            world.run(self.at, world.points.kill, vouched=vouched)
            look(world, memory)
            world.end_lease()
        finish(world, memory, world.run(vouched=vouched))


@dataclass(frozen=True)
class Harm(Action):
    """A segment of the newest window is damaged, deleted or replaced by another of its length."""

    how: str

    def do(self, world: World, memory: Memory) -> None:
        if world.sent:
            path = world.sent[-1].paths["reports"]
            content = world.sent[-1].content[path]
            if not storage.exists(path):
                return
            storage.remove(path)
            if self.how != "delete":
                storage.write_whole(path, [content[:-1] if self.how == "cut" else bytes(reversed(content))])
            world.harmed[path] = self.how


@dataclass(frozen=True)
class HarmInARun(Action):
    """While a run is before this change, a segment is harmed."""

    at: int | str
    how: str

    def do(self, world: World, memory: Memory) -> None:
        def harm() -> None:
            with world.points.outside():
                Harm(self.how).do(world, memory)

        world.run(self.at, harm)
        look(world, memory)


@dataclass(frozen=True)
class Heal(Action):
    """What was damaged or deleted is restored, and the store's clock is set."""

    def do(self, world: World, memory: Memory) -> None:
        contents = {path: content for sent in world.sent for path, content in sent.content.items()}
        told, root = fates(world), world.deployment.folder("segments")
        for path in world.harmed:
            fate = told.get(storage.relative(path, root), Fate("stored"))
            # Of a window that retention has deleted, nothing is restored.
            if fate.state not in ("too_late", "given_up") and not fate.shuffled:
                storage.write_whole(path, [contents[path]])
        world.once_harmed |= world.harmed.keys()
        world.harmed.clear()
        world.store_wrong = 0.0
        for place, held in world.gone.items():
            if is_old(world, place):
                continue
            # As a backup is: its summary last.
            for path in sorted(held, key=lambda path: path.endswith(f"/{SUMMARY}")):
                storage.write_whole(path, [held[path]])
        world.gone.clear()
        for key, was in world.lost_keys.items():
            key.write_bytes(was)
            key.chmod(0o600)
        world.lost_keys.clear()


@dataclass(frozen=True)
class LoseKey(Action):
    """A party's key is damaged, or retired for good."""

    role: OpeningRole
    retired: bool = False

    def do(self, world: World, memory: Memory) -> None:
        keys = world.root / "keys"
        for path in keys.glob(f"{self.role}-*.key"):
            if self.retired:
                if not world.retired:
                    later = datetime.now(timezone.utc) + timedelta(hours=1)
                    rotate(keys, (self.role,), overlap=timedelta(minutes=1), now=later)
                    retire(keys, path.stem.rpartition("-")[2], early=True, now=later + timedelta(hours=1))
                    world.retired.add(self.role)
            elif path not in world.lost_keys:
                world.lost_keys[path] = path.read_bytes()
                path.write_bytes(b"{}")


def replace_ledger(world: World, *, lost: bool) -> None:
    """Put last night's copy of the ledger in its place, or nothing."""
    copy, ledger = world.root / "yesterday.db", world.deployment.ledger
    assert ledger is not None
    if lost:
        ledger.unlink(missing_ok=True)
    elif copy.exists():
        shutil.copy(copy, ledger)
    else:
        return
    world.old_ledger = world.restored = True
    # A limit that the copy has holds on.
    if lost or world.limited != world.limited_then:
        world.limited = None


def done_by_log(world: World) -> set[str]:
    """Return the places of the outputs of which the logs say that they are done."""
    found = set()
    for party in world.deployment.file.parties:
        for one in decisions(world, party):
            if isinstance(one, Finished):
                found.add(f"{CHAIN[one.hop].folder}/{one.batch}")
            elif isinstance(one, Opened) and one.restored is not None:
                found |= {f"{CHAIN[each.hop].folder}/{each.batch}" for each in one.restored.adopted}
    return found
