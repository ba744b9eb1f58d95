"""Amplification by shuffling: reference values, the inverses, the convex order of laws, bad input."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import build, plan
from hushcount.oracles.mechanism import Mechanism
from hushcount.privacy.amplification import (
    LEAST_DELTA,
    Amplified,
    amplify,
    amplify_any,
    closed_form_epsilon,
    largest_local_epsilon,
    shuffled_epsilon,
)
from hushcount.privacy.blanket import BlanketLaw, blanket_law, general_law
from hushcount.privacy.divergence import LARGEST_REPORTS, divergence

REFERENCE = [
    # epsilon0, n, delta, general bound, [J] Theorem 1: by an independent implementation
    (1.0, 10**4, 1e-6, 0.04321, 0.1800),
    (1.0, 10**5, 1e-8, 0.01687, 0.0686),
    (2.0, 10**6, 1e-8, 0.01304, 0.0541),
    (4.0, 10**6, 1e-8, 0.04507, 0.1665),
    (5.0, 10**7, 1e-8, 0.02318, 0.0917),
]


def ais(epsilon: float, domain: int = 26_000) -> Mechanism:
    return build("ais", epsilon, domain, plan("ais", epsilon, domain, {}, Objective(), ""))


def test_reference_values(subtests: pytest.Subtests) -> None:
    for epsilon, reports, delta, general, closed in REFERENCE:
        with subtests.test(epsilon=epsilon, reports=reports):
            assert shuffled_epsilon(general_law(epsilon), reports, delta) == pytest.approx(general, abs=6e-6)
            assert closed_form_epsilon(epsilon, reports, delta) == pytest.approx(closed, abs=5e-5)


@pytest.mark.parametrize(
    ("epsilon", "reports", "own", "general"),
    [(1.0, 10**5, 0.0118, 0.0169), (2.0, 10**6, 0.0091, 0.0131), (4.0, 10**6, 0.0314, 0.0451)],
)
@pytest.mark.long(but=("2.0-1000000-0.0091-0.0131",))
def test_affine_interval_selection_gains_more_than_any_mechanism(
    epsilon: float, reports: int, own: float, general: float
) -> None:
    gained = amplify(ais(epsilon), reports, 1e-8)
    assert gained.bound == "blanket"
    # The references are rounded up to the fourth place.
    assert own - 1e-4 <= gained.epsilon <= own
    assert general - 1e-4 <= gained.general <= general


# Certification


@settings(max_examples=20, deadline=None)
@given(st.floats(1e-4, 10.0), st.floats(0.01, 0.99), st.floats(0.0, 0.999), st.integers(1, 32), st.floats(1e-12, 0.5))
def test_what_is_returned_needs_no_more_than_delta(
    epsilon: float, single: float, part: float, reports: int, delta: float
) -> None:
    least = max(0.0, 2.0 * single - 1.0)
    law = BlanketLaw(epsilon, single, least + part * (single - least))
    found = shuffled_epsilon(law, reports, delta)
    assert 0.0 < found <= epsilon
    # With other windows: what is cut does not decide. Up to 32 reports nothing is on a grid.
    wider = divergence(law, reports, 1e-11 * delta)
    assert wider.delta(found) <= delta * (1.0 + 1e-4)
    if found > 1e-11 * epsilon:
        assert wider.delta(found * 0.99) > delta * 0.999


@pytest.mark.parametrize("reports", [1, 33, LARGEST_REPORTS])
@pytest.mark.long(but=("1",))
def test_extreme_questions_have_answers(reports: int, subtests: pytest.Subtests) -> None:
    for epsilon in (1e-4, 1.0, 40.0):
        for single, pair in ((0.5, 0.0), (0.27, 0.07), (0.99, 0.985), (1e-9, 0.0)):
            law = BlanketLaw(epsilon, single, pair)
            with subtests.test(law=law):
                for delta in (0.3, 1e-12):
                    found = shuffled_epsilon(law, reports, delta)
                    assert 0.0 < found <= epsilon
                    assert divergence(law, reports, 1e-8 * delta).delta(found) <= delta


@settings(max_examples=25, deadline=None)
@given(st.floats(0.1, 8.0), st.floats(0.02, 0.98), st.floats(0.0, 0.99), st.integers(1, 30), st.floats(0.02, 0.98))
def test_binary_randomised_response_is_the_worst_of_all_laws(
    epsilon: float, single: float, part: float, reports: int, place: float
) -> None:
    least = max(0.0, 2.0 * single - 1.0)
    law = BlanketLaw(epsilon, single, least + part * (single - least))
    worst = divergence(general_law(epsilon), reports, 1e-14).delta(place * epsilon)
    assert divergence(law, reports, 1e-14).delta(place * epsilon) <= worst * (1.0 + 1e-6) + 1e-13


@settings(max_examples=25, deadline=None)
@given(st.floats(0.1, 8.0), st.floats(0.02, 0.98), st.floats(0.0, 0.9), st.integers(1, 30), st.floats(0.02, 0.98))
def test_items_that_are_supported_together_more_often_hide_each_other(
    epsilon: float, single: float, part: float, reports: int, place: float
) -> None:
    least = max(0.0, 2.0 * single - 1.0)
    laws = [BlanketLaw(epsilon, single, least + share * (single - least)) for share in (part, part + 0.09)]
    more, less = (divergence(law, reports, 1e-14).delta(place * epsilon) for law in laws)
    assert less <= more * (1.0 + 1e-6) + 1e-13


@pytest.mark.long
def test_more_reports_lose_less_and_a_smaller_delta_costs() -> None:
    for law in (general_law(1.0), blanket_law(ais(1.0))):
        by_reports = [shuffled_epsilon(law, 10**power, 1e-8) for power in (0, 2, 4, 6, 10)]
        assert all(more >= less for more, less in pairwise(by_reports))
        assert by_reports[0] == pytest.approx(1.0, abs=1e-5)
        by_delta = [shuffled_epsilon(law, 10**4, 10.0**-power) for power in (4, 8, 199)]
        assert all(less < more for less, more in pairwise(by_delta))
        assert shuffled_epsilon(law, 10 * LARGEST_REPORTS, 1e-8) == by_reports[-1]


def test_below_what_floats_can_hold_no_gain_is_stated() -> None:
    for delta in (1e-201, 1e-250, 1e-300):
        closed, gained = closed_form_epsilon(2.0, 10**5, delta), amplify_any(2.0, 10**5, delta)
        assert closed is not None
        assert (gained.epsilon, gained.bound) == (closed, "general")
        assert shuffled_epsilon(general_law(2.0), 10**5, 1e-199) < closed < 1.0
        assert gained.points(2) == ((4.0, 0.0),)
    # Too few reports for its theorem.
    assert closed_form_epsilon(2.0, 10_000, 1e-300) is None
    assert amplify_any(2.0, 10_000, 1e-300).bound is None


# Inverses


def shuffled_delta(law: BlanketLaw, reports: int, epsilon: float) -> float:
    """Return a delta such that n shuffled reports are (epsilon, delta)-private, 0 from the local epsilon on."""
    result, cut = 1.0, 1e-16
    while cut >= LEAST_DELTA * 1e-8:
        result = divergence(law, reports, cut).delta(epsilon)
        if not 0.0 < result < cut / 1e-8:
            break
        cut *= 1e-32
    return result


@pytest.mark.parametrize("delta", [0.2, 1e-6, 1e-60])
@pytest.mark.long(but=("0.2",))
def test_delta_and_epsilon_are_inverse(delta: float) -> None:
    for law in (general_law(2.0), blanket_law(ais(2.0))):
        epsilon = shuffled_epsilon(law, 10_000, delta)
        found = shuffled_delta(law, 10_000, epsilon)
        # Windows, and with them grids, differ: by 2 % of delta at 1e-60.
        assert epsilon <= 1e-9 or found == pytest.approx(delta, rel=0.02)
        assert found <= delta * 1.02


def test_delta_is_0_from_the_local_epsilon_on() -> None:
    assert shuffled_delta(general_law(2.0), 100, 2.0) == 0.0
    assert 0.0 < shuffled_delta(general_law(2.0), 100, 1.99) < 1e-7
    assert shuffled_delta(general_law(2.0), 1, 0.0) == pytest.approx(math.tanh(1.0), rel=1e-6)


@pytest.mark.parametrize(("wanted", "reports"), [(0.01, 10**6), (1.0, 50)])
@pytest.mark.long(but=("1.0-50",))
def test_the_local_epsilon_for_a_wanted_one(wanted: float, reports: int) -> None:
    local = largest_local_epsilon(wanted, reports, 1e-8)
    assert local >= wanted
    assert shuffled_epsilon(general_law(local), reports, 1e-8) <= wanted
    if local > wanted:
        assert shuffled_epsilon(general_law(local * 1.0003), reports, 1e-8) > wanted
    own = largest_local_epsilon(wanted, reports, 1e-8, lambda epsilon: blanket_law(ais(epsilon)))
    assert own >= local
    assert amplify(ais(own), reports, 1e-8).epsilon <= wanted


def test_a_mechanism_may_gain_where_not_every_mechanism_does() -> None:
    """The search begins at what any mechanism may have, which is the wanted epsilon itself."""
    assert shuffled_epsilon(general_law(3.0), 50, 1e-10) == 3.0
    near = largest_local_epsilon(3.0, 50, 1e-10)
    assert near == 3.0
    own = largest_local_epsilon(3.0, 50, 1e-10, lambda epsilon: blanket_law(build("grr", epsilon, 300, {})), near)
    assert own > 4.6
    assert amplify(build("grr", own, 300, {}), 50, 1e-10).epsilon <= 3.0


def test_a_wanted_epsilon_may_be_out_of_reach_or_always_reached() -> None:
    with pytest.raises(ValueError, match="10 reports"):
        largest_local_epsilon(1e-6, 10, 1e-9)
    assert largest_local_epsilon(40.0, 10, 1e-9) == 40.0


# What is claimed


def test_the_smaller_bound_is_stated() -> None:
    assert Amplified(1.0, 9, 0.1, 0.5, 0.4).bound == "blanket"
    assert Amplified(1.0, 9, 0.1, 0.5, 0.4).epsilon == 0.4
    assert Amplified(1.0, 9, 0.1, 0.5, 0.6).bound == "general"
    assert Amplified(1.0, 9, 0.1, 0.5, None).epsilon == 0.5
    assert Amplified(1.0, 9, 0.1, 0.995, 0.995).bound is None
    assert Amplified(1.0, 9, 0.1, 0.995, None).epsilon == 1.0


def test_binary_randomised_response_has_the_general_bound() -> None:
    assert amplify(build("grr", 1.0, 2, {}), 10**4, 1e-6).bound == "general"


# The closed form


@given(st.floats(0.1, 8.0), st.integers(1, 10**7), st.floats(1e-12, 0.5))
def test_none_exactly_where_the_theorem_does_not_apply(epsilon: float, reports: int, delta: float) -> None:
    room = reports / (8.0 * math.log(2.0 / delta)) - 1.0
    applies = room > 0.0 and epsilon <= math.log(room)
    found = closed_form_epsilon(epsilon, reports, delta)
    assert (found is not None) == applies
    assert found is None or 0.0 < found <= epsilon


@settings(max_examples=15, deadline=None)
@given(st.floats(0.1, 6.0), st.integers(1000, 10**8), st.floats(1e-12, 1e-4))
def test_the_numerical_bound_is_never_above_the_theorem(epsilon: float, reports: int, delta: float) -> None:
    printed = closed_form_epsilon(epsilon, reports, delta)
    assert printed is None or shuffled_epsilon(general_law(epsilon), reports, delta) <= printed


# Bad input

LAW = general_law(1.0)
BAD: list[tuple[str, tuple[float, ...], str, list[Callable[[Any], object]]]] = [
    # argument, values, the range that is told, calls
    ("delta", (0.0, 1.0, -0.1, 2.0, math.nan), r"\(0, 1\)", [
        lambda delta: closed_form_epsilon(1.0, 1000, delta),
        lambda delta: shuffled_epsilon(LAW, 1000, delta),
        lambda delta: largest_local_epsilon(0.5, 1000, delta),
        lambda delta: amplify_any(1.0, 1000, delta),
    ]),
    ("epsilon", (0.0, -1.0, math.nan), r"\b0\b", [
        lambda epsilon: closed_form_epsilon(epsilon, 10**6, 1e-8),
        general_law,
        lambda epsilon: largest_local_epsilon(epsilon, 10**6, 1e-8),
    ]),
    ("epsilon", (-0.1, math.inf, math.nan), r"\b0\b", [lambda epsilon: shuffled_delta(LAW, 10, epsilon)]),
    ("reports", (0, -5), r"\b1\b", [
        lambda reports: shuffled_epsilon(LAW, reports, 1e-6),
        lambda reports: largest_local_epsilon(0.5, reports, 1e-6),
    ]),
]  # fmt: skip


def test_arguments_out_of_range_raise_with_name_value_and_range(subtests: pytest.Subtests) -> None:
    for name, values, bounds, calls in BAD:
        for value, call in product(values, calls):
            with (
                subtests.test(name=name, value=value),
                pytest.raises(ValueError, match=rf"{name} is {value},.*{bounds}"),
            ):
                call(value)
