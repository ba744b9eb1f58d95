"""What happens in a world: what should, and what makes an assumption of a run false. Each is a value that prints."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from random import Random

from hushcount.errors import HushcountError
from keys.roles import OpeningRole
from keys.rotation import retire, rotate
from pipelines.files import storage
from pipelines.jobs.discover import plan_discover
from pipelines.jobs.job import run
from pipelines.ledger.report import set_limit
from pipelines.log.entries import Charging, Finished, Opened
from pipelines.log.hops import CHAIN
from pipelines.outputs.staging import SUMMARY
from pipelines.schedule.report import Done
from pipelines.schedule.work import Vouched
from tests.model.made import FEW, SEGMENT
from tests.model.points import Answer, Process, take_turns
from tests.model.promises import LOST, Broken, Memory, is_old, look, look_after_a_run
from tests.model.seen import Fate, charges, decisions, fates, output, outputs
from tests.model.world import Sent, World


@dataclass(frozen=True)
class Action:
    """One step of a trace."""

    def do(self, world: World, memory: Memory) -> None:
        """Do it.

        Raises:
            Broken: it shows that a promise is.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Collect(Action):
    """Collectors close a window: today's, or one so many days ago, which comes late; clients may send again."""

    days_ago: int = 0
    copies: bool = False
    few: bool = False

    def do(self, world: World, memory: Memory) -> None:
        window = max(0, int(world.day) - self.days_ago)
        before = [sent for sent in world.sent if sent.window in (window - 1, window) and not harmed(world, sent)]
        copies = before[-1] if self.copies and before else None
        world.collect(window, FEW if self.few else SEGMENT, copies)


@dataclass(frozen=True)
class Pass(Action):
    """Days pass, of each a collector that received nothing closes its window; the first night the ledger is copied."""

    days: int = 1

    def do(self, world: World, memory: Memory) -> None:
        ledger = world.deployment.ledger
        if ledger is not None and ledger.exists():
            shutil.copy(ledger, world.root / "yesterday.db")
            world.limited_then = world.limited
        logs = world.deployment.folder("log")
        paths = [path for path in storage.list_objects(logs) if not path.endswith(".lease.json")]
        world.logs_then = {path: storage.read_bytes(path, 1 << 30) for path in paths}
        for _ in range(self.days):
            window = int(world.day)
            world.day = window + 1.1
            world.close(window, "idle", {})


@dataclass(frozen=True)
class Run(Action):
    """`hushcount run`; with a clock that is wrong by so many days, if any."""

    wrong: float = 0.0

    def do(self, world: World, memory: Memory) -> None:
        spent, lost = charges(world), world.lost_roles()
        world.wrong = self.wrong
        try:
            done = world.run()
        finally:
            world.wrong = 0.0
        for charge in charges(world):
            needed = {"analyzer"} if charge.hop == "analyze" else {"analyzer", "aux_server"}
            if charge not in spent and needed & lost and not world.restored:
                raise Broken(f"{charge.hop} was charged, and the key of the {', '.join(needed & lost)} is lost")
        look(world, memory)
        if done is not None and not self.wrong:
            look_after_a_run(world, memory)


@dataclass(frozen=True)
class Kill(Action):
    """A run whose process is killed before this change."""

    at: int | str

    def do(self, world: World, memory: Memory) -> None:
        world.run(self.at, world.points.kill)
        look(world, memory)


@dataclass(frozen=True)
class Sleep(Action):
    """A run sleeps before this change, perhaps for days; the others take its lease, and then it wakes.

    Or it makes this one change, and is killed before the next.
    """

    at: int | str
    days: int = 0
    runs: int = 1
    dies: bool = False

    def do(self, world: World, memory: Memory) -> None:
        def others() -> None:
            with world.points.outside():
                world.end_lease()
                if self.days:
                    Pass(self.days).do(world, memory)
            for _ in range(self.runs):
                world.run()
                look(world, memory)
            if self.dies:
                world.points.kill_next()

        _finish(world, memory, world.run(self.at, others))


@dataclass(frozen=True)
class Together(Action):
    """Two runs at once, neither of which minds the other's lease; they take turns at their changes, as drawn."""

    seed: int

    def do(self, world: World, memory: Memory) -> None:
        ends: list[Done | None] = []

        def work(turn: Callable[[], None]) -> None:
            with world.points.outside():
                world.end_lease()
            ends.append(world.run(turn=turn))

        take_turns(Random(self.seed), [work, work])
        _finish(world, memory, ends[-1])


@dataclass(frozen=True)
class NoAnswer(Action):
    """A run that puts an entry as number `entry`, and gets no answer, or a wrong one."""

    entry: int
    answer: Answer

    def do(self, world: World, memory: Memory) -> None:
        _finish(world, memory, world.run(at_entry=self.entry, answer=self.answer))


@dataclass(frozen=True)
class Checkpoints(Action):
    """The checkpoints of the logs are deleted, or the newest is cut."""

    cut: bool = False

    def do(self, world: World, memory: Memory) -> None:
        for party in world.deployment.file.parties:
            folder = world.deployment.folder("log", party, "words", "checkpoints", "000001")
            paths = [path for path, _ in storage.list_files(folder, ".json")]
            for path in paths[-1:] if self.cut else paths:
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
        _finish(world, memory, world.run(vouched=Vouched(ledger_was_lost=True)))


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
        _finish(world, memory, world.run(vouched=vouched))


