"""The blanket bound against the truth: all outputs of tiny shuffles, all sums of small ones; its building blocks."""

from __future__ import annotations

import math
from functools import cache, lru_cache
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln

from hushcount.arrays import UInt64Array
from hushcount.maths.fingerprints import fingerprints
from hushcount.oracles.catalogue import build
from hushcount.oracles.encoders.identity import Identity
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.responders.unary import Unary
from hushcount.privacy.amplification import amplify
from hushcount.privacy.blanket import BlanketLaw, blanket_law, general_law
from hushcount.privacy.convex_order import Others, binomial_window, fair_tails
from hushcount.privacy.divergence import divergence
from hushcount.randomness import WORD_VALUES
from tests.hushcount.oracles.cases import CASES, SMALL, Case, design, each, pool
from tests.support.enumeration import all_reports, laws, supported

CUT = 1e-18
ROUNDING = 1e-13
"""Float error of a brute-force delta: a sum of at most 10**5 differences of probabilities."""

# Brute force: the law of the multiset of reports, every one of them.

Multiset = tuple[int, ...]


def added(law: dict[Multiset, float], report: np.ndarray) -> dict[Multiset, float]:
    """Return the law of a multiset of outputs with one more report, of probabilities float64[outputs]."""
    result: dict[Multiset, float] = {}
    for multiset, chance in law.items():
        for output, part in enumerate(report):
            larger = (*multiset[:output], multiset[output] + 1, *multiset[output + 1 :])
            result[larger] = result.get(larger, 0.0) + chance * float(part)
    return result


class Shuffled:
    """All shuffles of n reports: what two values of the first client look like beside all values of the others."""

    def __init__(self, law: np.ndarray, reports: int, pairs: list[tuple[int, int]]) -> None:
        self.pairs: list[tuple[np.ndarray, np.ndarray]] = []
        for others in combinations_with_replacement(range(len(law)), reports - 1):
            rest: dict[Multiset, float] = {(0,) * law.shape[1]: 1.0}
            for item in others:
                rest = added(rest, law[item])
            for first, second in pairs:
                one, two = added(rest, law[first]), added(rest, law[second])
                self.pairs.append((np.array([one[key] for key in one]), np.array([two[key] for key in one])))

    def delta(self, epsilon: float) -> float:
        """Return the hockey-stick divergence, the worst of all pairs and of all values of the others."""
        growth = math.exp(epsilon)
        return max(
            float(np.maximum(left - growth * right, 0.0).sum())
            for one, two in self.pairs
            for left, right in ((one, two), (two, one))
        )


TINY = [
    ("grr", 1.0, 2, {}, 5),
    ("grr", 1.0, 3, {}, 5),
    ("ss", 1.0, 3, {"s": 1}, 5),
    ("ss", 2.0, 3, {"s": 2}, 5),
    ("ss", 1.0, 4, {"s": 2}, 4),
    ("ais", 1.0, 3, {"s": 1}, 5),
    ("ais", 1.5, 3, {"s": 2}, 5),
    ("ais", 1.0, 5, {"s": 2}, 3),
    ("ocms", 1.0, 3, {"B": 2}, 3),
    ("ocms", 1.0, 5, {"B": 3}, 2),
    ("he", 1.0, 3, {}, 4),
    ("rhr", 1.5, 4, {"b": 2}, 3),
    ("wss", 1.0, 7, design(7, 2), 2),
    ("gcms", 1.0, None, pool(2, 3, s=1), 3),
    ("hcms", 2.0, None, pool(2, 3), 3),
    ("sue", 1.0, 2, {}, 4),
    ("sue", 2.0, 3, {}, 4),
    ("oue", 2.0, 3, {}, 4),
    ("oue", 3.0, 4, {}, 3),
    ("rappor", 2.0, None, pool(1, 3), 3),
    ("apple-cms", 2.0, None, pool(2, 3), 2),
]
"""Frequency oracle, epsilon, items, parameters, and up to how many reports all shuffles are enumerated."""


