"""The catalogue: wrong parameters raise one sentence with the name, the value and the allowed range."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import pytest

from hushcount.designs.sources import find_design
from hushcount.errors import UsageError
from hushcount.maths.fingerprints import fingerprints
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import CATALOGUE, MAX_DOMAIN, build, frequency_oracle, plan
from hushcount.oracles.encoders.identity import Identity
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.responders.randomised_response import RandomisedResponse
from hushcount.oracles.responders.subset import Subset
from hushcount.oracles.tally import Tally
from tests.support.words import SeededWords

SEED = "5eed" * 16
POOL = {"k": 4, "m": 8, "seed": SEED}
CHOSEN = {
    "ss": {"s": 27},
    "wss": {"design": find_design(100, 27).name},
    "rappor": POOL,
    "apple-cms": POOL,
    "hcms": POOL,
    "gcms": {**POOL, "s": 2},
    "gcms-target": {**POOL, "s": 2, "f": 0.1},
    "rhr": {"b": 3},
    "blh": {"B": 2},
    "olh": {"B": 4},
    "ocms": {"B": 4},
    "ocms-mse": {"B": 4, "f": 0.5},
    "ocms-l2": {"B": 4},
    "ocms-round": {"B": 4},
    "ais": {"s": 27},
}
COMPLETE = {name: CHOSEN.get(name) or plan(name, 1.0, 100, {}, Objective(), SEED) for name in CATALOGUE}
WITH_POOL = ("rappor", "apple-cms", "hcms", "gcms", "gcms-target")
FOLDED = ("blh", "olh", "ocms", "ocms-mse", "ocms-l2", "ocms-round")
OPEN = (*WITH_POOL, *FOLDED, "ais")
PRIOR = {"ocms-mse": {"f": 0.5}}
MORE = {"gcms": {"s": 1}, "gcms-target": {"s": 1, "f": 0.1}}
NARROW = find_design(50, 13).name


def test_planned_parameters_are_complete_and_spend_the_budget(subtests: pytest.Subtests) -> None:
    for name in CATALOGUE:
        with subtests.test(name=name):
            for epsilon, domain in ((0.3, 2), (1.0, 5), (4.0, 100)):
                parameters = plan(name, epsilon, domain, {}, Objective(), SEED)
                required = {*CATALOGUE[name].parameters, *(("seed",) if CATALOGUE[name].seeded else ())}
                assert set(parameters) == required
                assert build(name, epsilon, domain, parameters).epsilon == pytest.approx(epsilon, abs=1e-12)


def test_an_oracle_says_what_it_is_and_where_it_is_from(subtests: pytest.Subtests) -> None:
    for name in CATALOGUE:
        with subtests.test(name=name):
            assert CATALOGUE[name].title
            assert CATALOGUE[name].source
            assert CATALOGUE[name].open_domain == (name in OPEN)
            assert CATALOGUE[name].seeded == (name in WITH_POOL)


def test_an_unknown_mechanism_names_the_nearest_or_all(subtests: pytest.Subtests) -> None:
    cases = [("gcm", "gcms"), ("GRR", "grr"), ("omcs", "ocms"), ("apple", "apple-cms"), ("ocms-ms", "ocms-mse")]
    for typed, meant in cases:
        message = rf"mechanism is '{typed}',.*\(did you mean {meant}\?\)$"
        with subtests.test(typed=typed), pytest.raises(UsageError, match=message):
            frequency_oracle(typed)
    with pytest.raises(UsageError, match=rf"mechanism is 'sandwich',.* {', '.join(CATALOGUE)}$"):
        build("sandwich", 1.0, 100, {})


def test_a_budget_that_is_none_raises(subtests: pytest.Subtests) -> None:
    for name in CATALOGUE:
        for epsilon in (0.0, -1.0, math.nan, math.inf, 41.0):
            with subtests.test(name=name, epsilon=epsilon):
                message = rf"epsilon is {epsilon},.*\[0.0001, 40.0\]"
                with pytest.raises(ValueError, match=message):
                    build(name, epsilon, 100, COMPLETE[name])
                with pytest.raises(ValueError, match=message):
                    plan(name, epsilon, 100, {}, Objective(), SEED)


def test_a_domain_out_of_range_raises(subtests: pytest.Subtests) -> None:
    for name in CATALOGUE:
        for domain in (1, 0, -3, MAX_DOMAIN + 1):
            with subtests.test(name=name, domain=domain):
                message = rf"domain is {domain},.*2\.\.{MAX_DOMAIN} items"
                with pytest.raises(ValueError, match=message):
                    build(name, 1.0, domain, COMPLETE[name])
                with pytest.raises(ValueError, match=message):
                    plan(name, 1.0, domain, {}, Objective(), SEED)


def test_an_open_domain_names_who_serves_it(subtests: pytest.Subtests) -> None:
    for name in [name for name in CATALOGUE if name not in OPEN]:
        with subtests.test(name=name):
            message = f"mechanism {name} .*dictionary.* {', '.join(OPEN)}$"
            with pytest.raises(ValueError, match=message):
                build(name, 1.0, None, COMPLETE[name])
            with pytest.raises(ValueError, match=message):
                plan(name, 1.0, None, {}, Objective(), SEED)


def test_parameters_out_of_range_raise(subtests: pytest.Subtests) -> None:
    cases = [
        ("ss", {"s": 0}, r"s is 0,.*1\.\.99"),
        ("ss", {"s": 100}, r"s is 100,.*1\.\.99"),
        ("ss", {"s": 1000}, r"s is 1000,.*1\.\.99"),
        ("ss", {"s": -1}, r"s is -1,.*1\.\.99"),
        ("ais", {"s": 0}, r"s is 0,.*1\.\.100"),
        ("ais", {"s": 101}, r"s is 101,.*1\.\.100"),
        ("gcms", {**POOL, "s": 8}, r"s is 8,.*1\.\.7"),
        ("gcms", {**POOL, "m": 1, "s": 1}, r"m is 1,.*2\.\.16777216"),
        ("gcms", {**POOL, "k": 0, "s": 1}, r"k is 0,.*1\.\.262144"),
        ("gcms", {**POOL, "seed": "no", "s": 1}, "seed is 'no',.* 64 "),
        *((name, {"B": 1, **PRIOR.get(name, {})}, r"B is 1,.*2\.\.101") for name in FOLDED),
        *((name, {"B": 102, **PRIOR.get(name, {})}, r"B is 102,.*2\.\.101") for name in FOLDED),
        *((name, {**POOL, **MORE.get(name, {}), "k": 0}, r"k is 0,.*1\.\.262144") for name in WITH_POOL),
        *((name, {**POOL, **MORE.get(name, {}), "m": 1}, r"m is 1,.*2\.\.16777216") for name in WITH_POOL),
        ("gcms-target", {**POOL, "s": 0, "f": 0.1}, r"s is 0,.*1\.\.7"),
        ("gcms-target", {**POOL, "s": 2, "f": 1.5}, r"f is 1\.5,.*\[0, 1\]"),
        ("gcms-target", {**POOL, "s": 2, "f": math.nan}, r"f is nan,.*\[0, 1\]"),
        ("gcms-target", {**POOL, "s": 2, "f": "x"}, "f is 'x',.*number"),
        ("ocms-mse", {"B": 4, "f": 0.0}, r"f is 0\.0,.*\(0, 1\]"),
        ("ocms-mse", {"B": 4, "f": 1.01}, r"f is 1\.01,.*\(0, 1\]"),
        ("ocms-mse", {"B": 4, "f": True}, "f is True,.*number"),
        ("rhr", {"b": 0}, r"b is 0,.*1\.\.7 .*2\*\*\(b-1\) blocks"),
        ("rhr", {"b": 8}, r"b is 8,.*1\.\.7"),
        ("rhr", {"b": 40}, r"b is 40,.*1\.\.7"),
        ("rhr", {"b": 2.0}, "b is 2.0,.*integer"),
        ("wss", {"design": "best"}, "design is 'best',.*width-size-digest"),
        ("wss", {"design": NARROW}, f"design is {NARROW}:.* 50 .* 100 "),
        ("wss", {**COMPLETE["wss"], "s": 5}, "s is 5,.* 27,"),
        ("ss", {"s": 2.5}, "s is 2.5,.*integer"),
        ("ss", {"s": True}, "s is True,.*integer"),
        ("ss", {"s": "27"}, "s is '27',.*integer"),
    ]
    for name, parameters, message in cases:
        with subtests.test(name=name, parameters=parameters):
            with pytest.raises(ValueError, match=message):
                build(name, 1.0, 100, parameters)
            with pytest.raises(ValueError, match=message):
                plan(name, 1.0, 100, parameters, Objective(), SEED)


def test_a_missing_parameter_is_named(subtests: pytest.Subtests) -> None:
    for name, missing in [(name, key) for name, given in COMPLETE.items() for key in given]:
        with subtests.test(name=name, missing=missing):
            parameters = {key: value for key, value in COMPLETE[name].items() if key != missing}
            with pytest.raises(ValueError, match=f"{name} lacks .*{missing}"):
                build(name, 1.0, 100, parameters)


def test_an_unknown_parameter_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"parameter z .*gcms.*: k, m, s, p, seed$"):
        build("gcms", 1.0, 100, {**COMPLETE["gcms"], "z": 1})
    with pytest.raises(ValueError, match=r"parameter B .*wss.*: design, s$"):
        plan("wss", 1.0, 100, {"B": 1}, Objective(), SEED)
    with pytest.raises(ValueError, match=r"parameter s .*grr.*: none"):
        plan("grr", 1.0, 100, {"s": 1}, Objective(), SEED)


def test_a_p_that_cannot_be_is_refused(subtests: pytest.Subtests) -> None:
    cases = [
        # One that overspends, ones that say nothing or all, and ones that are no probability.
        (0.6, r"p is 0\.6: .*1\.504\d*,.* 1$"),
        *((p, rf"p is {p:g},.*\b0\.25\b.*\b1\b") for p in (0.25, 0.1, 0.0, 1.0)),
        *((p, rf"\bp is {p},") for p in (1.5, -0.1, math.nan)),
    ]
    for p, message in cases:
        with subtests.test(p=p):
            for make in (build, partial(plan, objective=Objective(), seed=SEED)):
                with pytest.raises(ValueError, match=message):
                    make("gcms", 1.0, 100, {**COMPLETE["gcms"], "p": p})
    with pytest.raises(ValueError, match="p is given without s"):
        plan("gcms", 1.0, 100, {"p": 0.3}, Objective(), SEED)


def test_p_that_underspends_states_what_it_spends() -> None:
    mechanism = build("gcms", 1.0, 100, {**COMPLETE["gcms"], "p": 0.4})
    assert mechanism.epsilon == pytest.approx(math.log(0.4 * 6 / (0.6 * 2)), abs=1e-12)


def test_open_and_the_smallest_domains_plan_build_and_estimate(subtests: pytest.Subtests) -> None:
    for name, domain in [*product(CATALOGUE, (2, 3)), *product(OPEN, [None])]:
        with subtests.test(name=name, domain=domain):
            parameters = plan(name, 1.0, domain, {"k": 8} if name in WITH_POOL else {}, Objective(), SEED)
            mechanism = build(name, 1.0, domain, parameters)
            assert mechanism.epsilon == pytest.approx(1.0, abs=1e-12)
            items = np.arange(domain, dtype=np.uint64) if domain else fingerprints(["one", "another"])
            counts = mechanism.new_tally(items)
            mechanism.accumulate(counts, mechanism.encode(items, SeededWords(1)), items)
            assert np.all(np.isfinite(mechanism.estimate(Tally(counts, len(items), items), items).error))


def test_a_design_size_is_planned_around_and_kept() -> None:
    parameters = plan("wss", 1.0, 100, {"s": 44}, Objective(), SEED)
    assert parameters["s"] == 44
    assert build("wss", 1.0, 100, parameters).responder.size == 44
    with pytest.raises(ValueError, match=r"size is 101,.*1\.\.100"):
        plan("wss", 1.0, 100, {"s": 101}, Objective(), SEED)
    with pytest.raises(ValueError, match=r"domain is 2000,.*2\.\.1021 .*mechanism ais"):
        plan("wss", 1.0, 2000, {}, Objective(), SEED)


def test_parts_that_cannot_be_are_refused(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: Mechanism(Identity(5), RandomisedResponse.spending(1.0, 6)), r"encoder has 5 .*responder 6"),
        (lambda: Identity(1), r"domain is 1,.*\b2\b"),
        (lambda: RandomisedResponse(1, 1, 1 << 63), r"width is 1,.*\b2\b"),
        # Responders that prefer no cell.
        *((partial(Subset, 8, 2, keep), r"p is .*,.* 0\.25 ") for keep in (0, 1 << 62, 1 << 64)),
    ]
    for make, message in cases:
        with subtests.test(message=message), pytest.raises(ValueError, match=message):
            make()
