"""What every mechanism promises, held against every case: its law, its sampler, its estimates, its wire form."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from hushcount.arrays import UInt64Array
from hushcount.oracles.catalogue import CATALOGUE, MEANS, build
from hushcount.oracles.encoders.nested import Nested
from hushcount.oracles.encoders.pool import Pool
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.simulation import Population, exact_variance
from hushcount.oracles.tally import Tally
from hushcount.randomness import SystemWords
from hushcount.wire.fields import Bits, Number, SubsetOf, report_dtype
from tests.hushcount.oracles.cases import ALIASES, CASES, MEDIUM, NAMED, SEALED, SMALL, Case, each
from tests.support.enumeration import all_reports, all_values, laws, repeated, scores, supported
from tests.support.statistics import (
    FAILURE,
    chi_square_p,
    deviations,
    draws_to_tell_apart,
    variance_ratio_bounds,
)
from tests.support.words import SeededWords
from tests.vectors.subjects.reports import malformed

every_case = each([*CASES, SEALED])
every_small_case = each([*SMALL, SEALED])
# Reports of campaigns with noise of the mixes are not random, and lose everything to who opens them.
every_small_random_case = each(SMALL)
PICKLE_BYTES = 2048
REPRESENTATIVES = (
    "grr-60", "ss-100-ranked", "wss-98-in-100", "sue-100", "rappor-64-128", "hcms-100-50",
    "gcms-300-64", "he-100", "rhr-100", "ocms-1000", "ais-1000", "ais-open",
)  # fmt: skip
"""One case for each way to encode and to respond: what `make test` runs of the costly tests."""


# The law, by enumeration of all reports


@every_small_case
def test_probabilities_of_all_reports_sum_to_one_for_every_item(case: Case) -> None:
    totals = laws(case.mechanism, all_reports(case.mechanism), case.items).sum(axis=1)
    assert totals == pytest.approx(np.ones(len(case.items)), abs=1e-12)


@every_small_random_case
def test_the_worst_ratio_over_all_reports_and_items_is_the_stated_epsilon(case: Case) -> None:
    logs = np.log(laws(case.mechanism, all_reports(case.mechanism), case.items))
    worst = float((logs.max(axis=0) - logs.min(axis=0)).max())
    assert worst == pytest.approx(case.mechanism.epsilon, abs=1e-9)


@every_case
def test_the_budget_is_spent_and_not_exceeded(case: Case) -> None:
    spent = case.mechanism.epsilon
    assert spent <= case.epsilon
    assert not case.spends or spent == pytest.approx(case.epsilon, abs=1e-12)


@dataclass(frozen=True)
class Moments:
    """By enumeration: float64[items, items], the mean and the variance of an item's score, given the item held."""

    mean: np.ndarray
    spread: np.ndarray


@lru_cache(maxsize=4)
def moments(case: Case) -> Moments:
    reports = all_reports(case.mechanism)
    law, score = laws(case.mechanism, reports, case.items), scores(case.mechanism, reports, case.items)
    mean = law @ score
    return Moments(mean, law @ score**2 - mean**2)


@every_small_case
def test_own_item_scores_as_the_law_says(case: Case) -> None:
    found, law = moments(case), case.mechanism.law
    every = np.ones(len(case.items))
    assert found.mean.diagonal() == pytest.approx(float(law.own) * every, abs=1e-12)
    assert found.spread.diagonal() == pytest.approx(float(law.own_spread) * every, abs=1e-12)
    assert case.mechanism.p_star == float(law.own)


@every_small_case
def test_other_items_score_as_the_law_says(case: Case) -> None:
    found, law, mechanism = moments(case), case.mechanism.law, case.mechanism
    assert case.mechanism.q_star == float(law.other)
    for one, other in permutations(range(len(case.items)), 2):
        mean, spread = float(law.other), float(law.near_spread)
        if case.in_blocks and different_blocks(mechanism, case.items[[one, other]]):
            spread = float(law.far_spread)
        if case.pooled:
            # Fixed functions: exact for the collisions that this pair has; over pools they are k draws of 1/m.
            shared = collisions(mechanism, case.items[one], case.items[other])
            mean = of_shared(mechanism, shared)
            spread = mean * (1.0 - mean)
        assert found.mean[one, other] == pytest.approx(mean, abs=1e-12)
        assert found.spread[one, other] == pytest.approx(spread, abs=1e-12)


def different_blocks(mechanism: Mechanism, pair: UInt64Array) -> bool:
    near = mechanism.encoder.near_users(pair, np.ones(2))
    assert near is not None
    return not near.any()


