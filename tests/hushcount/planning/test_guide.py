"""The guide: four answers become a plan that shows what must be seen, with no more epsilon than that needs."""

from __future__ import annotations

import numpy as np
import pytest

from hushcount.errors import UsageError
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import ANY_SEED, build, plan
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.power import detection_power
from hushcount.planning.guide import Answers, Name, answered, check, guide
from hushcount.privacy.amplification import amplify

GIVEN: dict[Name, str] = {"reports": "2e4", "items": "50", "share": "0.02", "trust": "shuffler"}


def test_the_answer_is_the_least_epsilon_that_shows_the_item_and_both_its_numbers() -> None:
    found = guide(answered(GIVEN))
    best, reports = found.plan.chosen, np.array([20_000.0])

    def mechanism(epsilon: float) -> Mechanism:
        settings = plan(best.mechanism, epsilon, 50, {}, Objective(), ANY_SEED)
        return build(best.mechanism, epsilon, 50, settings)

    def power(epsilon: float) -> float:
        return float(detection_power(mechanism(epsilon), reports, 0.02, 0.05 / 50)[0])

    assert power(0.98 * found.plan.epsilon) < 0.95 <= found.power == power(found.plan.epsilon)
    gained = amplify(mechanism(found.plan.epsilon), 20_000, 1e-8)
    assert found.protection.shuffled_epsilon == gained.epsilon < found.plan.epsilon / 5
    assert gained.epsilon < found.windows_epsilon < 0.5 * found.windows_sum
    assert found.windows_sum == pytest.approx(30 * gained.epsilon)
    take, mixed, lies, windows = found.words()
    assert f"take {best.mechanism} with a local epsilon of {found.plan.epsilon:g}" in take
    assert "400 users, is seen with probability 0.95" in take
    assert "with a delta of 1e-08" in mixed
    assert lies.startswith("if the shuffler lies, a report changes them by a factor of")
    assert "a client that reports in 30 windows pays" in windows
    # Both numbers have a delta of their own, and conditions.
    assert found.windows_delta == found.data()["windows"]["delta"] == pytest.approx(30 * 1e-8)
    assert "with a delta of 3e-07 if no parameter and no number of reports follows from results" in windows
    assert "by a fresh report" in windows
    assert mixed.startswith("mixed by an honest shuffler among 20,000 honest reports")


@pytest.mark.long
def test_without_trust_only_the_local_number_is_a_promise() -> None:
    words = [*guide(answered(GIVEN | {"trust": "nobody", "share": "0.005"})).words()]
    assert "nobody is trusted: a report changes the odds" in words[1]
    assert "that is a weak promise" in words[2]
    assert "--memory" in words[-1]
    assert not any("shuffled" in sentence for sentence in words)


def test_answers_are_numbers_or_users_or_unknown() -> None:
    assert answered(GIVEN) == Answers(20_000, 50, 0.02, "shuffler")
    assert answered(GIVEN | {"items": " Unknown ", "share": "500", "trust": "Nobody"}) == Answers(
        20_000, None, 0.025, "nobody"
    )
    # Far below one report in all.
    assert answered(GIVEN | {"reports": "1e9"}).delta == pytest.approx(1e-11)


def test_what_cannot_be_an_answer(subtests: pytest.Subtests) -> None:
    cases = [
        ("reports", "many", r"reports is 'many',.* 1\.\."),
        ("reports", "0.5", "reports is '0.5'"),
        ("reports", "inf", "reports is 'inf'"),
        ("items", "1", "items is '1',.* 2\\.\\.2147483647.*'unknown'"),
        ("share", "0", "share is 0,.* 0"),
        ("share", "1e9", "share is '1e9',.*number"),
        ("share", "nan", "share is 'nan'"),
        ("trust", "you\x1b[2J", r"trust is 'you\\x1b\[2J',.* 'shuffler' or 'nobody'"),
    ]
    for name, text, says in cases:
        with subtests.test(name=name, text=text), pytest.raises(UsageError, match=f"^{says}"):
            check(name, text)
