"""What comparisons say: how often nothing is found where nothing changed, and how often intervals hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from scipy import stats

from benchmarks.calibration_changes import (
    ALPHA,
    LISTED,
    POOL,
    Answers,
    Scene,
    changed,
    compared,
    false_discoveries,
    simulated,
    zipf,
)
from hushcount.arrays import FloatArray
from hushcount.campaigns.campaign import Campaign
from hushcount.errors import UsageError
from hushcount.oracles.simulation import fresh_functions
from hushcount.questions import comparing
from hushcount.questions.changes import changes
from hushcount.questions.counted import Counted, Group
from tests.support.statistics import deviations

SHARES = zipf(40)
UNEVEN = np.array([0.5] + [0.0125] * 40)
SMALL = {"k": 8, "m": 16, "s": 2}


def scene(oracle: str, epsilon: float, reports: tuple[int, int], **more: object) -> Scene:
    return Scene(oracle, oracle, epsilon, SHARES, reports, **more)  # type: ignore[arg-type]


MANY = {
    **{name: scene(name, 1.0, (4000, 2000), size=13) for name in ("ss", "ais", "ocms", "oue", "sue", "hr", "rhr")},
    "grr": scene("grr", 3.0, (20_000, 30_000), size=13),
    "gcms": scene("gcms", 2.0, (1500, 1500), parameters=SMALL, size=13),
    "gcms-other": scene("gcms", 2.0, (1500, 1500), parameters=SMALL, seeds="other", size=13),
}
"""Enough supports for the normal law, except in grr and in a pool of one seed."""
FEW = {
    "grr": scene("grr", 5.0, (300, 200), size=4),
    "ais": scene("ais", 5.0, (300, 200), size=4),
    "ss": scene("ss", 3.0, (100, 200), size=4),
    "oue": scene("oue", 4.0, (300, 300), size=4),
}
RUNS = 60
LONG = 120
"""Enough to reject errors of 0.7 or 1.3 times the size: null changes would be found in 17 %, or 1 %, instead of 5."""


@lru_cache(maxsize=16)
def answers(one: Scene, runs: int) -> Answers:
    return simulated(one, range(runs))


def agrees(per_run: FloatArray, expected: float, slack: float = 0.006) -> bool:
    """Return whether a mean over independent runs is the expected one, but with probability below FAILURE.

    Normal bounds from the runs' own spread, at 1.25 times what FAILURE needs; `slack` for what is careful by design.
    """
    error = per_run.std() / math.sqrt(len(per_run))
    return bool(abs(per_run.mean() - expected) <= 1.25 * deviations() * error + slack)


def found(one: Answers, factor: float, *, single: bool = True) -> FloatArray:
    """Return float64[runs]: how often a test whose errors are `factor` times as large finds a change."""
    chosen = one.deviations[:, one.single == single]
    rates: FloatArray = (np.abs(chosen) > factor * stats.norm.isf(ALPHA / 2)).mean(axis=1)
    return rates


@pytest.mark.parametrize("name", MANY)
@pytest.mark.long(but=("ais",))
def test_null_changes_are_found_at_the_stated_rate_and_intervals_hold(name: str) -> None:
    """Fails with probability below 1e-6 for each assertion. Errors of 0.7 or 1.3 times the size are rejected."""
    one = answers(MANY[name], RUNS if name == "ais" else LONG)
    assert agrees(one.rate(ALPHA), ALPHA)
    assert agrees(one.rate(0.01), 0.01, 0.003)
    assert agrees(one.holds[:, one.single].mean(axis=1), 0.95)
    assert agrees(one.rate(ALPHA, single=False), ALPHA, 0.012)
    assert agrees(one.holds[:, ~one.single].mean(axis=1), 0.95, 0.012)
    # Of shares that may be 0, any ratio may be the right one.
    assert one.ratio_holds.mean() > 0.95
    for factor in (0.7, 1.3):
        assert not agrees(found(one, factor), ALPHA)
    assert not agrees(found(one, 0.5, single=False), ALPHA, 0.012)


@pytest.mark.parametrize("name", FEW)
@pytest.mark.long(but=("grr",))
def test_of_few_supports_null_changes_are_found_no_more_often_than_stated(name: str) -> None:
    """Fails with probability below 1e-6; a test at six times the level is rejected for groups."""
    one = answers(FEW[name], 2 * RUNS if name == "grr" else LONG)
    assert one.exact == 1.0
    for single in (True, False):
        for alpha in (0.01, ALPHA):
            rate = one.rate(alpha, single=single)
            assert rate.mean() <= alpha + 1.25 * deviations() * rate.std() / math.sqrt(len(rate))
    assert agrees(one.rate(ALPHA, single=False), ALPHA, 0.02)
    assert not agrees(one.rate(6 * ALPHA, single=False), ALPHA, 0.02)
    assert one.holds.mean() > 0.95


def test_few_supports_are_tested_by_fisher() -> None:
    one = FEW["grr"]
    before, after = one.sides(3)
    both, items = changes([before], [after], one.groups), len(SHARES)
    for place in range(items):
        table = [
            [int(side.tally.counts[0, place]), side.reports - int(side.tally.counts[0, place])]
            for side in (before, after)
        ]
        assert both.p_value[place] == pytest.approx(stats.fisher_exact(table).pvalue, rel=1e-9)
    # Of randomised response a group is an item of its own.
    group = one.dictionary.positions(one.groups[items].items).astype(np.intp)
    counts = [int(side.tally.counts[0, group].sum()) for side in (before, after)]
    table = [[count, side.reports - count] for count, side in zip(counts, (before, after), strict=True)]
    assert both.p_value[items] == pytest.approx(stats.fisher_exact(table).pvalue, rel=1e-6)


def none(_results: object, _counts: object, sizes: tuple[FloatArray, ...]) -> FloatArray:
    return np.zeros(len(sizes[0]))


@pytest.mark.long
def test_pools_of_two_seeds_add_their_collisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails with probability below 1e-6; without collisions null changes are found far too often."""
    one = replace(MANY["gcms-other"], reports=(6000, 6000), size=0)
    assert agrees(simulated(one, range(60)).rate(ALPHA), ALPHA)
    monkeypatch.setattr(comparing, "pool_variance", none)
    assert simulated(one, range(30)).rate(ALPHA).mean() > 0.1