def collisions(mechanism: Mechanism, one: int, other: int) -> float:
    """Return in which share of the pool's functions two items have one cell."""
    pool = pool_of(mechanism)
    rows = np.zeros(pool.rows, dtype=report_dtype(pool.fields))
    rows["row"] = np.arange(pool.rows)
    return float((pool.cell(rows, repeated(one, pool.rows)) == pool.cell(rows, repeated(other, pool.rows))).mean())


def pool_of(mechanism: Mechanism) -> Pool:
    encoder = mechanism.encoder
    pool = encoder.outer if isinstance(encoder, Nested) else encoder
    assert isinstance(pool, Pool)
    return pool


def of_shared(mechanism: Mechanism, shared: float) -> float:
    """Return the mean score of another item that shares this part of the functions."""
    p, q = mechanism.responder.p, mechanism.responder.q
    # Nested: a column of the Hadamard matrix puts different cells on one sign half of the time.
    apart = (p + q) / 2.0 if isinstance(mechanism.encoder, Nested) else q
    return shared * p + (1.0 - shared) * apart


@each([case for case in CASES if case.pooled])
def test_over_pools_the_law_of_other_items_is_exact(case: Case) -> None:
    # Two items share Binomial(k, 1/m) of the functions: summed out.
    mechanism, law = case.mechanism, case.mechanism.law
    pool = pool_of(mechanism)
    shared = np.arange(pool.rows + 1)
    chance = stats.binom.pmf(shared, pool.rows, 1.0 / pool.cells)
    mean = np.array([of_shared(mechanism, number / pool.rows) for number in shared])
    assert chance @ mean == pytest.approx(float(law.other), abs=1e-12)
    assert float(law.near_spread) == float(law.far_spread) == pytest.approx(law.other * (1.0 - law.other), abs=1e-12)
    assert chance @ (mean - law.other) ** 2 / law.gain**2 == pytest.approx(law.clash, rel=1e-9)


@every_small_case
def test_the_law_of_one_block_does_not_tell_near_from_far(case: Case) -> None:
    law = case.mechanism.law
    assert (law.near_spread == law.far_spread) == (not case.in_blocks)
    assert (law.clash > 0.0) == case.pooled
    assert law.gain == law.own - law.other


@every_small_case
def test_the_responder_supports_cells_with_the_stated_probabilities(case: Case) -> None:
    # p, q and the variance of how many cells a report supports, over all responses, for every true cell.
    responder = case.mechanism.responder
    responses = all_values(responder.fields)
    cells = range(responder.width)
    support = np.stack([responder.supports(responses, repeated(cell, len(responses))) for cell in cells], axis=1)
    law = np.stack([np.exp(responder.log_prob(responses, repeated(cell, len(responses)))) for cell in cells])
    pairwise = law @ support
    sizes = support.sum(axis=1)
    every = np.ones(responder.width)
    assert law.sum(axis=1) == pytest.approx(every, abs=1e-12)
    assert pairwise.diagonal() == pytest.approx(responder.p * every, abs=1e-12)
    # On average over the other cells; for each of them too, but for windows, which an affine function places.
    assert (pairwise.sum(axis=1) - responder.p) / (responder.width - 1) == pytest.approx(responder.q * every, abs=1e-12)
    if case.oracle not in ("ais", *MEANS):
        others = pairwise[~np.eye(responder.width, dtype=bool)]
        assert others == pytest.approx(np.full(len(others), responder.q), abs=1e-12)
    variance = law @ sizes**2 - (law @ sizes) ** 2
    assert variance == pytest.approx(responder.size_variance * every, abs=1e-12)


@each([case for case in [*CASES, SEALED] if case.mechanism.responder.width < 1 << 16])
def test_counting_cells_adds_up_what_is_supported(case: Case) -> None:
    mechanism, responder = case.mechanism, case.mechanism.responder
    reports = mechanism.encode(np.resize(case.items, 120), SeededWords(1))
    # All cells, or 500 of many, the first and the last among them.
    cells = np.unique(np.linspace(0, responder.width - 1, 500).astype(int))
    support = np.stack([responder.supports(reports, repeated(cell, len(reports))) for cell in cells], axis=1)
    together = np.zeros((1, responder.width), dtype=np.int64)
    responder.count_cells(together, reports, None)
    assert np.array_equal(together[0, cells], support.sum(axis=0))
    rows = np.arange(120) % 7
    apart = np.zeros((9, responder.width), dtype=np.int64)
    responder.count_cells(apart, reports, rows)
    expected = np.stack([support[rows == row].sum(axis=0) for row in range(9)])
    assert np.array_equal(apart[:, cells], expected)
    assert np.array_equal(apart.sum(axis=0), together[0])


