"""The closed forms against each other, the mechanisms, and every number that the papers' texts name."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments import loss_forms, sketch_forms
from hushcount.maths.bounds import least_l2
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import build, plan


def test_the_corrected_variance_is_that_of_the_mechanism() -> None:
    for size in (1, 7, 40):
        mechanism = build("gcms", 2.0, None, {"k": 64, "m": 100, "s": size, "seed": "0" * 64})
        p, q = mechanism.responder.p, mechanism.responder.q
        shares = np.array([0.0, 0.1, 1.0])
        form = sketch_forms.sketch_variance(p, q, 100, 64, 1000.0, 1000.0 * shares)
        assert np.allclose(form, mechanism.variance(1000, shares), rtol=1e-12)
        assert sketch_forms.other_cell(p, 100, 2.0) == pytest.approx(q)


def test_the_printed_variance_is_a_third_too_high_at_epsilon_1() -> None:
    p = 1 / 2
    q = sketch_forms.other_cell(p, 100, 1.0)
    printed, corrected = (
        float(sketch_forms.sketch_variance(p, q, 100, 100, 1e5, 0.0, 0.0, errs)) for errs in (True, False)
    )
    assert printed / corrected == pytest.approx(1.35, abs=0.03)


def test_the_printed_choices_of_p_are_those_of_the_text() -> None:
    assert sketch_forms.printed_choice(3.64, 1 / 3, 100) == pytest.approx(0.74, abs=0.01)
    assert sketch_forms.printed_choice(3.75, 1500 / 48_000, 100) == pytest.approx(0.57, abs=0.02)
    assert sketch_forms.apple_keep(3.75) == pytest.approx(0.87, abs=0.005)


def test_the_corrected_choice_is_least() -> None:
    best = sketch_forms.corrected_choice(4.0, 0.2, 1024, 100)

    def variance(p: float) -> float:
        return float(sketch_forms.sketch_variance(p, sketch_forms.other_cell(p, 1024, 4.0), 1024, 100, 1.0, 0.2))

    assert variance(best) <= min(variance(best - 0.01), variance(best + 0.01))


def test_buckets_are_those_of_the_theorems() -> None:
    assert loss_forms.worst_case_buckets(math.log(9), 1.0) == 4
    assert loss_forms.worst_case_buckets(math.log(9), 0.0) == 10
    assert loss_forms.loss_buckets(math.log(9), 100_000) == 10


def test_losses_agree_with_the_mechanisms() -> None:
    for epsilon in (0.5, 1.0, 3.0):
        for name, closed in (("ocms-round", loss_forms.folded_l2(epsilon, 100)), ("ss", None)):
            parameters = plan(name, epsilon, 100, {}, Objective(), "")
            exact = 100 * float(build(name, epsilon, 100, parameters).variance(1, 0.01))
            form = loss_forms.symmetric_l2(epsilon, int(parameters["s"]), 100, 100) if closed is None else closed
            assert form == pytest.approx(exact, rel=1e-12)


def test_the_corollary_of_0_09_percent_is_0_30_percent() -> None:
    assert loss_forms.printed_excess(1.0, 100) == pytest.approx(1.0009, abs=5e-5)
    assert loss_forms.folded_l2(1.0, 100) / least_l2(1.0, 100, 1) == pytest.approx(1.0030, abs=5e-5)


def test_the_loss_at_an_integer_size_is_above_the_printed_corollary_and_below_the_one_of_its_proof() -> None:
    over = []
    for domain in (3, 10, 50, 1000):
        for epsilon in np.arange(0.05, min(6.0, math.log(domain - 1.0)), 0.01):
            best = domain / (math.exp(epsilon) + 1.0)
            sizes = {math.floor(best), min(domain - 1, math.ceil(best))}
            loss = min(loss_forms.symmetric_l2(epsilon, size, domain, domain) for size in sizes)
            excess = loss / loss_forms.symmetric_l2(epsilon, best, domain, domain)
            printed, proved = (loss_forms.rounding_excess(epsilon, domain, printed=each) for each in (True, False))
            assert printed is not None
            assert proved is not None
            assert excess <= proved * (1.0 + 1e-12)
            over.append((excess - 1.0) / (printed - 1.0))
    assert 1.25 < max(over) < 1.35


def test_no_printed_excess_for_a_small_domain() -> None:
    assert loss_forms.printed_excess(5.0, 100) is None
    assert loss_forms.rounding_excess(5.0, 100, printed=True) is None


def test_limits_meet_the_theorem() -> None:
    assert loss_forms.printed_l2(2.0, 10**7) / 1e7 == pytest.approx(loss_forms.rare(2.0), rel=1e-5)
    assert loss_forms.halved(2.0) < loss_forms.binary(2.0)