def items_of(mechanism: Mechanism) -> UInt64Array:
    domain = mechanism.encoder.domain
    return fingerprints(f"item {number}" for number in range(5)) if domain is None else np.arange(domain, dtype="u8")


@cache
def shuffled(index: int, reports: int) -> tuple[Mechanism, Shuffled]:
    oracle, epsilon, domain, parameters, _ = TINY[index]
    mechanism = build(oracle, epsilon, domain, parameters)
    law = laws(mechanism, all_reports(mechanism), items_of(mechanism))
    return mechanism, Shuffled(law, reports, list(combinations(range(len(law)), 2)))


@pytest.mark.parametrize("reports", range(1, 6))
@pytest.mark.long(but=("1",))
def test_no_shuffle_is_worse_than_the_bounds(reports: int, subtests: pytest.Subtests) -> None:
    for index, (*_, most) in enumerate(TINY):
        if reports > most:
            continue
        with subtests.test(tiny=TINY[index]):
            mechanism, truth = shuffled(index, reports)
            bounds = [divergence(general_law(mechanism.epsilon), reports, CUT)]
            bounds.append(divergence(blanket_law(mechanism), reports, CUT))
            for share in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9):
                epsilon = share * mechanism.epsilon
                exact = truth.delta(epsilon)
                for bound in bounds:
                    assert bound.delta(epsilon) >= exact - ROUNDING


def test_the_bound_is_near_the_truth(subtests: pytest.Subtests) -> None:
    cases = [
        (0, 5, (0.0, 0.1, 0.3, 0.5, 0.7), 1.17),
        (1, 5, (0.0, 0.1, 0.3, 0.5, 0.7), 1.15),
        (3, 5, (0.0, 0.1), 1.15),
        (4, 3, (0.0, 0.1), 1.15),
        (5, 5, (0.0, 0.1, 0.3, 0.5, 0.7), 1.15),
        (7, 3, (0.0, 0.1), 1.15),
    ]
    for index, reports, shares, factor in cases:
        with subtests.test(index=index, reports=reports):
            mechanism, truth = shuffled(index, reports)
            law = blanket_law(mechanism)
            bound = divergence(law, reports, CUT)
            for share in shares:
                assert bound.delta(share * mechanism.epsilon) <= factor * truth.delta(share * mechanism.epsilon)


def test_one_report_and_two_of_randomised_response_are_met_exactly(subtests: pytest.Subtests) -> None:
    for index, reports in ((0, 1), (0, 2), (1, 2), (4, 1), (7, 1)):
        with subtests.test(index=index, reports=reports):
            mechanism, truth = shuffled(index, reports)
            law = blanket_law(mechanism)
            bound = divergence(law, reports, CUT)
            for share in (0.0, 0.2, 0.6, 0.9):
                epsilon = share * mechanism.epsilon
                assert bound.delta(epsilon) == pytest.approx(truth.delta(epsilon), rel=1e-6)


def test_the_truth_rejects_the_reduction_published_for_randomised_response() -> None:
    # "Variation ratio": each of the others shows either of the two items with probability p, and the first client e p
    # and p; the third item is left out. Quoted for n = 4, epsilon0 = 1 over 3 items.
    e, reports, epsilon = math.e, 4, 0.7
    p = 1.0 / (e + 2.0)
    worlds = np.zeros((2, reports + 1, reports + 1))
    for hidden in range(reports):
        for first in range(hidden + 1):
            chance = stats.binom.pmf(hidden, reports - 1, 2 * p) * stats.binom.pmf(first, hidden, 0.5)
            for world, (own, other) in enumerate(((e * p, p), (p, e * p))):
                second = hidden - first
                worlds[world, first + 1, second] += chance * own
                worlds[world, first, second + 1] += chance * other
                worlds[world, first, second] += chance * (1.0 - own - other)
    published = float(np.maximum(worlds[0] - math.exp(epsilon) * worlds[1], 0.0).sum())
    assert published == pytest.approx(0.0258, abs=5e-5)
    mechanism, truth = shuffled(1, reports)
    exact = truth.delta(epsilon)
    assert exact == pytest.approx(0.0317, abs=5e-5)
    law = blanket_law(mechanism)
    assert published < exact <= divergence(law, reports, CUT).delta(epsilon)