def test_every_law_has_a_small_and_a_medium_case() -> None:
    assert {case.oracle for case in SMALL} == {case.oracle for case in MEDIUM} == {*CATALOGUE, *MEANS} - ALIASES.keys()


def test_an_alias_builds_the_law_that_it_names() -> None:
    aliased = [case for case in NAMED if case.oracle in ALIASES]
    assert {case.oracle for case in aliased} == ALIASES.keys()
    for case in aliased:
        law = {key: value for key, value in case.parameters.items() if key != "f"}
        assert build(ALIASES[case.oracle], case.epsilon, case.domain, law) == case.mechanism, case.name


# The sampler


def observed(case: Case, mechanism: Mechanism, item: int, reports: np.ndarray, draws: int) -> np.ndarray:
    place = {row.tobytes(): index for index, row in enumerate(case.mechanism.pack(reports))}
    sent = case.mechanism.pack(mechanism.encode(np.full(draws, item, np.uint64), SystemWords()))
    rows, counts = np.unique(sent, axis=0, return_counts=True)
    result = np.zeros(len(reports))
    result[[place[row.tobytes()] for row in rows]] = counts
    return result


@every_small_random_case
def test_the_sampler_follows_the_law_and_30_percent_off_is_rejected(case: Case) -> None:
    # Chi-square at FAILURE for all cases together; draws so many that a sampler at 1.3 or 0.7 epsilon passes with
    # probability FAILURE.
    reports, item = all_reports(case.mechanism), case.items[-1:]
    off = [case.at(1.3), case.at(0.7)]
    (law,) = laws(case.mechanism, reports, item)
    draws = draws_to_tell_apart(law, *(laws(other, reports, item)[0] for other in off))
    assert chi_square_p(observed(case, case.mechanism, item[0], reports, draws), law) >= FAILURE / len(SMALL)
    for other in off:
        assert chi_square_p(observed(case, other, item[0], reports, draws), law) < FAILURE


@every_small_random_case
def test_reports_of_one_call_are_independent(case: Case) -> None:
    # Neighbours in one call, as pairs (supports own item or not): a product law. Chi-square at FAILURE for all
    # cases together.
    mechanism, item = case.mechanism, case.items[:1]
    p = mechanism.responder.p
    # So many pairs that each kind is expected 30 times at least.
    draws = max(60_000, 2 * math.ceil(30.0 / min(p, 1.0 - p) ** 2))
    own = supported(mechanism, mechanism.encode(np.repeat(item, draws), SystemWords()), item)[:, 0]
    pairs = np.bincount(2 * own[0::2] + own[1::2], minlength=4)
    assert chi_square_p(pairs, np.array([(1 - p) ** 2, (1 - p) * p, p * (1 - p), p * p])) >= FAILURE / len(SMALL)


# Estimates

# Of so many runs the spread may be 0.73 to 1.32 of the stated variance: that of 0.7 epsilon is outside.
CLIENTS, RUNS = 120, 800
SHARES = (0.5, 0.3, 0.15, 0.05)


@pytest.mark.parametrize("chosen", [True, False], ids=["representatives", "others"])
@pytest.mark.long(but=("representatives",))
def test_estimates_are_unbiased_with_the_stated_variance(chosen: bool, subtests: pytest.Subtests) -> None:
    # Normal bounds for the mean, chi-square bounds for the spread, together at FAILURE; pools are drawn anew each run.
    assert {case.name for case in CASES} >= set(REPRESENTATIVES)
    for case in CASES:
        if (case.name in REPRESENTATIVES) == chosen:
            with subtests.test(case.name):
                check_estimates(case)


def check_estimates(case: Case) -> None:
    items = np.unique(np.concatenate([case.items[:4], case.items[-1:]]))
    shares = np.array(SHARES[: len(items) - 1] if len(items) > 2 else SHARES[:1])
    held = np.zeros(len(items))
    held[: len(shares)] = np.round(CLIENTS * shares)
    held[0] += CLIENTS - held.sum()
    clients = np.repeat(items, held.astype(int))
    found = np.stack([estimated(case.redrawn(run), clients, items, run) for run in range(RUNS)])

    variance = CLIENTS**2 * exact_variance(case.mechanism, Population(items, held.astype(np.int64)))
    assert np.all(np.abs(found.mean(axis=0) - held) <= deviations(2 * len(items)) * np.sqrt(variance / RUNS))
    low, high = variance_ratio_bounds(RUNS, 2 * len(items), kurtosis=0.4)
    ratio = ((found - held) ** 2).mean(axis=0) / variance
    assert low <= ratio.min()
    assert ratio.max() <= high


