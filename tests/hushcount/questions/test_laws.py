"""The laws of supports: limits of every law that there is, for every number of supports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from benchmarks.calibration_changes import Scene, simulated, zipf
from hushcount.maths import support_limits
from hushcount.maths.objectives import Objective
from hushcount.maths.support_limits import SupportCounts
from hushcount.oracles.catalogue import build, plan
from hushcount.oracles.estimates import Estimate, SharedCells, Supports
from hushcount.oracles.group_estimates import Rest, Rows, SupportSums
from hushcount.oracles.tally import Tally
from hushcount.questions.changes import changes
from hushcount.questions.laws import Law, law_of
from hushcount.questions.sides import Side
from tests.hushcount.oracles.cases import pool_seed
from tests.support.statistics import FAILURE
from tests.support.words import SeededWords

N, ITEMS = 20, 12
TAILS = (0.4, 0.025, 1e-7)
NAMES = ("grr", "ss", "oue", "sue", "wss", "he", "ais", "ocms", "gcms", "rhr")


def estimates() -> Iterator[tuple[str, Estimate]]:
    """Yield what real tallies say of an item, of two and of more items, and of all but one and all but three."""
    for name in NAMES:
        for epsilon in (1.0, 6.0):
            domain = None if name == "gcms" else ITEMS
            given = {"seed": pool_seed(1), "k": 4, "m": 8} if name == "gcms" else {}
            parameters = plan(name, epsilon, domain, given, Objective(), pool_seed(1))
            mechanism, items = build(name, epsilon, domain, parameters), np.arange(ITEMS, dtype=np.uint64)
            counts = mechanism.new_tally(items)
            mechanism.accumulate(counts, mechanism.encode(np.resize(items, N), SeededWords(3)), items)
            chosen = [items[:1], items[:2], items[:5], items[:-1], items[:-3]]
            for groups in (chosen[:1], chosen if domain else chosen[:3]):
                yield f"{name}-{epsilon:g}", mechanism.sums(Tally(counts, N, items), groups)


def laws() -> Iterator[tuple[str, Law]]:
    """Yield the law of each row, with K from 0 to what all reports can support, a row each."""
    tried = set[tuple[float, ...]]()
    for name, estimate in estimates():
        for times in (1, 3):
            whole = law_of(estimate.repeated(times))
            for row in np.flatnonzero(whole.there):
                moments = tuple(float(column[row]) for column in (whole.own, whole.own_spread, whole.turned))
                if (*moments, times) in tried:
                    continue
                tried.add((*moments, times))
                # A report supports less than half of all items, except for a few bits of unary ones.
                supports = np.arange(N * (1 if whole.own[row] < 1.0 else ITEMS // 2) + 1, dtype=np.float64)
                every = (np.full(len(supports), column[row]) for column in (
                    whole.own, whole.other, whole.own_spread, whole.other_spread, whole.turned,
                ))  # fmt: skip
                yield f"{name}-{row}-{times}", Law(supports, *every, times)


def test_every_kind_of_estimate_with_a_law_is_among_those_tried() -> None:
    kinds = set[type[Estimate]]()
    for _, estimate in estimates():
        parts = [part for _, part in estimate.parts] if isinstance(estimate, Rows) else [estimate]
        kinds |= {type(estimate), *map(type, parts), *(type(part.others) for part in parts if isinstance(part, Rest))}
    assert {Supports, SupportSums, SharedCells, Rest, Rows} <= kinds


def test_limits_are_around_every_estimate_and_rise_with_it() -> None:
    tried = 0
    for name, law in laws():
        answers = N / law.repeats
        share = (law.supports / N - law.other) / (law.own - law.other)
        # What no supports at all say, and all reports.
        most = 1.0 if law._counts(answers, True).binary[0] else np.inf
        least, most = ((each - law.other[0]) / (law.own[0] - law.other[0]) for each in (0.0, most))
        for drawn in (False, True):
            for tail in TAILS:
                low, high = law.limits(answers, tail, drawn)
                assert np.isfinite([low, high]).all(), (name, drawn, tail)
                if law.turned[0]:
                    low, high = 1.0 - high, 1.0 - low
                assert (low <= share + 1e-9).all(), (name, drawn, tail)
                assert (share <= high + 1e-9).all(), (name, drawn, tail)
                assert (high - low > 0.01 / answers).all(), (name, drawn, tail)
                assert (np.diff([low, high], axis=1) > -1e-5).all(), (name, drawn, tail)
                assert (low >= least - 1e-9).all(), (name, drawn, tail)
                assert (high <= most + 1e-9).all(), (name, drawn, tail)
                tried += len(low)
    assert tried > 5_000


def test_no_supports_at_all_have_an_upper_limit() -> None:
    """Of two items, randomised response: nobody supported them, among 1,000 that would each with probability 2 q."""
    p, q = 0.968, 3.2e-4
    one = np.ones(1)
    spreads = (p + q) * (1 - p - q) * one, 2 * q * (1 - 2 * q) * one
    law = Law(0.0 * one, (p + q) * one, 2 * q * one, *spreads, np.zeros(1, dtype=np.bool_), 1)
    low, high = law.limits(1000.0, 0.025, drawn=True)
    assert low == pytest.approx(-2 * q / (p - q))
    assert high == pytest.approx((1 - 0.025 ** (1 / 1000) - 2 * q) / (p - q), rel=1e-5)


def test_nothing_seen_on_either_side_is_no_change() -> None:
    scene = Scene("", "oue", 6.0, np.full(12, 1 / 12), (300, 200), size=3)
    sides = scene.sides(0)
    empty = [replace(side, tally=replace(side.tally, counts=0 * side.tally.counts)) for side in sides]
    for side in empty:
        side.__dict__["dictionary"] = scene.dictionary
    found = changes(empty[:1], empty[1:], scene.groups)
    assert found.exact.all()
    assert found.p_value == pytest.approx(1.0)
    assert (found.low < 0.0).all()
    assert (found.high > 0.0).all()


def test_a_change_of_all_but_one_item_is_held_as_often_as_stated() -> None:
    """Fails with probability below 1e-6: few reports support the two other items, and most often none does."""
    scene = Scene("", "grr", 8.0, zipf(300), (500, 20_000), size=299)
    runs = 60
    held = simulated(scene, range(runs)).holds[:, -1].sum()
    assert held >= stats.binom.ppf(FAILURE, runs, 0.95)


def test_results_that_are_added_up_have_the_limits_of_all_their_supports() -> None:
    """Of one law: as if they were one result. Of two laws, in squares: no wider than both ends together."""
    shares = np.full(12, 1 / 12)
    one, other = (Scene("", "oue", epsilon, shares, (300, 200)) for epsilon in (6.0, 5.0))
    sides = [*one.sides(0), other.sides(1)[0]]
    sums = [side.sums(one.groups) for side in sides]
    sizes = np.ones(12, dtype=np.int64)
    alike, unlike = (Side(tuple(sides[a:b]), tuple(sums[a:b]), sizes) for a, b in ((0, 2), (1, 3)))
    for drawn in (False, True):
        law = law_of(sums[0])
        whole = replace(law, supports=law.supports + law_of(sums[1]).supports)
        assert np.array_equal(alike.limits(0.025, drawn), whole.limits(500.0, 0.025, drawn))
        low, high = unlike.limits(0.025, drawn)
        ends = np.zeros((2, 12))
        for part, reports in zip(sums[1:], (200, 300), strict=True):
            ends += np.multiply(law_of(part).limits(reports, 0.025, drawn), reports / 500)
        assert (low > ends[0]).all()
        assert (high < ends[1]).all()
        assert (low < unlike.share).all()
        assert (high > unlike.share).all()


# The law itself: sums of two binomial numbers.


def test_an_interval_is_as_wide_as_the_spread_of_the_item_itself() -> None:
    """Where Clopper and Pearson's was 4 to 12 times as wide: 60 % of a million reports, and fewer."""
    n, e = 1e6, np.exp(9.694)
    p, q = e / (e + 99), 1 / (e + 99)
    for held in (600_000, 77_259, 15_451, 825):
        expected = held * p + (n - held) * q
        ideal = 2 * 1.959964 * np.sqrt(held * p * (1 - p) + (n - held) * q * (1 - q)) / (p - q)
        low, high = SupportCounts.of_items(n, p, q).limits(np.array([np.rint(expected)]), 0.025)
        assert high - low == pytest.approx(ideal, rel=0.035)