def test_the_truth_rejects_a_bound_that_is_too_small(subtests: pytest.Subtests) -> None:
    for wrong in ("more pairs", "less epsilon", "one report more"):
        with subtests.test(wrong=wrong):
            mechanism, truth = shuffled(1, 4)
            law, reports = blanket_law(mechanism), 4
            if wrong == "more pairs":
                law = BlanketLaw(law.epsilon, law.single, law.pair + 0.1)
            elif wrong == "less epsilon":
                law = BlanketLaw(0.8 * law.epsilon, law.single, law.pair)
            else:
                reports = 5
            assert divergence(law, reports, CUT).delta(0.3) < truth.delta(0.3) - ROUNDING


# Unary reports. If all others hold a third item, its bit tells which reports may be the first client's.


def test_the_truth_rejects_a_bound_from_the_bits_of_the_two_items_alone() -> None:
    mechanism = build("oue", 2.0, 3, {})
    whole = laws(mechanism, all_reports(mechanism), items_of(mechanism))
    two_bits = Shuffled(whole.reshape(3, 2, 4).sum(axis=1), 4, [(0, 1)]).delta(0.6)
    exact = Shuffled(whole, 4, [(0, 1)]).delta(0.6)
    assert two_bits == pytest.approx(0.1496, abs=5e-5)
    assert exact == pytest.approx(0.1915, abs=5e-5)
    assert exact <= divergence(blanket_law(mechanism), 4, CUT).delta(0.6)