def estimated(mechanism: Mechanism, clients: UInt64Array, items: UInt64Array, run: int) -> np.ndarray:
    counts = mechanism.new_tally(items)
    mechanism.accumulate(counts, mechanism.encode(clients, SeededWords(run)), items)
    return mechanism.counts(Tally(counts, len(clients), items), items)


# The error of a line is that of all its points: test_line.py.
@each([case for case in [*CASES, SEALED] if case.oracle not in MEANS])
def test_an_estimate_states_the_errors_of_its_own_counts(case: Case) -> None:
    mechanism, items = case.mechanism, case.items
    counts = mechanism.new_tally(items)
    reports = mechanism.encode(np.repeat(items, 50), SeededWords(7))
    mechanism.accumulate(counts, reports, items)
    n, wanted = 50 * len(items), items[::-1]
    estimate = mechanism.estimate(Tally(counts, n, items), wanted)
    share = np.clip(estimate.count / n, 0.0, 1.0)
    near = None
    if case.in_blocks:
        # A report names a cell of an item's block with probability p + q if its client's item is in it, else 2 q.
        p, q = mechanism.responder.p, mechanism.responder.q
        cells = [mechanism.encoder.cell(reports, repeated(item, n)) for item in wanted]
        named = [
            sum(mechanism.responder.supports(reports, cell ^ np.uint64(bit)).sum() for bit in (0, 1)) for cell in cells
        ]
        near = np.clip((np.array(named) / n - 2 * q) / (p - q) - share, 0.0, 1.0 - share)
    assert np.array_equal(estimate.count, mechanism.counts(Tally(counts, n, items), wanted))
    assert estimate.standard_error**2 == pytest.approx(mechanism.variance(n, share, near), rel=1e-12)
    assert np.all((estimate.collision_error > 0.0) == case.pooled)


@every_case
def test_an_empty_tally_estimates_nothing(case: Case) -> None:
    mechanism, items = case.mechanism, case.items
    with pytest.raises(ValueError, match=r"reports is 0,.*\b1\b"):
        mechanism.estimate(Tally(mechanism.new_tally(items), 0, items), items)


@each([case for case in [*CASES, SEALED] if case.mechanism.encoder.domain])
def test_items_outside_the_dictionary_raise(case: Case) -> None:
    mechanism = case.mechanism
    outside = np.array([mechanism.encoder.domain], dtype=np.uint64)
    with pytest.raises(ValueError, match=rf"item.* 0\.\.{outside[0] - 1}"):
        mechanism.encode(outside, SeededWords(1))
    counts = mechanism.new_tally(case.items)
    with pytest.raises(ValueError, match=r"item"):
        mechanism.estimate(Tally(counts, 10, case.items), outside)


# Sharding and pickling


@every_case
def test_any_sharding_gives_the_identical_tally(case: Case) -> None:
    mechanism, items = case.mechanism, case.items
    reports = mechanism.encode(np.resize(items, 240), SeededWords(3))
    whole = mechanism.new_tally(items)
    mechanism.accumulate(whole, reports, items)
    drawn = np.random.default_rng(3)
    # In six shards by chance, and all in one with five empty ones; the shards in any order.
    for shards in (*drawn.integers(0, 6, (8, 240)), np.full(240, 2)):
        total = mechanism.new_tally(items)
        for shard in drawn.permutation(6):
            part = mechanism.new_tally(items)
            mechanism.accumulate(part, reports[shards == shard], items)
            total += part
        assert np.array_equal(total, whole)


@every_case
def test_accumulating_adds_up_the_scores_of_each_item(case: Case) -> None:
    mechanism, items = case.mechanism, case.items
    reports = mechanism.encode(np.resize(items, 240), SeededWords(4))
    counts = mechanism.new_tally(items)
    mechanism.accumulate(counts, reports, items)
    by_hand = scores(mechanism, reports, items).sum(axis=0)
    # The weights of a line are no integers.
    assert mechanism.encoder.scores(counts, items, items) == pytest.approx(by_hand, abs=1e-9)
    assert mechanism.encoder.scores(counts, items, items[::-1]) == pytest.approx(by_hand[::-1], abs=1e-9)


@every_case
def test_a_pickled_mechanism_is_equal_and_small(case: Case) -> None:
    pickled = pickle.dumps(case.mechanism)
    assert len(pickled) < PICKLE_BYTES
    restored = pickle.loads(pickled)  # noqa: S301  # our own bytes
    assert restored == case.mechanism
    assert hash(restored) == hash(case.mechanism)


