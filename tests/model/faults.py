"""The kinds of what may go wrong; each draws one of its kind."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.model.actions import Action, Collect, Kill, NoAnswer, Run, Sleep, Together
from tests.model.losses import Checkpoints, Delete, Harm, HarmInARun, LoseKey, Restore, RestoreLogs
from tests.model.operating import Change, Down, Jump, Limit, OtherName, StoreClock

_COLLECTORS = (("idle",), ("idle", "away"), ())
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
    "length": lambda draw: Change("length", draw.choice([6, 12, 12, 24, 48]), draw.random() < 0.6),
    "grace": lambda draw: Change("grace", draw.choice([6, 12, 24, 48, 72])),
    "change in a run": lambda draw: Change(
        draw.choice(["length", "grace"]), draw.choice([6, 12, 48]), during=draw.randint(1, 60)
    ),
    "waits": lambda draw: draw.choice([Change("patience", 6), Change("collectors", draw.choice(_COLLECTORS))]),
    "receipt never": lambda draw: Down(draw.randint(5, 8)),
    "receipt late": lambda draw: Down(draw.randint(1, 6), draw.random() < 0.5),
    "harm": lambda draw: Harm(draw.choice(["cut", "delete", "replace"])),
    "harm in a run": lambda draw: HarmInARun(
        draw.choice([draw.randint(1, 12), "put_absent */shuffler/words/*.json"]),
        draw.choice(["cut", "delete", "replace"]),
    ),
    "key": lambda draw: LoseKey(draw.choice(["analyzer", "aux_server"]), draw.random() < 0.5),
    "limit": lambda draw: Limit(draw.choice([0.0, 400.0])),
    "clock": lambda draw: Run(draw.choice([400.0, -3.0])),
    "collector's clock": lambda draw: draw.choice(
        [Jump(12, draw.random() < 0.5, draw.random() < 0.5), Collect(wrong=draw.choice([3.0, -3.0]))]
    ),
    "store's clock": lambda draw: StoreClock(draw.choice([12.0, -3.0])),
}
"""What may go wrong, by kind."""
CHANGES = ("length", "grace", "change in a run", "waits")
"""Those that show in the days that follow."""
IN_A_RUN = (Kill, Sleep, Together, NoAnswer, OtherName, HarmInARun)