@dataclass(frozen=True)
class Down(Action):
    """The parties that read what the shuffler hands on are down for days; or they read, and their receipts are late."""

    days: int
    reads: bool = False

    def do(self, world: World, memory: Memory) -> None:
        late: dict[str, bytes] = {}
        for _ in range(self.days):
            Pass().do(world, memory)
            if not world.kind.apart:
                continue
            world.run(parts=world.parts[:1])
            look(world, memory)
            if self.reads:
                world.run(parts=world.parts[1:])
                paths = storage.list_objects(world.deployment.folder("receipts"))
                late |= {path: storage.read_bytes(path) for path in paths}
                for path in paths:
                    storage.remove(path)
                look(world, memory)
        for path, held in late.items():
            storage.write_whole(path, [held])


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
    """What was damaged or deleted is restored."""

    def do(self, world: World, memory: Memory) -> None:
        contents = {path: content for sent in world.sent for path, content in sent.content.items()}
        told, root = fates(world), world.deployment.folder("segments")
        for path in world.harmed:
            fate = told.get(storage.relative(path, root), Fate("stored"))
            # Of a window that retention has deleted, nothing is restored.
            if fate.state not in ("too_late", "given_up") and not fate.shuffled:
                storage.write_whole(path, [contents[path]])
        world.harmed.clear()
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


@dataclass(frozen=True)
class Limit(Action):
    """`hushcount ledger set` with a clock so many days ahead: no more than the first releases fit."""

    ahead: float = 0.0

    def do(self, world: World, memory: Memory) -> None:
        ledger = world.deployment.ledger
        assert ledger is not None
        spent = sum(charge.epsilon for charge in charges(world))
        world.wrong = self.ahead
        try:
            set_limit(ledger, "words", spent + 5.0, 0.5, 30)
        except HushcountError as error:
            world.said.append(str(error))
        else:
            world.limited = (spent + 5.0, "")
        finally:
            world.wrong = 0.0


@dataclass(frozen=True)
class OtherName(Action):
    """While a run is before this change, somebody discovers by hand with another name of its ledger."""

    at: int | str

    def do(self, world: World, memory: Memory) -> None:
        name = world.root / "other.db"
        if world.deployment.ledger is not None and not name.is_symlink():
            name.symlink_to(world.deployment.ledger)
        world.run(self.at, lambda: self._by_hand(world, memory))
        look(world, memory)

    def _by_hand(self, world: World, memory: Memory) -> None:
        for one in [one for one in outputs(world) if one.folder == "shuffled"]:
            out = world.root / "by-hand" / one.batch
            source = world.deployment.folder("shuffled", "words", one.batch)
            if out.exists() or not (world.root / "other.db").exists():
                continue
            try:
                with world.points.process(Process()):
                    keys, ledger = world.root / "keys", world.root / "other.db"
                    run(plan_discover(world.campaign_path, source, keys, str(out), ledger=ledger))
            except HushcountError as error:
                world.said.append(str(error))
                continue
            made = output("found", str(out))
            first = memory.draws.setdefault(made.key or "", made.values)
            if first != made.values:
                raise Broken(f"two draws of {one.batch} were handed out under one charge")


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


def harmed(world: World, sent: Sent) -> bool:
    """Return whether something of a segment is not what it was."""
    return bool(world.harmed.keys() & sent.content.keys())


def _finish(world: World, memory: Memory, done: Done | None) -> None:
    look(world, memory)
    if done is not None:
        look_after_a_run(world, memory)


ORDINARY: tuple[Callable[[Random], Action], ...] = (
    lambda draw: Collect(draw.choice([0, 1, 2]), draw.random() < 0.2, draw.random() < 0.3),
    lambda draw: Pass(draw.choice([1, 1, 2, 5])),
    lambda _: Run(),
)
FAULTS: dict[str, Callable[[Random], Action]] = {
    "kill": lambda draw: Kill(draw.randint(1, 120)),
    "killed deletion": lambda _: Kill("remove */shuffled/*/reports/*"),
    "sleep": lambda draw: Sleep(
        draw.randint(1, 120), draw.choice([0, 0, 1, 6]), draw.choice([1, 1, 2]), draw.random() < 0.2
    ),
    "two runs": lambda draw: Together(draw.randrange(1 << 16)),
    "no answer": lambda draw: NoAnswer(draw.randint(1, 8), draw.choice(["lost", "taken", "refused"])),
    "other name": lambda draw: OtherName(draw.randint(20, 60)),
    "checkpoints": lambda draw: Checkpoints(draw.random() < 0.5),
    "delete": lambda draw: Delete(draw.choice(["shuffled", "released", "found", "results"]), draw.random() < 0.6),
    "ledger": lambda draw: Restore(draw.random() < 0.3),
    "logs": lambda draw: RestoreLogs(
        draw.random() < 0.2, draw.random() < 0.4, draw.choice([0, 0, draw.randint(1, 60)])
    ),
    "receipt late": lambda draw: Down(draw.randint(1, 6), draw.random() < 0.5),
    "harm": lambda draw: Harm(draw.choice(["cut", "delete", "replace"])),
    "harm in a run": lambda draw: HarmInARun(
        draw.choice([draw.randint(1, 12), "put_absent */shuffler/words/*.json"]),
        draw.choice(["cut", "delete", "replace"]),
    ),
    "key": lambda draw: LoseKey(draw.choice(["analyzer", "aux_server"]), draw.random() < 0.5),
    "limit": lambda draw: Limit(draw.choice([0.0, 400.0])),
    "clock": lambda draw: Run(draw.choice([400.0, -3.0])),
}
"""What may go wrong, by kind."""
IN_A_RUN = (Kill, Sleep, Together, NoAnswer, OtherName, HarmInARun)
