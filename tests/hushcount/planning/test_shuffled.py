"""The plan under two limits: what it promises is what a statement prints, and nothing better is within the limits."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hushcount.errors import UsageError
from hushcount.maths.figures import users
from hushcount.oracles.catalogue import ANY_SEED, CATALOGUE, build
from hushcount.oracles.encoders.identity import Identity
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.responders.unary import Unary
from hushcount.planning.planner import Candidate, Task, make_plan
from hushcount.planning.shuffled import Limits, shuffled_plan
from hushcount.privacy.amplification import amplify, largest_local_epsilon
from hushcount.privacy.blanket import blanket_law

FEW = ("grr", "ss", "oue", "ais", "ocms", "gcms")


def mechanism(found: Candidate, epsilon: float, task: Task) -> Mechanism:
    seed = {"seed": ANY_SEED} if CATALOGUE[found.mechanism].seeded else {}
    return build(found.mechanism, epsilon, task.domain, {**found.parameters, **seed})


def test_the_error_of_a_million_reports_falls_from_1919_users_to_9() -> None:
    task = Task(26_000, mechanisms=("grr", "ais"))
    found = shuffled_plan(task, Limits(1.0, 1e-8), 10**6)
    assert make_plan(task, 1.0, 10**6).chosen.error == found.alone == pytest.approx(1919, abs=1)
    assert found.plan.chosen.error == pytest.approx(9.1, abs=0.05)
    assert found.plan.epsilon == found.chosen.local_epsilon == 10.42
    both, lying, error = found.words()
    assert "shuffled epsilon 0.9943 with a delta of 1e-08: if the shuffler is honest" in both
    assert "except with a chance of 1 in 100,000,000" in both
    assert "local epsilon 10.42: if the shuffler lies, a report changes these odds by a factor of 33600" in lying
    assert "reveals the value" in lying
    assert error.startswith("error 9.099 users, 9.1e-06 of all reports: a standard error of ")
    assert "it would be 1,919 users" in error


@pytest.mark.parametrize(("name", "collides"), [("grr", False), ("gcms", True)])
def test_the_error_is_said_with_its_parts_and_collisions_are_no_standard_error(name: str, collides: bool) -> None:
    found = shuffled_plan(Task(26_000, mechanisms=(name,)), Limits(1.0, 1e-8), 10**6)
    best, said = found.plan.chosen, found.words()[-1]
    assert (best.collision_error_users > 0) == collides
    assert f"error {users(best.error)} users" in said
    assert f"a standard error of {users(best.standard_error_users)}, and " in said
    collisions = f"at most {users(best.collision_error_users)} of collisions" if collides else "no collisions"
    assert f"and {collisions}; with a local epsilon" in said
    parts = (best.standard_error_users, best.collision_error_users)
    assert math.hypot(*parts) == pytest.approx(best.error)


@pytest.mark.long
@settings(max_examples=6, deadline=None)
@given(
    st.sampled_from([0.05, 0.3, 1.0, 3.0]),
    st.sampled_from([1e-10, 1e-6]),
    st.sampled_from([50, 3_000, 40_000]),
    st.sampled_from([5, 300]),
    st.sampled_from(FEW),
    st.sampled_from([0.2, 2.0, 40.0]),
)
@example(3.0, 1e-10, 50, 300, "grr", 40.0)
def test_each_candidate_keeps_both_limits_and_one_per_cent_more_would_not(
    wanted: float, delta: float, reports: int, domain: int, name: str, most: float
) -> None:
    task = Task(domain, mechanisms=(name,))
    found = shuffled_plan(task, Limits(wanted, delta, most), reports)
    (kept,), (one,) = found.protections, found.plan.candidates
    gained = amplify(mechanism(one, kept.local_epsilon, task), reports, delta)
    assert gained.epsilon == kept.shuffled_epsilon <= wanted
    assert kept.local_epsilon <= most
    more = kept.local_epsilon * 1.01
    assert more > most or amplify(mechanism(one, more, task), reports, delta).epsilon > wanted * (1 - 1e-3)


def error_of(at: Callable[[float], Mechanism], wanted: float, reports: int, task: Task) -> float:
    """Return the error at the largest local epsilon that delta 1e-8 allows."""
    local = largest_local_epsilon(wanted, reports, 1e-8, lambda epsilon: blanket_law(at(epsilon)), wanted)
    return math.sqrt(float(task.objective.loss(at(local).law, task.domain, reports)))


def least_error(name: str, wanted: float, reports: int, task: Task) -> float:
    """Return the least error of all s."""

    def error(size: int) -> float:
        return error_of(lambda epsilon: build(name, epsilon, task.domain, {"s": size}), wanted, reports, task)

    sizes = (*range(1, 8), *range(8, (task.domain or 0) // 2, 4))
    return min(error(size) for size in sizes)


@pytest.mark.long(but=("ss-0.5-200-40",))
@pytest.mark.parametrize(
    ("name", "wanted", "reports", "domain"), [("ss", 0.5, 200, 40), ("ss", 1.0, 100, 120), ("ais", 1.0, 60, 64)]
)
def test_no_size_has_less_error_than_the_planned_one(name: str, wanted: float, reports: int, domain: int) -> None:
    """Under a shuffled limit fewer cells than for the local epsilon alone are best."""
    task = Task(domain, mechanisms=(name,))
    found = shuffled_plan(task, Limits(wanted, 1e-8), reports).plan
    assert found.chosen.error <= 1.01 * least_error(name, wanted, reports, task)


def test_unary_reports_of_any_p_have_more_error_than_randomised_response() -> None:
    """docs/mathematics.md section 7. By the bits of two items alone they would have a fifth less."""
    task, limits, reports = Task(20, mechanisms=("grr",)), Limits(1.0, 1e-8), 10_000
    plain = shuffled_plan(task, limits, reports).plan.chosen.error

    def error(p: float) -> float:
        return error_of(lambda epsilon: Mechanism(Identity(20), Unary.spending(epsilon, 20, p)), 1.0, reports, task)

    errors = [error(p) for p in (0.2, 0.5, 0.7, 0.74, 0.8, 0.9, 0.98)]
    assert plain == pytest.approx(10.49, abs=0.01)
    assert min(errors) == pytest.approx(19.75, abs=0.05)


def test_intervals_have_less_error_than_randomised_response_where_reports_are_few() -> None:
    found = shuffled_plan(Task(26_000, mechanisms=("grr", "ais")), Limits(0.3, 1e-8), 10_000).plan
    assert found.chosen.mechanism == "ais"
    assert found.chosen.error == pytest.approx(23.9, abs=0.2)
    assert found.candidates[1].error == pytest.approx(28.7, abs=0.1)


def test_parameters_beyond_the_limits_of_a_task_are_not_taken() -> None:
    """More buckets have less error, and a longer report."""
    limits = Limits(0.5, 1e-8)
    free, short = (
        shuffled_plan(Task(None, max_report_bytes=most, mechanisms=("ocms",)), limits, 10_000).plan.chosen
        for most in (None, 16)
    )
    assert free.report_bytes > 16 >= short.report_bytes
    assert free.error < short.error
    # Where none that the search begins with is short enough.
    task = Task(None, max_report_bytes=16, mechanisms=("olh",))
    assert shuffled_plan(task, Limits(1.0, 1e-8), 1_000_000).plan.chosen.report_bytes <= 16


@pytest.mark.long
def test_candidates_are_ranked_by_their_error_each_at_its_own_epsilon() -> None:
    few = ("grr", "oue")
    task = Task(100, mechanisms=few)
    found = shuffled_plan(task, Limits(0.5, 1e-8), 3_000)
    errors = [one.error for one in found.plan.candidates]
    assert errors == pytest.approx(sorted(errors))
    for candidate, kept in zip(found.plan.candidates, found.protections, strict=True):
        alone = make_plan(Task(100, mechanisms=(candidate.mechanism,)), kept.local_epsilon, 3_000)
        assert alone.chosen == candidate
    # A cap below what shuffling allows is what counts.
    capped = shuffled_plan(task, Limits(0.5, 1e-8, 1.5), 3_000)
    assert {kept.local_epsilon for kept in capped.protections} == {1.5}
    # The price of trusting nobody names the epsilon that it is computed for.
    least = shuffled_plan(task, Limits(0.5, 1e-8, 0.25), 3_000)
    assert least.alone == make_plan(task, 0.25, 3_000).chosen.error
    assert "with a local epsilon of 0.25, which needs no trust" in least.words()[-1]
    assert capped.plan.candidates == make_plan(task, 1.5, 3_000).candidates


def test_what_is_out_of_range_and_what_is_not_possible() -> None:
    for limits in ((0.0, 1e-8), (float("nan"), 1e-8), (41.0, 1e-8)):
        with pytest.raises(ValueError, match="shuffled_epsilon is"):
            Limits(*limits)
    with pytest.raises(ValueError, match="delta is 0"):
        Limits(1.0, 0.0)
    with pytest.raises(ValueError, match="epsilon is 50"):
        Limits(1.0, 1e-8, 50.0)
    with pytest.raises(ValueError, match="reports is 0"):
        shuffled_plan(Task(100), Limits(1.0, 1e-8), 0)
    with pytest.raises(UsageError, match=r" grr: .*dictionary"):
        shuffled_plan(Task(None, mechanisms=("grr",)), Limits(1.0, 1e-8), 100)