@pytest.mark.long
def test_what_the_rest_changes_moves_an_item_of_a_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails with probability below 1e-6; the pool of both windows is one, and half of all clients change their item."""
    after = UNEVEN.copy()
    after[0], after[1:11] = 0.1, after[1:11] + 0.04
    one = Scene("uneven", "gcms", 2.0, UNEVEN, (6000, 6000), after, parameters=SMALL)

    def rate(runs: int) -> FloatArray:
        still = np.arange(len(UNEVEN)) > 10
        rates: FloatArray = (simulated(one, range(runs)).p[:, still] <= ALPHA).mean(axis=1)
        return rates

    # Few frequent items make collisions lean, and the same in all items.
    assert rate(60).mean() < 0.08
    monkeypatch.setattr(comparing, "pool_variance", none)
    assert rate(30).mean() > 0.15


@pytest.mark.long
def test_of_a_list_no_more_are_false_than_stated() -> None:
    """Fails with probability below 1e-6: of what is found among 20 changes of 100, and among none."""
    null = replace(LISTED, after=None)
    for one, expected in ((LISTED, 0.8 * ALPHA), (null, ALPHA)):
        many = simulated(one, range(60))
        false = false_discoveries(one, many)
        assert false.mean() <= expected + 1.25 * deviations() * false.std() / math.sqrt(len(false))
    # So few false ones do not come by themselves: without a correction most lists have one.
    assert (many.p <= ALPHA).any(axis=1).mean() > 0.9
    assert (simulated(LISTED, range(30)).adjusted[:, -10:] <= ALPHA).mean() > 0.2


@pytest.mark.long
def test_corrected_intervals_say_what_the_verdicts_say_and_hold() -> None:
    """Fails with probability below 1e-6: in each list, and over lists the share of missed intervals among findings."""
    contradictions, missed = 0, []
    for one in (LISTED, replace(LISTED, after=None)):
        truth = one.truth[1] - one.truth[0]
        for run in range(25):
            both = compared(one, run)
            found = both.adjusted <= ALPHA
            assert ((both.low_all > 0.0) | (both.high_all < 0.0)).tolist() == found.tolist()
            assert (np.sign(both.difference[found]) == np.sign(both.low_all[found] + both.high_all[found])).all()
            assert (both.low_all <= both.low + 1e-12).all()
            assert (both.high <= both.high_all + 1e-12).all()
            contradictions += int((((both.low > 0.0) | (both.high < 0.0)) & ~found).sum())
            outside = (truth < both.low_all) | (both.high_all < truth)
            missed.append((outside & found).sum() / max(found.sum(), 1))
    rates = np.array(missed)
    assert rates.mean() <= ALPHA + 1.25 * deviations() * rates.std() / math.sqrt(len(rates))
    # Intervals of single rows contradict the verdicts of a list: of 100 about 5.
    assert contradictions > 50


# Windows that are added up


def remembering(campaign: Campaign) -> Campaign:
    return Campaign.model_validate({**campaign.model_dump(mode="json", exclude_none=True), "memory": True})


def with_campaign(result: Counted, campaign: Campaign) -> Counted:
    other = replace(result, campaign=campaign)
    other.__dict__["dictionary"] = result.dictionary
    return other


def test_windows_of_clients_that_repeat_their_answers_are_not_independent() -> None:
    """Fails with probability below 1e-6. In the worst case three windows have the same reports."""
    one, runs = scene("hr", 1.0, (2000, 2000)), 60

    def rates(change: Callable[[Campaign], Campaign]) -> FloatArray:
        campaign = change(one.campaign(fresh_functions(0, 0)))
        found = []
        for run in range(runs):
            sides = ([with_campaign(side, campaign)] * 3 for side in one.sides(run))
            found.append(changes(*sides, one.groups).p_value <= ALPHA)  # type: ignore[call-arg,arg-type]
        each: FloatArray = np.array(found).mean(axis=1)
        return each

    assert agrees(rates(remembering), ALPHA)
    assert not agrees(rates(lambda campaign: campaign), ALPHA)


def test_windows_of_one_file_are_one_window() -> None:
    one = scene("ais", 1.0, (2000, 2000), size=13)
    parts, after = [one.counted(one.campaign("ab" * 32), 0, run) for run in range(3)], one.sides(9)[1]
    counts = np.sum([part.tally.counts for part in parts], axis=0)
    whole = replace(parts[0], tally=replace(parts[0].tally, counts=counts, reports=6000))
    whole.__dict__["dictionary"] = one.dictionary
    both, added = changes([whole], [after], one.groups), changes(parts, [after], one.groups)
    assert added.reports_before == 6000
    assert np.array_equal(both.p_value, added.p_value)
    assert np.array_equal(both.low, added.low)


def test_results_of_two_files_are_added_with_the_errors_of_each() -> None:
    one, other = scene("ss", 1.0, (3000, 3000)), scene("hr", 2.0, (1000, 1000))
    first, after = one.sides(1)
    second = other.sides(2)[0]
    both = changes([first, second], [after], one.groups)
    apart = [changes([each], [after], one.groups) for each in (first, second)]
    assert both.before == pytest.approx(0.75 * apart[0].before + 0.25 * apart[1].before)
    noise = [each.standard_error**2 - changes([after], [after], one.groups).standard_error ** 2 / 2 for each in apart]
    expected = 0.75**2 * noise[0] + 0.25**2 * noise[1]
    assert both.standard_error**2 - changes([after], [after], one.groups).standard_error ** 2 / 2 == pytest.approx(
        expected
    )


def test_all_items_together_never_change() -> None:
    one = scene("ais", 1.0, (2000, 2000))
    before, after = one.sides(1)
    everything = changes([before], [after], [Group("all", (*one.dictionary.items,)), *one.groups[:2]])
    # All of the dictionary: n less "other".
    alone = replace(one, before=np.append(SHARES, 0.0))
    assert everything.standard_error[0] < 2.0 * everything.standard_error[1]
    assert everything.p_value[0] > 1e-4
    assert len(alone.dictionary.items) == 41


def test_a_planted_rise_is_found_and_nothing_else() -> None:
    one = scene("ais", 2.0, (20_000, 20_000))
    one = replace(
        one, after=changed(SHARES, 2, 1.0) * np.append(np.full(39, 0.95 / (1 - SHARES[39])), 0.05 / SHARES[39])
    )
    both = compared(one, 5)
    assert np.flatnonzero(both.p_bonferroni <= 1e-3).tolist() == [39]
    assert both.adjusted[39] < 1e-4
    assert both.low[39] > 0.0
    assert both.ratio_low[39] > 1.5


def test_what_cannot_be_compared_is_one_sentence() -> None:
    one = scene("ss", 1.0, (100, 100))
    before, after = one.sides(0)
    with pytest.raises(UsageError, match=r"'nobody' of group 'x' .*simulated, epoch 1"):
        changes([before], [after], [Group("x", ("nobody",))])
    with pytest.raises(UsageError, match="0 groups"):
        changes([before], [after], [])
    with pytest.raises(UsageError, match="0 results hold 0 reports"):
        changes([], [after], one.groups)
    with pytest.raises(UsageError, match=r"confidence is 1.5,.*\(0, 1\)"):
        changes([before], [after], one.groups, 1.5)


@pytest.mark.long
def test_a_large_pool_of_one_seed_has_no_collisions_between_equal_windows() -> None:
    """Fails with probability below 1e-6: collisions of two seeds would find nothing at the rate of one seed."""
    one = Scene("gcms", "gcms", 1.5, SHARES, (4000, 4000), parameters=POOL)
    many = simulated(one, range(25))
    assert agrees(many.rate(ALPHA), ALPHA, 0.01)
    assert not agrees(found(many, 2.0), ALPHA, 0.01)
