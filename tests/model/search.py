"""Search: traces of random actions until a promise is broken, then the same trace without what it does not need."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from tests.model.actions import ORDINARY, Action, Collect, Pass, Run
from tests.model.faults import CHANGES, FAULTS, IN_A_RUN
from tests.model.losses import Heal
from tests.model.memory import Broken, Memory
from tests.model.promises import remember
from tests.model.world import Kind, world

RETENTIONS = (
    "",
    '[retention]\nshuffled = "3d"\nreleased = "3d"\n',
    '[retention]\nsegments = "3d"\nshuffled = "3d"\n',
    '[retention]\nshuffled = "3d"\nat_most = "4d"\n',
)
_AT_THE_END: tuple[Action, ...] = (Heal(), Run())
"""What every trace ends with: all that can be restored is, and a run does what is due."""


@dataclass(frozen=True)
class Trace:
    """What happened in a world.

    Attributes:
        kind: of the world.
        actions: in their order.
        broken: which promise it broke, and how; "": none.
    """

    kind: Kind
    actions: tuple[Action, ...]
    broken: str = ""

    def __str__(self) -> str:
        where = "in a store" if self.kind.remote else "on a disk"
        kept = ", with retention" if self.kind.retention else ""
        parts = ", parties apart" if self.kind.apart else ""
        grace = f", grace of {self.kind.grace} days" if self.kind.grace > 1 else ""
        return f"{where}{kept}{parts}{grace}: " + "; ".join(map(repr, self.actions))


@dataclass
class Searched:
    """A search.

    Attributes:
        trace: the shortest that broke a promise, or None.
        steps: actions until it was found.
        seconds: the same.
        traces: how many.
    """

    trace: Trace | None = None
    steps: int = 0
    seconds: float = 0.0
    traces: int = 0


def played(kind: Kind, actions: Sequence[Action]) -> Trace:
    """Play actions in a new world; return what was done until a promise was broken, or all of it."""
    done: list[Action] = []
    with world(kind) as here:
        memory = Memory()
        if kind.retention:
            here.points.before_removal = lambda: remember(here, memory)
        for action in actions:
            done.append(action)
            try:
                action.do(here, memory)
            except Broken as broken:
                return Trace(kind, tuple(done), str(broken))
    return Trace(kind, tuple(done))


def drawn(draw: Random, fault: str, others: Sequence[str]) -> tuple[Kind, list[Action]]:
    """Draw a world and a trace: days as they should be, with a fault of a kind, and perhaps one of others.

    Faults that come alone are found in fewer steps, and most need nothing but ordinary days around them.
    """
    faults = [fault] if draw.random() < 0.6 else [fault, draw.choice(others)]
    changes = [name for name in faults if name in CHANGES]
    faults += [name for name in changes if draw.random() < 0.3]
    apart = "receipt late" in faults or draw.random() < 0.2
    kind = Kind(draw.random() < 0.5 or "store's clock" in faults, draw.choice(RETENTIONS), apart)
    if "receipt never" in faults:
        kind = replace(kind, retention=RETENTIONS[-1], apart=True)
    elif "grace" in faults and draw.random() < 0.5:
        kind = replace(kind, retention="", grace=3)
    elif not kind.retention and draw.random() < 0.5:
        # Retention keeps what is within twice the grace.
        kind = replace(kind, grace=3)
    days: list[Action] = [Collect(), Pass(), Run(), Collect(1, draw.random() < 0.3), Pass(draw.choice([1, 5])), Run()]
    if draw.random() < 0.3:
        days[draw.choice([1, 3]) : 0] = [draw.choice(ORDINARY)(draw) for _ in range(draw.randint(1, 2))]
    if kind.grace > 1:
        # Two windows are due at once.
        days[2:3] = []
    if changes:
        # What a change does shows in the days around it.
        days += [*_day(draw), *_day(draw)]
    days += _AT_THE_END
    for name in faults:
        runs = [index for index, action in enumerate(days) if action == Run()]
        if name in CHANGES:
            runs = runs[1:-2] or runs
        elif name == "store's clock":
            runs = [0, *runs]
        where, happens = draw.choice(runs), FAULTS[name](draw)
        # What happens in a run takes its place, or comes before it.
        days[where : where + (isinstance(happens, IN_A_RUN) and draw.random() < 0.5)] = [happens]
    return kind, days


def _day(draw: Random) -> list[Action]:
    late = Collect(draw.choice([1, 2]), few=draw.random() < 0.5, left=draw.random() < 0.5)
    today = Collect(few=draw.random() < 0.3, left=draw.random() < 0.4)
    return [*([late] if draw.random() < 0.5 else []), today, Pass(draw.choice([1, 1, 3])), Run()]


def search(
    seed: int,
    *,
    steps: int,
    seconds: float = float("inf"),
    faults: Sequence[str] = tuple(FAULTS),
    shortest: bool = True,
) -> Searched:
    """Search for a trace that breaks a promise.

    Args:
        seed: of what is drawn.
        steps: at most, without those of shortening.
        seconds: at most.
        faults: their kinds, taken in turn.
        shortest: whether what is found is shortened.
    """
    draw, found, began, kinds = Random(seed), Searched(), time.monotonic(), list[str]()
    while found.steps < steps and time.monotonic() - began < seconds:
        if not kinds:
            kinds = draw.sample(faults, len(faults))
        trace = played(*drawn(draw, kinds.pop(), faults))
        found.traces += 1
        found.steps += len(trace.actions)
        if trace.broken:
            found.seconds = time.monotonic() - began
            found.trace = shortened(trace) if shortest else trace
            return found
    found.seconds = time.monotonic() - began
    return found


def shortened(trace: Trace) -> Trace:
    """Leave out what a trace does not need to break a promise."""
    best, changed = trace, True
    while changed:
        changed = False
        for without in _shorter(best):
            tried = played(best.kind, without)
            if tried.broken:
                best, changed = tried, True
                break
    return best


def _shorter(trace: Trace) -> Iterator[tuple[Action, ...]]:
    for index in range(len(trace.actions)):
        yield trace.actions[:index] + trace.actions[index + 1 :]
