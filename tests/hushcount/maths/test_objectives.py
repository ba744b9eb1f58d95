"""Planning: the reference values, and the search against a scan of every integer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pytest

from hushcount.maths import field61
from hushcount.maths.objectives import Objective
from hushcount.maths.primes import prime_at_least
from hushcount.oracles.catalogue import CATALOGUE, build, plan
from hushcount.oracles.mechanism import Mechanism

SEED = "5eed" * 16
EPSILONS = (0.05, 0.3, 1.0, 2.0, 3.64, 5.0, 8.0, 15.0)
OBJECTIVES = [
    Objective("l2"),
    Objective("mse"),
    *(Objective("target", share) for share in (0.0, 0.01, 0.1, 1 / 3, 0.5, 0.8, 1.0)),
]
SUBSETS = [
    ("ais", 2, {}),
    ("ais", 17, {}),
    ("ais", 100, {}),
    ("ss", 2, {}),
    ("ss", 7, {}),
    ("ss", 60, {}),
    ("ss", 300, {}),
    ("gcms", None, {"k": 1, "m": 2}),
    ("gcms", 200, {"k": 4, "m": 7}),
    ("gcms", None, {"k": 100, "m": 100}),
]
PLANNED = {"ais": "s", "ss": "s", "gcms": "s", "gcms-target": "s", "ocms": "B", "ocms-mse": "B", "ocms-l2": "B"}
FOLDED = [("ocms", 2, {}), ("ocms", 5, {}), ("ocms", 30, {}), ("ocms", 100, {}), ("ocms", 300, {})]


def loss(objective: Objective, mechanism: Mechanism) -> float:
    """Return the loss of a built mechanism, its thresholds rounded, for one report."""
    return float(objective.loss(mechanism.law, mechanism.encoder.domain))


def scan(name: str, epsilon: float, domain: int | None, fixed: dict, objective: Objective) -> tuple[range, list[float]]:
    """Return every allowed value of the planned integer with its loss."""
    values, mechanisms = every_mechanism(name, epsilon, domain, tuple(fixed.items()))
    return values, [loss(objective, mechanism) for mechanism in mechanisms]


@lru_cache(maxsize=2)
def every_mechanism(
    name: str, epsilon: float, domain: int | None, fixed: tuple[tuple[str, int], ...]
) -> tuple[range, list[Mechanism]]:
    key, settings = PLANNED[name], dict(fixed)
    width = settings.get("m") or (domain if name == "ss" else prime_at_least(domain))
    values = range(2, width + 1) if key == "B" else range(1, width)
    extra = {"seed": SEED} if CATALOGUE[name].seeded else {}
    return values, [build(name, epsilon, domain, {**settings, **extra, key: value}) for value in values]


def planned(name: str, epsilon: float, domain: int | None, fixed: dict, objective: Objective) -> int:
    return int(plan(name, epsilon, domain, fixed, objective, SEED)[PLANNED[name]])


def excess_of_plan(
    name: str, epsilon: float, domain: int | None, fixed: dict, objective: Objective, asked: Objective | None = None
) -> float:
    """Return by how much the planned integer's loss exceeds the least of all; planned for `asked` if that is another.

    The plan is made in floating point, the scan with rounded thresholds: what ties within 1e-9 may differ.
    """
    values, losses = scan(name, epsilon, domain, fixed, objective)
    found = planned(name, epsilon, domain, fixed, asked or objective)
    return losses[values.index(found)] / min(losses) - 1.0


def valleys(losses: Sequence[float]) -> int:
    """Return how many separate valleys the losses have; steps of rounding size are level."""
    steps = np.diff(losses)
    signs = np.sign(steps[np.abs(steps) > 1e-12 * np.array(losses[1:])])
    return 1 + int((np.diff(signs) < 0).sum())


@pytest.mark.parametrize(("name", "domain", "fixed"), SUBSETS + FOLDED)
@pytest.mark.long(
    but=(
        "ais-2-fixed0",
        "ss-7-fixed4",
        "ocms-30-fixed12",
    )
)
def test_the_search_finds_what_the_full_scan_finds(name: str, domain: int | None, fixed: dict) -> None:
    missed = []
    for epsilon in EPSILONS:
        for objective in OBJECTIVES:
            excess = excess_of_plan(name, epsilon, domain, fixed, objective)
            if excess > 1e-9:
                missed.append((epsilon, objective, f"{excess:.2%} worse than the best"))
    assert not missed


# What an oracle's name fixes of the objective, whatever else is asked for

OTHER = Objective("target", 0.9)


@pytest.mark.parametrize("largest", [0.001, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("domain", [5, 100, 300])
@pytest.mark.long(but=("5-0.001",))
def test_ocms_mse_is_planned_for_the_worst_share_up_to_its_prior(domain: int, largest: float) -> None:
    for epsilon in EPSILONS:
        worst = Objective("mse", largest=largest)
        assert excess_of_plan("ocms-mse", epsilon, domain, {"f": largest}, worst, OTHER) <= 1e-9


def test_ocms_l2_is_planned_for_the_l2_loss(subtests: pytest.Subtests) -> None:
    for domain in (5, 100, 300):
        with subtests.test(domain=domain):
            for epsilon in EPSILONS:
                assert excess_of_plan("ocms-l2", epsilon, domain, {}, Objective("l2"), OTHER) <= 1e-9


def test_gcms_target_is_the_exact_optimum_for_its_share(subtests: pytest.Subtests) -> None:
    for share in (0.0, 0.1, 0.5, 0.95):
        for domain, fixed in ((None, {"k": 10, "m": 60}), (50, {"k": 3, "m": 9})):
            with subtests.test(share=share, domain=domain, fixed=fixed):
                for epsilon in EPSILONS:
                    target = Objective("target", share)
                    assert (
                        excess_of_plan("gcms-target", epsilon, domain, {**fixed, "f": share}, target, Objective("l2"))
                        <= 1e-9
                    )


def test_rounded_buckets_are_the_nearest_to_one_plus_e(subtests: pytest.Subtests) -> None:
    for name in ("olh", "ocms-round"):
        with subtests.test(name=name):
            for epsilon, buckets in ((0.1, 2), (0.4, 2), (0.41, 3), (1.0, 4), (2.0, 8), (3.0, 21), (5.0, 149)):
                assert plan(name, epsilon, 1000, {}, OTHER, SEED) == {"B": buckets}
            assert plan(name, 5.0, 100, {}, OTHER, SEED) == {"B": 101}  # no more than there are residues
            assert plan(name, 1.0, 2, {}, OTHER, SEED) == {"B": 2}


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.long(but=("4.0",))
def test_large_dictionaries_come_to_the_printed_optima(epsilon: float) -> None:
    # [P25] Theorems 3.6, with the prior 1, and 3.8: B = 1 + e^(epsilon/2), 1 + e; of windows the same shares.
    worst, mean = 1.0 + np.exp(epsilon / 2.0), 1.0 + np.exp(epsilon)
    assert abs(planned("ocms-mse", epsilon, 1_000_000, {}, OTHER) - worst) <= 1.0
    assert abs(planned("ocms-l2", epsilon, 1_000_000, {}, OTHER) - mean) <= 1.0
    prime = prime_at_least(1_000_000)
    assert abs(planned("ais", epsilon, 1_000_000, {}, Objective("mse")) - prime / worst) <= 1.0
    assert abs(planned("ais", epsilon, 1_000_000, {}, Objective("l2")) - prime / mean) <= 1.0


def test_recursive_hadamard_takes_the_bits_that_the_budget_protects() -> None:
    for epsilon, bits in ((0.1, 1), (0.69, 1), (0.7, 2), (1.0, 2), (2.0, 3), (4.0, 6)):
        assert plan("rhr", epsilon, 1000, {}, OTHER, SEED) == {"b": bits}
    assert plan("rhr", 8.0, 5, {}, OTHER, SEED) == {"b": 3}  # no more blocks than items


@pytest.mark.parametrize(
    ("epsilon", "objective"),
    [(4.0, Objective("l2")), (1.0, Objective("mse")), (0.05, Objective("target", 0.3))],
    ids=["l2", "mse", "target"],
)
@pytest.mark.long(but=("l2",))
def test_an_open_domain_is_planned_like_a_huge_dictionary(epsilon: float, objective: Objective) -> None:
    huge = (1 << 31) - 1
    for name, scale in (("ais", float(field61.PRIME)), ("ocms", 1.0)):
        there = planned(name, epsilon, huge, {}, objective) / (prime_at_least(huge) if name == "ais" else 1.0)
        assert planned(name, epsilon, None, {}, objective) / scale == pytest.approx(
            there, rel=1e-4, abs=1.0 * (scale == 1.0)
        )


@pytest.mark.parametrize(("name", "domain", "fixed"), SUBSETS)
@pytest.mark.long(
    but=(
        "ais-17-fixed1",
        "ss-7-fixed4",
    )
)
def test_the_loss_has_one_valley_in_s(name: str, domain: int | None, fixed: dict) -> None:
    # Why a coarse grid is enough for very wide ranges. In B it does not hold: test_the_loss_in_b_may_have_two_valleys.
    for epsilon in EPSILONS:
        for objective in OBJECTIVES:
            if epsilon < 15.0:  # beyond, 64-bit thresholds are coarse beside 1 - p and ripple the loss
                assert valleys(scan(name, epsilon, domain, fixed, objective)[1]) == 1, (epsilon, objective)


def test_the_loss_in_b_may_have_two_valleys() -> None:
    # P mod B ripples the collision probability: OCMS over 30 items at epsilon 3.64 for a share of 0.1.
    assert valleys(scan("ocms", 3.64, 30, {}, Objective("target", 0.1))[1]) > 1


def test_ais_planned_for_a_target_share(subtests: pytest.Subtests) -> None:
    for domain, epsilon, share, n, size, users in (
        (1000, 2.0, 0.2, 1e5, 185, 292.6),
        (26_000, 3.0, 0.02, 1e6, 1450, 488.5),
    ):
        with subtests.test(domain=domain, epsilon=epsilon):
            parameters = plan("ais", epsilon, domain, {}, Objective("target", share), SEED)
            assert parameters == {"s": size}
            error = np.sqrt(build("ais", epsilon, domain, parameters).variance(int(n), share))
            assert error == pytest.approx(users, abs=0.05)


def test_gcms_planned_exactly_for_a_target_share(subtests: pytest.Subtests) -> None:
    for epsilon, share, rows, cells, n, size, p, variance in [
        (4.0, 0.1, 65_536, 1024, 1_000_000, 47, 0.72425, 129_048),
        (3.64, 1 / 3, 100, 100, 48_842, 10, 0.80888, 10_837),
    ]:
        with subtests.test(epsilon=epsilon, share=share):
            parameters = plan("gcms", epsilon, None, {"k": rows, "m": cells}, Objective("target", share), SEED)
            mechanism = build("gcms", epsilon, None, parameters)
            assert parameters == {"k": rows, "m": cells, "s": size, "seed": SEED}
            assert mechanism.responder.p == pytest.approx(p, abs=5e-6)
            assert mechanism.variance(n, share) == pytest.approx(variance, abs=0.5)


def test_ais_over_26000_items() -> None:
    mechanism = build("ais", 1.0, 26_000, plan("ais", 1.0, 26_000, {}, Objective("l2"), SEED))
    assert (mechanism.encoder.cells, mechanism.responder.size) == (26_003, 6993)
    assert np.sqrt(mechanism.variance(167_856, 0.0)) == pytest.approx(786, abs=0.5)


def loss_of_size(epsilon: float, domain: int, size: int, objective: Objective) -> float:
    share = {"l2": [1.0 / domain], "mse": [0.0, 1.0], "target": [objective.share]}[objective.name]
    return float(build("ais", epsilon, domain, {"s": size}).variance(1, np.array(share)).max())


def test_no_other_s_of_a_huge_dictionary_is_better(subtests: pytest.Subtests) -> None:
    for number, (epsilon, domain) in enumerate(((0.5, 2**31 - 1), (2.0, 50_000_000), (9.0, 2_000_003))):
        prime = prime_at_least(domain)
        wide = [*np.geomspace(1, prime - 1, 60).astype(int).tolist(), round(prime / (np.exp(epsilon) + 1))]
        for objective in OBJECTIVES[number::3]:
            with subtests.test(epsilon=epsilon, domain=domain, objective=objective):
                found = planned("ais", epsilon, domain, {}, objective)
                near = (found + np.random.default_rng(1).integers(-3000, 3000, 60)).tolist()
                rivals = [size for size in [*near, *wide] if 1 <= size < prime]
                least = min(loss_of_size(epsilon, domain, size, objective) for size in rivals)
                assert loss_of_size(epsilon, domain, found, objective) <= least * (1 + 1e-12)


def test_the_worst_share_up_to_a_prior_is_an_end(subtests: pytest.Subtests) -> None:
    for largest in (0.01, 0.3, 1.0):
        with subtests.test(largest=largest):
            mechanism = build("ais", 2.0, 100, {"s": 5})
            everywhere = mechanism.variance(1, np.linspace(0.0, largest, 101))
            assert loss(Objective("mse", largest=largest), mechanism) == pytest.approx(everywhere.max(), rel=1e-12)


def test_l2_is_the_sum_over_all_items() -> None:
    mechanism = build("grr", 2.0, 10, {})
    shares = np.array([0.4, 0.3, 0.2, 0.1, *[0.0] * 6])
    assert 10 * loss(Objective("l2"), mechanism) == pytest.approx(mechanism.variance(1, shares).sum(), rel=1e-12)


def test_what_is_set_is_kept_and_the_rest_filled_in() -> None:
    assert plan("grr", 1.0, 5, {}, Objective(), SEED) == {}
    assert plan("ocms-mse", 1.0, 100, {"f": 0.2, "B": 9}, Objective(), SEED) == {"f": 0.2, "B": 9}
    assert plan("apple-cms", 1.0, None, {"m": 9}, Objective(), SEED) == {"k": 65_536, "m": 9, "seed": SEED}
    assert plan("ais", 1.0, 100, {"s": 3}, Objective(), SEED) == {"s": 3}
    assert plan("gcms", 1.0, None, {"k": 4, "m": 8, "s": 1, "p": 0.2}, Objective(), SEED)["p"] == 0.2
    own = "ab" * 32
    assert plan("gcms", 1.0, None, {"seed": own}, Objective(), SEED)["seed"] == own
    assert plan("gcms", 1.0, None, {}, Objective(), SEED)["k"] == 1024


def test_bad_objectives_raise_with_name_value_and_range(subtests: pytest.Subtests) -> None:
    cases = [
        (("best",), "objective is 'best',.*l2, mse, target"),
        (("target", -0.1), r"target_share is -0.1,.*\[0, 1\]"),
        (("target", 1.5), r"target_share is 1.5,.*\[0, 1\]"),
        (("target", float("nan")), r"target_share is nan,.*\[0, 1\]"),
        (("mse", 0.0, 0.0), r"f is 0.0,.*\(0, 1\]"),
        (("mse", 0.0, 1.1), r"f is 1.1,.*\(0, 1\]"),
        (("mse", 0.0, float("nan")), r"f is nan,.*\(0, 1\]"),
    ]
    for arguments, message in cases:
        with subtests.test(arguments=arguments), pytest.raises(ValueError, match=message):
            Objective(*arguments)