@each(CASES)
def test_mechanisms_of_other_parameters_are_not_equal(case: Case) -> None:
    assert case.mechanism == build(case.oracle, case.epsilon, case.domain, case.parameters)
    assert case.mechanism != case.at(1.3)


# The wire


@every_case
def test_every_report_packs_to_one_length_and_back(case: Case) -> None:
    mechanism = case.mechanism
    reports = mechanism.encode(np.resize(case.items, 200), SeededWords(5))
    wire = mechanism.pack(reports)
    back, valid = mechanism.unpack(wire)
    assert wire.shape == (200, mechanism.report_bytes)
    assert wire.dtype == np.uint8
    assert valid.all()
    assert np.array_equal(back, reports)


@every_case
def test_no_reports_pack_to_no_bytes_and_back(case: Case) -> None:
    mechanism = case.mechanism
    none = mechanism.encode(case.items[:0], SeededWords(1))
    wire = mechanism.pack(none)
    assert wire.shape == (0, mechanism.report_bytes)
    assert len(mechanism.unpack(wire)[0]) == 0
    counts = mechanism.new_tally(case.items)
    mechanism.accumulate(counts, none, case.items)
    assert not counts.any()


@every_small_case
def test_no_two_reports_have_the_same_encoding(case: Case) -> None:
    reports = all_reports(case.mechanism)
    assert len(np.unique(case.mechanism.pack(reports), axis=0)) == len(reports)


@each([case for case in SMALL if case.mechanism.report_bytes < 3])
def test_of_all_byte_strings_as_many_are_valid_as_there_are_reports(case: Case) -> None:
    mechanism, reports = case.mechanism, all_reports(case.mechanism)
    length = mechanism.report_bytes
    strings = np.arange(256**length, dtype="<u4").view(np.uint8).reshape(-1, 4)[:, :length]
    assert mechanism.unpack(strings)[1].sum() == len(reports)


@every_case
def test_arbitrary_bytes_are_refused_or_canonical(case: Case) -> None:
    mechanism, drawn = case.mechanism, np.random.default_rng(6)
    length = mechanism.report_bytes
    good = mechanism.pack(mechanism.encode(np.resize(case.items, 8), SeededWords(6)))
    # Anything; good reports with one byte changed; the least, the largest and nearly empty ones.
    anything = drawn.integers(0, 256, (400, length), dtype=np.uint8)
    changed = np.resize(good, (400, length))
    changed[np.arange(400), drawn.integers(0, length, 400)] = drawn.integers(0, 256, 400)
    ends = np.vstack([np.zeros(length), np.full(length, 255), np.eye(length), 255 - np.eye(length)]).astype(np.uint8)
    wire = np.concatenate([anything, changed, ends])
    reports, valid = mechanism.unpack(wire)
    assert valid.shape == (len(wire),)
    assert np.array_equal(mechanism.pack(reports[valid]), wire[valid])
    # What is accepted can be tallied.
    mechanism.accumulate(mechanism.new_tally(case.items), reports[valid], case.items)


@every_case
def test_one_bad_report_spoils_no_other(case: Case) -> None:
    mechanism = case.mechanism
    wire = mechanism.pack(mechanism.encode(np.resize(case.items, 20), SeededWords(8)))
    for wrong in (octets for reason, octets in malformed(mechanism, wire[0].tobytes()) if reason != "wrong_length"):
        mixed = wire.copy()
        mixed[7] = np.frombuffer(wrong, np.uint8)
        reports, valid = mechanism.unpack(mixed)
        assert np.flatnonzero(~valid).tolist() == [7]
        assert np.array_equal(mechanism.pack(reports[valid]), np.delete(wire, 7, axis=0))


@every_case
def test_a_wrong_length_raises(case: Case) -> None:
    length = case.mechanism.report_bytes
    for wrong in (length - 1, length + 1, 0):
        with pytest.raises(ValueError, match=rf"\(n, {length}\)"):
            case.mechanism.unpack(np.zeros((3, wrong), dtype=np.uint8))


def test_medium_cases_use_every_wire_form() -> None:
    forms = set()
    for case in MEDIUM:
        big = [field for field in case.mechanism.fields if not isinstance(field, Number)]
        kind = "numbers" if not big else big[0].form if isinstance(big[0], SubsetOf) else "bits"
        forms.add((kind, isinstance(big[0], Bits) if big else False, case.mechanism.report_bytes > 8))
    ranked = {("rank", False, False), ("rank", False, True)}
    numbers = {("numbers", False, False), ("numbers", False, True)}
    assert forms == ranked | numbers | {("bitmap", False, True), ("bits", True, True), ("list", False, True)}