def beside_equals(one: np.ndarray, two: np.ndarray, others: np.ndarray, reports: int, epsilon: float) -> float:
    """Return delta of two laws of the first report if all others have one law: `E[(sum W)_+] / n` by Fourier.

    The sum is of n reports of the others' law, `W = (one - exp(epsilon) two) / others`, on a grid that keeps its mean.
    """
    values, size = (one - math.exp(epsilon) * two) / others, 1 << 15
    spread = math.sqrt(reports * float(others @ (values - others @ values) ** 2))
    step = 24.0 * spread / size
    places, mass = np.floor(values / step).astype(int), np.zeros(size)
    upper = values / step - places
    np.add.at(mass, places % size, others * (1.0 - upper))
    np.add.at(mass, (places + 1) % size, others * upper)
    middle = round(reports * float(others @ values) / step)
    sums = middle + np.arange(-size // 2, size // 2)
    law = np.fft.irfft(np.fft.rfft(mass) ** reports, size)[sums % size]
    return float(law[sums > 0] @ sums[sums > 0]) * step / reports


def test_unary_reports_lose_what_is_stated_and_not_what_two_bits_say(subtests: pytest.Subtests) -> None:
    # An epsilon with delta 1e-8 by two bits alone, 20,000 reports; and how far the bound may be above the truth.
    for oracle, local, said, near in (
        ("oue", 2.0, 0.0525, 1.07),
        ("sue", 2.0, 0.0463, 1.16),
        ("sue", 4.0, 0.1085, 1.08),
    ):
        with subtests.test(oracle=oracle, local=local):
            mechanism = build(oracle, local, 3, {})
            one, two, third = laws(mechanism, all_reports(mechanism), items_of(mechanism))
            bits = [law.reshape(2, 4).sum(axis=0) for law in (one, two, third)]
            assert beside_equals(*bits, 20_000, said) == pytest.approx(1e-8, rel=0.05)
            assert beside_equals(one, two, third, 20_000, said) > 5e-7
            stated = amplify(mechanism, 20_000, 1e-8).epsilon
            assert beside_equals(one, two, third, 20_000, stated) <= 1e-8
            assert beside_equals(one, two, third, 20_000, stated / near) > 1e-8


def test_a_unary_report_that_two_bits_would_choose_is_not_private() -> None:
    # p and q free, epsilon 1 of 10,000 reports: less error than randomised response, if two bits were all.
    mechanism = Mechanism(Identity(3), Unary(3, int(0.98 * WORD_VALUES), int(0.005907 * WORD_VALUES)))
    one, two, third = laws(mechanism, all_reports(mechanism), items_of(mechanism))
    bits = [law.reshape(2, 4).sum(axis=0) for law in (one, two, third)]
    assert beside_equals(*bits, 10_000, 1.0) == pytest.approx(1e-8, rel=0.05)
    assert beside_equals(one, two, third, 10_000, 1.0) > 0.05


# The exact sum, term by term.


@lru_cache(maxsize=1)
def all_counts(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all counts of five values that add up to n, and the logarithms of in how many orders each comes."""
    counts = np.stack(np.meshgrid(*[np.arange(n + 1.0)] * 4, indexing="ij")).reshape(4, -1)
    counts = counts[:, counts.sum(axis=0) <= n]
    counts = np.vstack([counts, n - counts.sum(axis=0)])
    return counts, gammaln(n + 1) - gammaln(counts + 1).sum(axis=0)


def summed(law: BlanketLaw, reports: int, epsilon: float) -> float:
    """Return `E[(W_1 + ... + W_n)_+] / n` over all counts of the five values of W."""
    e, growth, n = math.exp(law.epsilon), math.exp(epsilon), reports
    counts, orders = all_counts(n)
    chances = np.array([law.one, law.one, law.both, law.neither, law.nothing])
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(counts > 0, counts * np.log(chances)[:, None], 0.0)
    weights = np.exp(orders + logs.sum(axis=0))
    values = np.array([e - growth, 1.0 - growth * e, e * (1.0 - growth), 1.0 - growth, 0.0])
    return float(weights @ np.maximum(values @ counts, 0.0)) / n


LAWS = [
    BlanketLaw(1.0, 0.27, 0.07),
    BlanketLaw(3.0, 0.05, 0.002),
    BlanketLaw(3.0, 0.5, 0.25),
    BlanketLaw(1.0, 0.5, 0.0),
    BlanketLaw(0.3, 0.2, 0.0),
    BlanketLaw(2.0, 0.8, 0.7),
    BlanketLaw(14.5, 0.5, 0.25),
]


@pytest.mark.parametrize("reports", [1, 2, 7, 25])
@pytest.mark.long(but=("1", "2", "7"))
def test_small_sums_are_exact(reports: int, subtests: pytest.Subtests) -> None:
    for law in LAWS:
        with subtests.test(law=law):
            bound = divergence(law, reports, CUT)
            for share in (0.0, 0.2, 0.5, 0.8):
                exact = summed(law, reports, share * law.epsilon)
                assert exact * (1.0 - 1e-9) <= bound.delta(share * law.epsilon) <= exact * (1.0 + 1e-5) + 1e-15


def test_sums_on_a_grid_are_above_the_exact_ones_and_near(subtests: pytest.Subtests) -> None:
    # More than 32 reports are.
    for law in LAWS:
        with subtests.test(law=law):
            bound = divergence(law, 33, CUT)
            for share in (0.1, 0.3):
                exact = summed(law, 33, share * law.epsilon)
                assert exact * (1.0 - 1e-9) <= bound.delta(share * law.epsilon) <= 1.05 * exact


@pytest.mark.long
def test_large_sums_against_scipy(subtests: pytest.Subtests) -> None:
    # With U at its mean given M the exact sum is below the truth (Jensen), by little where E - 1 is small.
    for law, reports in ((LAWS[0], 10**5), (LAWS[1], 10**6), (LAWS[3], 10**7)):
        for deviations in (4.0, 6.0):
            with subtests.test(law=law, reports=reports, deviations=deviations):
                chance = 2.0 * law.one
                step = math.expm1(law.epsilon) * math.sqrt(chance / reports)
                epsilon = deviations * step
                e, growth = math.exp(law.epsilon), math.exp(epsilon)
                spread = math.sqrt(reports * chance * (1.0 - chance))
                coins = np.arange(max(0, int(reports * chance - 9 * spread)), int(reports * chance + 9 * spread))
                mean = (e * law.both + law.neither) / (law.both + law.neither + law.nothing)
                gain, short = (
                    (e - 1.0) * (growth + 1.0) / 2.0,
                    (growth - 1.0) * ((e + 1.0) / 2.0 * coins + mean * (reports - coins)),
                )
                least = np.floor((short / gain + coins) / 2.0) + 1.0
                parts = gain * least * stats.binom.pmf(least, coins, 0.5) - short * stats.binom.sf(
                    least - 1.0, coins, 0.5
                )
                below = float(stats.binom.pmf(coins, reports, chance) @ parts) / reports
                assert below * (1.0 - 1e-7) <= divergence(law, reports, 1e-30).delta(epsilon) <= below * 1.01


# The law of a mechanism.


def test_the_law_is_that_of_the_worst_two_items(subtests: pytest.Subtests) -> None:
    for case in SMALL:
        with subtests.test(case=case.name):
            mechanism = case.mechanism
            law = blanket_law(mechanism)
            reports = all_reports(mechanism)
            probabilities, held = laws(mechanism, reports, case.items), supported(mechanism, reports, case.items).T
            e = math.exp(law.epsilon)
            base = probabilities[0] / np.where(held[0], e, 1.0)
            assert np.allclose(probabilities, base * np.where(held, e, 1.0), rtol=1e-9)
            normal = base / base.sum()
            assert base.sum() == pytest.approx(law.gamma, rel=1e-9)
            assert held @ normal == pytest.approx(np.full(len(held), law.single), rel=1e-9)
            pairs = [
                float((held[first] & held[second]) @ normal) for first, second in combinations(range(len(held)), 2)
            ]
            if case.pooled:
                assert law.pair <= min(pairs) + 1e-12
            else:
                assert law.pair == pytest.approx(min(pairs), abs=1e-12)


def test_the_worst_pair_of_a_pool_shares_no_cell() -> None:
    # With one function two items share their cell or do not; more shared rows are a mixture of the two.
    mechanism = build("gcms", 1.0, None, pool(1, 3, s=1))
    items = fingerprints(f"item {number}" for number in range(8))
    probabilities = laws(mechanism, all_reports(mechanism), items)
    alike = [np.allclose(probabilities[0], other) for other in probabilities]
    assert 1 < sum(alike) < len(alike)
    apart = alike.index(False)
    law = blanket_law(mechanism)
    exact = Shuffled(probabilities, 3, [(0, apart)]).delta(0.3)
    assert 0.5 * divergence(law, 3, CUT).delta(0.3) < exact <= divergence(law, 3, CUT).delta(0.3)


@each(CASES)
def test_every_mechanism_has_a_law(case: Case) -> None:
    law = blanket_law(case.mechanism)
    assert law.epsilon == case.mechanism.epsilon
    total = (math.exp(law.epsilon) + 1.0) * law.one + math.exp(law.epsilon) * law.both + law.neither
    assert total == pytest.approx(1.0, rel=1e-12)


def test_what_a_hardly_unbalanced_design_adds_is_stated() -> None:
    law = blanket_law(build("wss", 1.0, 98, design(100, 27)))
    assert 0.0 < law.excess < 1e-10
    exact = blanket_law(build("wss", 1.0, 7, design(7, 2)))
    assert exact.excess == 0.0
    plain = BlanketLaw(law.epsilon, law.single, law.pair)
    more = divergence(law, 100, CUT).delta(0.2) - divergence(plain, 100, CUT).delta(0.2)
    assert more == pytest.approx(law.excess, rel=1e-3)


def test_a_law_that_is_none_raises(subtests: pytest.Subtests) -> None:
    cases = [
        ((0.0, 0.5, 0.1), "epsilon is 0.0"),
        ((41.0, 0.5, 0.1), "epsilon is 41.0"),
        ((1.0, 0.0, 0.0), "single is 0.0"),
        ((1.0, 1.0, 1.0), "single is 1.0"),
        ((1.0, 0.5, 0.5), "pair is 0.5"),
        ((1.0, 0.75, 0.4), "pair is 0.4"),
        ((1.0, 0.5, -0.1), "pair is -0.1"),
        ((1.0, 0.5, 0.1, -1.0), "excess is -1.0"),
    ]
    for values, named in cases:
        with subtests.test(values=values, named=named), pytest.raises(ValueError, match=named):
            BlanketLaw(*values)


def test_no_reports_have_no_divergence() -> None:
    with pytest.raises(ValueError, match=r"reports is 0,.*\b1\b"):
        divergence(LAWS[0], 0, CUT)


# Building blocks.


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 10**7), st.floats(1e-6, 1.0 - 1e-6), st.floats(1e-30, 0.1))
def test_a_binomial_window_is_no_lower_than_the_law_and_cuts_no_more_than_it_says(
    count: int, chance: float, tail: float
) -> None:
    window = binomial_window(count, chance, 1.0 - chance, tail)
    exact = stats.binom.pmf(np.arange(window.first, window.last + 1), count, chance)
    assert np.all(window.weights >= exact * (1.0 - 1e-6))
    assert window.weights.sum() == pytest.approx(1.0, rel=1e-12)
    for trials, shift in ((count, 0), (count - 1, 1)):
        assert stats.binom.cdf(window.first - 1 - shift, trials, chance) <= tail
        assert stats.binom.sf(window.last - shift, trials, chance) <= tail


def test_the_tails_of_fair_coins(subtests: pytest.Subtests) -> None:
    for count in (0, 1, 2, 3, 10, 101, 4000, 1_000_001):
        with subtests.test(count=count):
            found = fair_tails(count, 1e-40)
            places = np.arange(found.first, found.first + len(found.tails))
            assert found.moments == pytest.approx(places * stats.binom.pmf(places, count, 0.5), rel=1e-8, abs=1e-300)
            assert found.tails[:-1] == pytest.approx(stats.binom.sf(places[:-1] - 1, count, 0.5), rel=1e-8, abs=1e-38)
            assert found.tails[-1] == 0.0


def test_a_spread_is_wider_than_the_sum_and_not_by_much(subtests: pytest.Subtests) -> None:
    for count in (0, 1, 5, 32, 33, 300, 40_000):
        for value in (1.5, 20.0):
            with subtests.test(count=count, value=value):
                others = Others(value, 0.2, 0.5, 0.3)
                spread = others.total(count, 1e-25)
                points = spread.points - count * others.mean
                assert spread.points.min() >= 0.0
                assert spread.weights.sum() == pytest.approx(1.0, rel=1e-12)
                assert spread.weights @ points == pytest.approx(0.0, abs=1e-9 * max(1.0, count * value))
                variance = count * (0.2 * value**2 + 0.5 - others.mean**2)
                # Those of neither vary as if none were of both, and the grid adds a little.
                assert variance * (1.0 - 1e-9) <= spread.weights @ points**2 <= variance * 1.2 + 1e-12
                if count in (5, 300):
                    both = np.arange(count + 1)[:, None]
                    other = np.arange(count + 1)[None, :]
                    chances = stats.binom.pmf(both, count, 0.2) * stats.binom.pmf(other, count - both, 0.5 / 0.8)
                    sums = value * both + other - count * others.mean
                    for place in np.linspace(-3.0, 3.0, 13) * math.sqrt(variance):
                        exact = float((np.where(chances > 0, chances, 0.0) * np.maximum(place - sums, 0.0)).sum())
                        assert spread.weights @ np.maximum(place - points, 0.0) >= exact * (1.0 - 1e-9)