def test_the_saddle_point_has_the_tails_of_the_exact_law_where_it_takes_over() -> None:
    """To 0.3 %, against the sum of both binomial laws, so that limits have no step of a thousandth of their width."""
    for n in (1000, 1_000_000):
        for p, q in ((0.5, 0.25), (0.99, 0.25), (0.99, 1e-4), (0.999, 1e-6), (0.5, 1e-4)):
            # As many clients as make the variance that of the border.
            held = np.rint((support_limits.EXACT_BELOW - n * q * (1 - q)) / (p * (1 - p) - q * (1 - q)))
            held = float(np.clip(held, 0.0, n))
            parts = [np.array([value]) for value in (held, p, n - held, q)]
            mean, spread = held * p + (n - held) * q, np.sqrt(held * p * (1 - p) + (n - held) * q * (1 - q))
            if spread**2 < 0.9 * support_limits.EXACT_BELOW:
                continue
            for z in (0.5, 2.0, 5.0):
                for above, k in ((True, np.ceil(mean + z * spread)), (False, np.floor(mean - z * spread))):
                    exact, near = (
                        tails(np.array([k]), *parts, above)
                        for tails in (support_limits._summed, support_limits._saddle_point)
                    )
                    assert near == pytest.approx(exact, rel=0.003), (n, p, q, z, above)


def test_the_exact_sum_is_the_convolution_of_both_laws() -> None:
    for held, p, n, q in ((7, 0.9, 60, 0.02), (30, 0.5, 31, 0.3), (0, 0.9, 20, 0.1), (20, 0.9, 20, 0.1)):
        law = np.convolve(
            stats.binom.pmf(np.arange(held + 1), held, p), stats.binom.pmf(np.arange(n - held + 1), n - held, q)
        )
        k, ones = np.arange(n + 1.0), np.ones(n + 1)
        parts = (held * ones, p * ones, (n - held) * ones, q * ones)
        assert support_limits._summed(k, *parts, True) == pytest.approx(law[::-1].cumsum()[::-1], rel=1e-9)
        assert support_limits._summed(k, *parts, False) == pytest.approx(law.cumsum(), rel=1e-9)
