"""Questions about results with noise of the mixes: true counts, and dummies as the mixes draw them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from hushcount.arrays import FloatArray, IntArray
from hushcount.campaigns.campaign import Campaign
from hushcount.errors import FormatError
from hushcount.numbers import Bins
from hushcount.questions import quantiles
from hushcount.questions.changes import Changes, changes
from hushcount.questions.counted import Group
from hushcount.questions.shares import stratum_shares
from hushcount.questions.stratum_changes import stratum_pairs
from hushcount.questions.totals import total
from tests.support.noisy import noisy_campaign, noisy_result
from tests.support.statistics import FAILURE, variance_ratio_bounds

ITEMS = tuple(f"item {number}" for number in range(60))
SHARES = np.concatenate([np.full(5, 0.1), np.full(15, 0.002), np.zeros(40), [0.47]])
SIZE = 10


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return noisy_campaign(tmp_path_factory.mktemp("noisy"), ITEMS)


def groups_of(campaign: Campaign) -> tuple[Group, ...]:
    """Return every item alone, in the order of the cells, then groups of neighbours."""
    dictionary = campaign.read_dictionary()
    assert dictionary is not None
    names = dictionary.items
    wider = [Group(f"from {at}", names[at : at + SIZE]) for at in range(0, len(names), SIZE)]
    return (*(Group(name, (name,)) for name in names), *wider)


def of_groups(cells: FloatArray) -> FloatArray:
    """Return the sums of `groups_of`, of numbers by cell."""
    items = cells[: len(ITEMS)]
    return np.concatenate([items, items.reshape(-1, SIZE).sum(axis=1)])


def clients(run: int, reports: int, shares: FloatArray = SHARES) -> IntArray:
    return np.random.default_rng(run).multinomial(reports, shares)


def compared(campaign: Campaign, run: int, sizes: tuple[int, int], after: FloatArray = SHARES) -> Changes:
    sides = [
        [noisy_result(campaign, clients(2 * run + side, n, shares), 2 * run + side)]
        for side, (n, shares) in enumerate(zip(sizes, (SHARES, after), strict=True))
    ]
    return changes(*sides, groups_of(campaign))


@pytest.mark.parametrize("sizes", [(3_000, 3_000), (1_000, 6_000)])
def test_unchanged_shares_are_rarely_said_to_change(campaign: Campaign, sizes: tuple[int, int]) -> None:
    """40 comparisons of 66 groups: binomial bounds at FAILURE of p-values, of false discoveries and of intervals."""
    found = [compared(campaign, run, sizes) for run in range(40)]
    p = np.concatenate([one.p_value for one in found])
    for one in found[:3]:
        assert (one.both.largest_p_value() >= one.p_value - 1e-12).all()
        # Of a group of more clients the normal law is near enough.
        assert one.exact[:60].all()
    for alpha in (0.2, 0.05, 0.01, 0.001):
        # Counts of one result are weakly dependent, through its clients only.
        assert (p <= alpha).sum() <= stats.binom.isf(FAILURE, len(p), alpha)
    # They are not of no use either.
    assert (p <= 0.2).mean() > 0.08
    assert sum((one.adjusted <= 0.05).any() for one in found) <= stats.binom.isf(FAILURE, len(found), 0.05)
    holds = np.array([(one.low <= 0.0) & (one.high >= 0.0) for one in found])
    assert holds.mean() >= stats.binom.isf(1.0 - FAILURE, holds.size, 0.95) / holds.size


def test_a_planted_change_is_found_and_its_interval_holds_it(campaign: Campaign) -> None:
    """The planted rise is 10 standard errors: it is missed with a probability below 1e-12."""
    after = SHARES.copy()
    after[30], after[-1] = 0.05, SHARES[-1] - 0.05
    found = [compared(campaign, run, (3_000, 3_000), after) for run in range(40)]
    assert all(one.adjusted[30] < 1e-6 and one.difference[30] > 0.0 for one in found)
    held = sum(one.low[30] <= 0.05 <= one.high[30] for one in found)
    assert held >= stats.binom.isf(1.0 - FAILURE, len(found), 0.95)
    # A forger moves one item by one report, so 1 % of both sides' reports move a share by 1 % on each side.
    assert all(one.forged_up[30] <= 0.02 for one in found)


def test_windows_add_up_with_the_dummies_of_each(campaign: Campaign) -> None:
    """Totals of 1 to 5 windows of 100 runs: chi-square bounds, and binomial ones of the intervals, at FAILURE each."""
    groups = groups_of(campaign)
    for windows in (1, 5):
        wrong, holds, seen = [], [], []
        for run in range(100):
            held = [clients(windows * run + window, 2_000) for window in range(windows)]
            results = [noisy_result(campaign, one, windows * run + at, f"{at}") for at, one in enumerate(held)]
            found, truth = total(results, groups), of_groups(np.sum(held, axis=0))
            assert found.reports == 2_000 * windows
            wrong.append((found.count - truth) / found.standard_error)
            holds.append((found.low <= truth + 1e-5) & (truth - 1e-5 <= found.high))
            seen.append(found.p_value[20:60])
        low, high = variance_ratio_bounds(np.size(wrong), kurtosis=3.0)
        assert low <= (np.array(wrong) ** 2).mean() <= high
        assert np.mean(holds) >= stats.binom.isf(1.0 - FAILURE, np.size(holds), 0.95) / np.size(holds)
        # Nobody has these items.
        assert (np.array(seen) <= 0.001).sum() <= stats.binom.isf(FAILURE, np.size(seen), 0.001)


def test_results_of_two_epochs_add_up(campaign: Campaign, tmp_path: Path) -> None:
    other = noisy_campaign(tmp_path, ITEMS, id="other")
    held = clients(1, 2_000)
    results = [noisy_result(campaign, held, 1), noisy_result(campaign, held, 2), noisy_result(other, held[::-1], 3)]
    groups = groups_of(campaign)
    found, one = total(results, groups), total(results[:1], groups)
    assert found.standard_error[:60] == pytest.approx(np.sqrt(3.0) * one.standard_error[:60])
    # Limits of both files are added in squares, so they are nearly as wide as those of one file with all batches.
    together = total([*results[:2], noisy_result(campaign, held, 4)], groups)
    assert found.high - found.low == pytest.approx(together.high - together.low, rel=0.15)


# Private axes

AXES = {"listed": [{"name": "os", "values": ["ios", "linux"], "public": False}], "key": "ab" * 32}
IN_STRATUM = np.array([0.4, 0.2, 0.05, 0.0, 0.0, 0.0, 0.35])


@pytest.fixture(scope="module")
def broken_down(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return noisy_campaign(tmp_path_factory.mktemp("axes"), ITEMS[:6], axes=AXES)


def test_shares_in_strata_and_their_differences(broken_down: Campaign) -> None:
    """150 results of 14 groups: binomial bounds at FAILURE of intervals and of p-values."""
    dictionary = broken_down.read_dictionary()
    assert dictionary is not None
    names, strata = dictionary.items, ("ios", "linux", "other")
    every = [np.array([number], dtype=np.uint64) for number in range(7)]
    cells = {name: broken_down.cells_of(every, [(("os", name),)] * 7) for name in strata}

    def groups(name: str) -> list[Group]:
        where = (("os", name),)
        return [*(Group(item, (item,), where) for item in names), Group("three", names[2:5], where)]

    truth = np.append(IN_STRATUM[:6], IN_STRATUM[2:5].sum())
    holds, p = [], []
    for run in range(150):
        held = np.zeros(21, dtype=np.int64)
        for at, (name, reports) in enumerate(zip(strata, (400, 1_500, 60), strict=True)):
            held[np.concatenate(cells[name])] = clients(3 * run + at, reports, IN_STRATUM)
        result = noisy_result(broken_down, held, run)
        low, high = stratum_shares([result], groups("ios")).sampled.interval(0.95)
        holds.append((low <= truth + 1e-9) & (truth - 1e-9 <= high))
        p.append(stratum_pairs([result], groups("ios"), groups("linux")).p_value)
        # All strata together are all reports.
        whole = result.sums([Group("all", names, others=True)])
        assert whole.count[0] == pytest.approx(result.reports)
    assert np.mean(holds) >= stats.binom.isf(1.0 - FAILURE, np.size(holds), 0.94) / np.size(holds)
    for alpha in (0.05, 0.01, 0.001):
        assert (np.array(p) <= alpha).sum() <= stats.binom.isf(FAILURE, np.size(p), alpha)
    assert (np.array(p) <= 0.2).mean() > 0.08


# Numbers


def numbered(folder: Path, edges: tuple[str, ...], *, mean: bool = False) -> tuple[Campaign, Bins]:
    bins = Bins(edges, "ms")
    items = (f"{edges[-1]} ms",) if mean else bins.names
    return noisy_campaign(folder, items, number={"edges": edges, "unit": "ms", "mean": mean}), bins


def test_histograms_and_quantiles_hold_the_truth(tmp_path: Path) -> None:
    """100 results of 20 bins; intervals of three quantiles alone: a binomial bound at FAILURE."""
    campaign, bins = numbered(tmp_path, tuple(str(10 * edge) for edge in range(1, 20)))
    dictionary = campaign.read_dictionary()
    assert dictionary is not None
    order = [dictionary.items.index(name) for name in bins.names]
    asked, holds, shares = (0.25, 0.5, 0.9), 0, np.exp(-np.arange(20) / 4.0)
    for run in range(100):
        drawn = np.random.default_rng(run).multinomial(3_000, shares / shares.sum())
        held = np.zeros(21, dtype=np.int64)
        held[order] = drawn
        sums = quantiles.sums_of([noisy_result(campaign, held, run)])
        found = quantiles.quantiles(sums, asked)
        assert found.are_known
        for one in found.found:
            true = int(np.searchsorted(np.cumsum(drawn), one.share * drawn.sum()))
            holds += one.alone[0] <= true <= one.alone[1]
            assert one.alone[1] - one.alone[0] <= 3
    assert holds >= stats.binom.isf(1.0 - FAILURE, 300, 0.95)


def test_the_sum_of_the_bins_above_an_edge_errs_by_its_formula(tmp_path: Path) -> None:
    campaign, bins = numbered(tmp_path, tuple(str(10 * edge) for edge in range(1, 20)))
    result = noisy_result(campaign, np.full(21, 100), 1)
    noise = campaign.require_frequency().encoder.noise
    assert noise is not None
    found = result.sums([Group("above", bins.names[8:])])
    assert found.standard_error[0] ** 2 == pytest.approx(noise.variance * 12 * (1.0 - 12 / 21))


def test_noise_has_no_mean_and_the_campaign_says_so(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"noise: number.mean must be false"):
        numbered(tmp_path, ("0", "100"), mean=True)
