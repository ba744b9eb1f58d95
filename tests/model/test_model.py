"""The README's promises hold, whatever is drawn; and each mend that is taken out is missed."""

from __future__ import annotations

import pytest

from tests.model.actions import Action, Collect, Kill, Pass, Run, Sleep
from tests.model.losses import Harm, HarmInARun, Heal, LoseKey, RestoreLogs
from tests.model.promises import BUG
from tests.model.removed import MENDS, Mend
from tests.model.search import RETENTIONS, played, search
from tests.model.world import Kind

STEPS = 600
"""Of a search without a mend: some ten times as many as it took."""
SEED = 3


@pytest.mark.parametrize("steps", [15, 100])
@pytest.mark.long(but=("15",))
def test_every_promise_holds_for_so_many_steps(steps: int) -> None:
    """`make test-model` searches for an hour; here it is the same search on every machine."""
    found = search(SEED, steps=steps)
    assert found.steps >= steps
    assert found.trace is None, f"{found.trace.broken}: {found.trace}"


@pytest.mark.parametrize("mend", MENDS, ids=[mend.name for mend in MENDS])
@pytest.mark.long(but=("keys are read before the first hop", "retention waits for receipts"))
def test_a_mend_that_is_taken_out_is_missed(mend: Mend) -> None:
    with mend.removed():
        found = search(SEED, steps=STEPS, faults=mend.faults, shortest=False)
    assert found.trace is not None, f"{found.steps} steps in {found.traces} traces: every promise held"
    assert BUG not in found.trace.broken, f"{mend.name} is not taken out: {found.trace.broken}"
    print(f"{mend.name}: {found.steps} steps: {found.trace.broken}")


_LATE = "write_whole */shuffled/*/summary.json"
FOUND = [
    # A run that has moved an output sleeps, and writes its summary after retention has deleted the output.
    (Kind(False, RETENTIONS[2]), (Collect(), Pass(), Sleep(_LATE, 6))),
    (Kind(True, RETENTIONS[2]), (Collect(), Pass(), Sleep(_LATE, 6))),
    # The same, and it is killed before it looks again.
    (
        Kind(True, RETENTIONS[2]),
        (Collect(), Pass(), Sleep(_LATE, 6, dies=True), Run()),
    ),
    # A segment is missing before its batch is shuffled, and comes back; its manifest must still be there.
    (
        Kind(False, RETENTIONS[2]),
        (
            *(Collect(), Pass(), Run(), Collect(1), Pass(5)),
            *(LoseKey("aux_server"), HarmInARun("put_absent */shuffler/words/*5.json", "delete")),
            *(Run(), Heal(), Run()),
        ),
    ),
    # The logs are lost after retention deleted what the shuffler handed on, and only the results are there to speak.
    (Kind(False, RETENTIONS[1]), (Collect(1), Pass(5), Run(), RestoreLogs(), Run())),
    # The same by two deployments, whose logs are those of last night.
    (Kind(False, RETENTIONS[2], True), (Collect(1), Pass(), Run(), Collect(1), Pass(5), Run(), RestoreLogs(), Run())),
    # A run lists outputs, and meanwhile another one publishes.
    (Kind(), (Collect(), Pass(), Sleep("list_tree */results/*"))),
]
"""Traces that broke a promise once."""


@pytest.mark.parametrize(("kind", "actions"), FOUND, ids=[f"{number}" for number, _ in enumerate(FOUND)])
def test_what_broke_a_promise_once_does_so_no_more(kind: Kind, actions: tuple[Action, ...]) -> None:
    assert played(kind, actions).broken == ""


def test_a_trace_is_played_as_it_is_printed() -> None:
    actions = (Collect(), Pass(), Harm("cut"), Kill(30), Run())
    trace = played(Kind(), actions)
    assert (trace.actions, trace.broken) == (actions, "")
    assert str(trace) == (
        "on a disk: Collect(days_ago=0, copies=False, few=False, left=False, wrong=0.0); Pass(days=1); "
        "Harm(how='cut'); Kill(at=30); Run(wrong=0.0)"
    )
