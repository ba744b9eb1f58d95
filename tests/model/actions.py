"""What happens in a world: what should, and what happens to a run. Each is a value that prints."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from pipelines.files import storage
from pipelines.schedule.done import Done
from tests.model.collectors import collect, end_window
from tests.model.made import FEW, SEGMENT
from tests.model.memory import Broken, Memory
from tests.model.points import Answer, take_turns
from tests.model.promises import look, look_after_a_run
from tests.model.seen import charges
from tests.model.world import Sent, World
from tests.support.collecting import DAY


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
    """A collector ends a window: the present one, or one so many days ago, which comes late; clients may send again.

    Attributes:
        left: whether it is one that was not started anew when the settings changed.
        wrong: by how many days the clock of its machine is, which stamps no file in the store.
    """

    days_ago: int = 0
    copies: bool = False
    few: bool = False
    left: bool = False
    wrong: float = 0.0

    def do(self, world: World, memory: Memory) -> None:
        timeline = world.left if self.left and world.left is not None else world.collecting
        # What a wrong clock shows one collector is of no other's time.
        timeline = timeline.copy() if self.wrong else timeline
        window = timeline.at(world.moment() + (self.wrong - self.days_ago) * DAY)
        before = [one for one in world.sent if one.window.start <= window.start <= one.window.end]
        copies = [one for one in before if not harmed(world, one)][-1:] if self.copies else []
        collect(world, window, FEW if self.few else SEGMENT, *copies)


@dataclass(frozen=True)
class Pass(Action):
    """Days pass, and collectors that received nothing end their windows; before, ledger and logs are copied."""

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
            before = world.moment()
            world.day = int(world.day) + 1.1
            for name, timeline in (("idle", world.collecting), ("left", world.left)):
                for window in [] if timeline is None else timeline.ended(before, world.moment()):
                    end_window(world, window, name, {})


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

        finish(world, memory, world.run(self.at, others))


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
        finish(world, memory, ends[-1])


@dataclass(frozen=True)
class NoAnswer(Action):
    """A run that puts an entry as number `entry`, and gets no answer, or a wrong one."""

    entry: int
    answer: Answer

    def do(self, world: World, memory: Memory) -> None:
        finish(world, memory, world.run(at_entry=self.entry, answer=self.answer))


def harmed(world: World, sent: Sent) -> bool:
    """Return whether something of a segment is not what it was."""
    return bool(world.harmed.keys() & sent.content.keys())


def finish(world: World, memory: Memory, done: Done | None) -> None:
    """Look at a world after a run, more closely if that came to its end."""
    look(world, memory)
    if done is not None:
        look_after_a_run(world, memory)


ORDINARY: tuple[Callable[[Random], Action], ...] = (
    lambda draw: Collect(draw.choice([0, 1, 2]), draw.random() < 0.2, draw.random() < 0.3, draw.random() < 0.3),
    lambda draw: Pass(draw.choice([1, 1, 2, 5])),
    lambda _: Run(),
)
