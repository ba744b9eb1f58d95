"""How many reports it takes to see an item: exact tails against the law, and against simulated collections."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hushcount.errors import UsageError
from hushcount.oracles.catalogue import CATALOGUE, build
from hushcount.oracles.power import detection_power
from hushcount.oracles.tally import Tally
from hushcount.planning.planner import Detection, Task, to_detect
from tests.support.statistics import deviations
from tests.support.words import SeededWords


@pytest.mark.long
def test_an_item_of_the_wanted_share_is_detected_as_often_as_planned() -> None:
    """Fails with probability below 1e-6. Simulated with the mechanism and the analyzer's own rule; half is rejected."""
    wanted, domain = Detection(0.1, 0.9, 0.05 / 50), 50
    plan, power = to_detect(Task(domain), wanted, 2.0, None)
    mechanism = build(plan.chosen.mechanism, plan.epsilon, domain, plan.chosen.parameters)
    items, runs, random = np.arange(domain, dtype=np.uint64), 800, np.random.default_rng(3)
    assert power >= 0.9
    seen = {}
    for reports in (plan.reports, plan.reports // 2):
        holds = random.random((runs, reports)) < 0.1
        held = np.where(holds, 0, random.integers(1, domain, holds.shape)).astype(np.uint64)
        sent = mechanism.encode(held.ravel(), SeededWords(reports)).reshape(runs, reports)
        found = 0
        for run in range(runs):
            tally = mechanism.new_tally(items)
            mechanism.accumulate(tally, sent[run], items)
            found += bool(mechanism.estimate(Tally(tally, reports, items), items).detected(0.05, domain)[0])
        seen[reports] = found / runs
    error = deviations() * math.sqrt(power * (1.0 - power) / runs)
    assert abs(seen[plan.reports] - power) <= 1.25 * error
    assert seen[plan.reports // 2] < 0.9 - error


@pytest.mark.long
def test_no_fewer_reports_are_enough_and_epsilon_is_the_other_side() -> None:
    wanted = Detection(0.001, 0.95, 0.001)
    # Its plan costs little: no search for the size of a window in a field of 2**61 - 1 cells.
    task = Task(None, mechanisms=("olh",))
    plan, power = to_detect(task, wanted, 1.0, None)
    mechanism = build(plan.chosen.mechanism, plan.epsilon, None, plan.chosen.parameters)
    more = np.floor(plan.reports * np.linspace(1.0, 2.0, 40))
    assert detection_power(mechanism, more, 0.001, 0.001).min() >= 0.95
    assert detection_power(mechanism, np.array([0.98 * plan.reports // 1]), 0.001, 0.001)[0] < 0.95 <= power
    back, reached = to_detect(task, wanted, None, plan.reports)
    assert back.epsilon == pytest.approx(1.0, abs=0.011)
    assert reached >= 0.95


def test_what_is_left_out_is_said() -> None:
    plan, _ = to_detect(Task(100), Detection(0.1, 0.95, 0.001), 1.0, None)
    planned = {candidate.mechanism for candidate in plan.candidates}
    assert planned | plan.left_out.keys() == set(CATALOGUE)
    assert {name for name, reason in plan.left_out.items() if "depends on what all others hold" in reason} == {
        "rhr", *(name for name, one in CATALOGUE.items() if one.seeded),
    }  # fmt: skip


def test_what_cannot_be_detected_or_planned_is_one_sentence() -> None:
    with pytest.raises(UsageError, match=r"10 reports .*epsilon"):
        to_detect(Task(100), Detection(0.001, 0.95, 0.001), None, 10)
    with pytest.raises(UsageError, match="gcms, rhr:"):
        to_detect(Task(100, mechanisms=("gcms", "rhr")), Detection(0.1, 0.95, 0.001), 1.0, None)
    for share, power in ((0.0, 0.9), (0.1, 1.0), (math.nan, 0.9)):
        with pytest.raises(UsageError, match=r"\(0, 1\)"):
            Detection(share, power, 0.001)
