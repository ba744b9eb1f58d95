"""Named systems: wrong parameters raise one sentence with the name, the value and the allowed range."""

from __future__ import annotations

import math

import pytest

from hushcount.encoders.identity import Identity
from hushcount.errors import UsageError
from hushcount.mechanism import Mechanism
from hushcount.planning import Objective
from hushcount.responders.randomised_response import RandomisedResponse
from hushcount.responders.subset import Subset
from hushcount.systems import MAX_DOMAIN, SYSTEMS, build, plan, system

SEED = "5eed" * 16
POOL = {"k": 4, "m": 8, "seed": SEED}
COMPLETE = {
    "gcms": {**POOL, "s": 2},
    "ocms": {"B": 4},
    "ais": {"s": 27},
    "ss": {"s": 27},
    "grr": {},
}
every_system = pytest.mark.parametrize("name", SYSTEMS)


@every_system
def test_complete_parameters_build(name: str) -> None:
    assert build(name, 1.0, 100, COMPLETE[name]).epsilon == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(("typed", "meant"), [("gcm", "gcms"), ("aiss", "ais"), ("GRR", "grr"), ("omcs", "ocms")])
def test_an_unknown_mechanism_names_the_nearest(typed: str, meant: str) -> None:
    with pytest.raises(UsageError, match=rf"mechanism is '{typed}', must be one of .*did you mean {meant}\?"):
        system(typed)


def test_an_unknown_mechanism_like_none_lists_them_all() -> None:
    with pytest.raises(UsageError, match=r"mechanism is 'sandwich', must be one of gcms, ocms, ais, ss, grr$"):
        build("sandwich", 1.0, 100, {})


@every_system
@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 41.0])
def test_a_budget_that_is_none_raises(name: str, epsilon: float) -> None:
    message = rf"epsilon is {epsilon}, must be a finite number in \[0.0001, 40.0\]"
    with pytest.raises(ValueError, match=message):
        build(name, epsilon, 100, COMPLETE[name])
    with pytest.raises(ValueError, match=message):
        plan(name, epsilon, 100, {}, Objective(), SEED)


@every_system
@pytest.mark.parametrize("domain", [1, 0, -3, MAX_DOMAIN + 1])
def test_a_domain_out_of_range_raises(name: str, domain: int) -> None:
    message = rf"domain is {domain}, must be in 2\.\.{MAX_DOMAIN} items"
    with pytest.raises(ValueError, match=message):
        build(name, 1.0, domain, COMPLETE[name])
    with pytest.raises(ValueError, match=message):
        plan(name, 1.0, domain, {}, Objective(), SEED)


@pytest.mark.parametrize("name", ["ocms", "ais", "ss", "grr"])
def test_an_open_domain_names_who_serves_it(name: str) -> None:
    message = f"mechanism {name} needs a dictionary; an open domain is served by gcms"
    with pytest.raises(ValueError, match=message):
        build(name, 1.0, None, COMPLETE[name])
    with pytest.raises(ValueError, match=message):
        plan(name, 1.0, None, {}, Objective(), SEED)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("ss", {"s": 0}, r"s is 0, must be in 1\.\.99 for 100 cells"),
        ("ss", {"s": 100}, r"s is 100, must be in 1\.\.99 for 100 cells"),
        ("ss", {"s": 1000}, r"s is 1000, must be in 1\.\.99 for 100 cells"),
        ("ss", {"s": -1}, r"s is -1, must be in 1\.\.99 for 100 cells"),
        ("ais", {"s": 0}, r"s is 0, must be in 1\.\.100 for 101 cells"),
        ("ais", {"s": 101}, r"s is 101, must be in 1\.\.100 for 101 cells"),
        ("gcms", {**POOL, "s": 8}, r"s is 8, must be in 1\.\.7 for 8 cells"),
        ("gcms", {**POOL, "m": 1, "s": 1}, r"m is 1, must be in 2\.\.16777216"),
        ("gcms", {**POOL, "k": 0, "s": 1}, r"k is 0, must be in 1\.\.16777216"),
        ("gcms", {**POOL, "seed": "no", "s": 1}, "seed is 'no', must be 64 lower-case hexadecimal digits"),
        ("ocms", {"B": 1}, r"B is 1, must be in 2\.\.101 buckets"),
        ("ocms", {"B": 102}, r"B is 102, must be in 2\.\.101 buckets"),
        ("ss", {"s": 2.5}, "s is 2.5, must be an integer"),
        ("ss", {"s": True}, "s is True, must be an integer"),
        ("ss", {"s": "27"}, "s is '27', must be an integer"),
    ],
)
def test_parameters_out_of_range_raise(name: str, parameters: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(name, 1.0, 100, parameters)
    with pytest.raises(ValueError, match=message):
        plan(name, 1.0, 100, parameters, Objective(), SEED)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"m": 1}, r"m is 1, must be in 2\.\.16777216"),
        ({"m": 0}, r"m is 0, must be in 2\.\.16777216"),
        ({"m": -5}, r"m is -5, must be in 2\.\.16777216"),
        ({"k": 0}, r"k is 0, must be in 1\.\.16777216"),
        ({"k": -1}, r"k is -1, must be in 1\.\.16777216"),
        ({"m": "8"}, "m is '8', must be an integer"),
        ({"k": 2.5}, r"k is 2\.5, must be an integer"),
        ({"seed": "no"}, "seed is 'no', must be 64 lower-case hexadecimal digits"),
    ],
)
def test_planning_around_bad_settings_names_them(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan("gcms", 1.0, 100, settings, Objective(), SEED)


@pytest.mark.parametrize(("name", "missing"), [("ss", "s"), ("ais", "s"), ("ocms", "B")])
def test_a_missing_parameter_is_named(name: str, missing: str) -> None:
    with pytest.raises(ValueError, match=f"mechanism {name} lacks the parameter {missing}"):
        build(name, 1.0, 100, {})


@pytest.mark.parametrize("missing", ["k", "m", "s", "seed"])
def test_gcms_needs_all_of_its_parameters(missing: str) -> None:
    parameters = {key: value for key, value in COMPLETE["gcms"].items() if key != missing}
    with pytest.raises(ValueError, match=f"mechanism gcms lacks the parameter {missing}"):
        build("gcms", 1.0, 100, parameters)


def test_an_unknown_parameter_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="parameter z is unknown to mechanism gcms, which takes: k, m, s, p, seed"):
        build("gcms", 1.0, 100, {**COMPLETE["gcms"], "z": 1})
    with pytest.raises(ValueError, match="parameter s is unknown to mechanism grr, which takes: none"):
        plan("grr", 1.0, 100, {"s": 1}, Objective(), SEED)


