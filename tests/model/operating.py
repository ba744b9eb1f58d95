"""What operators do, and what becomes of clocks and of parties elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from hushcount.errors import HushcountError
from pipelines.files import storage
from pipelines.jobs.discover import plan_discover
from pipelines.jobs.job import run
from pipelines.ledger.overview import set_limit
from pipelines.log.log import Logs
from tests.model.actions import Action, Pass, Run, finish
from tests.model.collectors import collect, end_window
from tests.model.memory import Broken, Memory
from tests.model.points import Process
from tests.model.promises import look
from tests.model.seen import charges, output, outputs
from tests.model.world import World
from tests.support.collecting import DAY


@dataclass(frozen=True)
class Change(Action):
    """The operator changes a setting, and starts the collectors anew, or only some of them.

    Attributes:
        to: in hours, if it is no list of names.
        during: a run is before this change of its own meanwhile, and another one follows the new settings; 0: none is.
    """

    what: Literal["length", "grace", "patience", "collectors"]
    to: int | tuple[str, ...]
    restarted: bool = True
    during: int = 0

    def do(self, world: World, memory: Memory) -> None:
        if not self.during:
            self._change(world)
            return

        def other() -> None:
            with world.points.outside():
                world.end_lease()
                self._change(world)
            world.run()
            look(world, memory)

        finish(world, memory, world.run(self.during, other))

    def _change(self, world: World) -> None:
        changed: dict[str, Any] = {self.what: self.to}
        world.change(replace(world.settings, **changed), restarted=self.restarted)


@dataclass(frozen=True)
class Jump(Action):
    """A machine's clock jumps ahead: its collector ends every window until then; a run works by it; then it is set.

    Attributes:
        reports: whether some had come in the window that was running.
        runs: whether a run works by that clock; otherwise it is on another machine.
    """

    days: int
    reports: bool
    runs: bool

    def do(self, world: World, memory: Memory) -> None:
        if Logs(world.parts[0]).read("words").latest is None:
            # Nobody notices a clock that was wrong from the first manifest on.
            return
        windows = world.collecting.copy().ended(world.moment(), world.moment() + self.days * DAY)
        if self.reports:
            collect(world, windows.pop(0), wrong=self.days)
        for window in windows:
            end_window(world, window, "fast", {}, wrong=self.days)
        if self.runs:
            Run(self.days).do(world, memory)


@dataclass(frozen=True)
class StoreClock(Action):
    """The clock of a store of objects is wrong by so many days, until it is set."""

    wrong: float

    def do(self, world: World, memory: Memory) -> None:
        if world.kind.remote:
            world.store_wrong = self.wrong


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
