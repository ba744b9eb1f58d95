"""What happens in a world: what should, and what makes an assumption of a run false. Each is a value that prints."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from random import Random
from typing import Any

from hushcount.errors import HushcountError
from keys.roles import OpeningRole
from keys.rotation import retire, rotate
from pipelines.files import storage
from pipelines.jobs.discover import plan_discover
from pipelines.jobs.job import run
from pipelines.ledger.report import set_limit
from tests.model.points import Process
from tests.model.promises import Broken, Memory, look, look_after_a_run
from tests.model.seen import charges, output, outputs
from tests.model.world import World


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

    def do(self, world: World, memory: Memory) -> None:
        window = max(0, int(world.day) - self.days_ago)
        before = [sent for sent in world.sent if sent.window in (window - 1, window) and not harmed(world, sent)]
        world.collect(window, before[-1] if self.copies and before else None)


@dataclass(frozen=True)
class Pass(Action):
    """Days pass, of each a collector that received nothing closes its window; the first night the state is copied."""

    days: int = 1

    def do(self, world: World, memory: Memory) -> None:
        if world.state.exists():
            shutil.copy(world.state, world.root / "yesterday.db")
        for window in range(int(world.day), int(world.day) + self.days):
            world.close(window, "idle", {})
        world.day = int(world.day) + self.days + 0.1


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
            if charge not in spent and needed & lost:
                raise Broken(f"{charge.hop} was charged, and the key of the {', '.join(needed & lost)} is lost")
        look(world, memory)
        if done is not None and not self.wrong and not world.harmed:
            look_after_a_run(world, memory)


@dataclass(frozen=True)
class Kill(Action):
    """A run whose process is killed before its change of this number."""

    at: int

    def do(self, world: World, memory: Memory) -> None:
        world.run(self.at, world.points.kill)
        look(world, memory)


@dataclass(frozen=True)
class TakeOver(Action):
    """A run loses its lock before its change of this number; another one works meanwhile, then the first goes on.

    Not between its proof of the lock and its mark, the next step: a run that sleeps just there while another makes the
    same output puts its own mark over the other's. No store compares and sets (docs/adr/0024-under-fire.md).
    """

    at: int

    def do(self, world: World, memory: Memory) -> None:
        def another() -> None:
            *_, before, change = ["", *world.points.running[-1].names]
            if change == "transaction" and before.endswith("/summary.json"):
                return
            lock = world.state.with_name(f"{world.state.name}.lock")
            lock.unlink(missing_ok=True)
            world.run()
            look(world, memory)

        done = world.run(self.at, another)
        look(world, memory)
        if done is not None and not world.harmed:
            look_after_a_run(world, memory)


@dataclass(frozen=True)
class Restore(Action):
    """The state is replaced by last night's copy."""

    def do(self, world: World, memory: Memory) -> None:
        copy = world.root / "yesterday.db"
        if copy.exists():
            shutil.copy(copy, world.state)


@dataclass(frozen=True)
class Forget(Action):
    """The state is deleted."""

    def do(self, world: World, memory: Memory) -> None:
        world.state.unlink(missing_ok=True)


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
            world.harmed.add(path)


@dataclass(frozen=True)
class Heal(Action):
    """What was damaged or deleted is restored."""

    def do(self, world: World, memory: Memory) -> None:
        contents = {path: content for sent in world.sent for path, content in sent.content.items()}
        for path in world.harmed:
            storage.write_whole(path, [contents[path]])
        world.harmed.clear()
        for path, held in world.lost_keys.items():
            path.write_bytes(held)
            path.chmod(0o600)
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
    """While a run is before its change of this number, somebody discovers by hand with another name of its ledger."""

    at: int

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


def harmed(world: World, sent: Any) -> bool:
    """Return whether something of a segment is not what it was."""
    return bool(world.harmed & sent.content.keys())


ORDINARY: tuple[Callable[[Random], Action], ...] = (
    lambda draw: Collect(draw.choice([0, 1, 2]), draw.random() < 0.2),
    lambda draw: Pass(draw.choice([1, 1, 2, 5])),
    lambda _: Run(),
)
FAULTS: dict[str, Callable[[Random], Action]] = {
    "kill": lambda draw: Kill(draw.randint(1, 80)),
    "take over": lambda draw: TakeOver(draw.randint(1, 80)),
    "other name": lambda draw: OtherName(draw.randint(20, 60)),
    "restore": lambda draw: draw.choice([Restore(), Forget()]),
    "harm": lambda draw: Harm(draw.choice(["cut", "delete", "replace"])),
    "key": lambda draw: LoseKey(draw.choice(["analyzer", "aux_server"]), draw.random() < 0.5),
    "limit": lambda draw: Limit(draw.choice([0.0, 400.0])),
    "clock": lambda draw: Run(draw.choice([400.0, -3.0])),
}
"""What may go wrong, by kind."""
IN_A_RUN = (Kill, TakeOver, OtherName)