def test_p_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="p is given without s: give both, or s alone, or neither"):
        plan("gcms", 1.0, 100, {"p": 0.3}, Objective(), SEED)


def test_p_that_overspends_is_refused() -> None:
    message = r"p is 0.6: it spends 1.504\d*, must not exceed 1$"
    with pytest.raises(ValueError, match=message):
        build("gcms", 1.0, 100, {**COMPLETE["gcms"], "p": 0.6})
    with pytest.raises(ValueError, match=message):
        plan("gcms", 1.0, 100, {**COMPLETE["gcms"], "p": 0.6}, Objective(), SEED)


@pytest.mark.parametrize("p", [0.25, 0.1, 0.0, 1.0])
def test_p_that_says_nothing_or_all_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match=rf"p is {p:g}, must be above 0.25 .* and below 1"):
        build("gcms", 1.0, 100, {**COMPLETE["gcms"], "p": p})


@pytest.mark.parametrize("p", [1.5, -0.1, math.nan])
def test_p_that_is_no_probability_is_refused_by_its_name(p: float) -> None:
    with pytest.raises(ValueError, match=rf"\bp is {p}, must be in"):
        build("gcms", 1.0, 100, {**COMPLETE["gcms"], "p": p})


def test_p_that_underspends_states_what_it_spends() -> None:
    mechanism = build("gcms", 1.0, 100, {**COMPLETE["gcms"], "p": 0.4})
    assert mechanism.epsilon == pytest.approx(math.log(0.4 * 6 / (0.6 * 2)), abs=1e-12)


@pytest.mark.parametrize(("domain", "parameters"), [(2, {"s": 1}), (3, {"s": 2})])
def test_the_smallest_domains_build(domain: int, parameters: dict) -> None:
    for name in ("ais", "ss"):
        assert build(name, 1.0, domain, parameters).encoder.domain == domain


def test_encoder_and_responder_must_fit() -> None:
    with pytest.raises(ValueError, match="encoder has 5 cells, responder 6: must be equal"):
        Mechanism(Identity(5), RandomisedResponse.spending(1.0, 6))


def test_an_identity_of_one_item_is_refused() -> None:
    with pytest.raises(ValueError, match="domain is 1, must be at least 2 items"):
        Identity(1)


@pytest.mark.parametrize("keep", [0, 1 << 62, 1 << 64])
def test_a_responder_that_prefers_no_cell_is_refused(keep: int) -> None:
    with pytest.raises(ValueError, match=r"p is .*, must be above 0.25"):
        Subset(8, 2, keep)


def test_a_responder_of_one_cell_is_refused() -> None:
    with pytest.raises(ValueError, match="width is 1, must be at least 2 cells"):
        RandomisedResponse(1, 1 << 63)
