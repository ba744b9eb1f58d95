"""Flags of poisoning: their laws by enumeration, honest batches without a flag, and what each attack raises."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from hushcount.arrays import Reports, UInt64Array
from hushcount.maths.fingerprints import fingerprints
from hushcount.oracles import flagging, repeats
from hushcount.oracles.catalogue import build
from hushcount.oracles.flags import Flags
from hushcount.oracles.influence import influence
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.repeats import BUCKETS, add_repeats, least_suspect, log_tail, new_repeats
from hushcount.oracles.tally import Tally
from tests.hushcount.oracles.cases import SMALL, Case, each
from tests.support.attack import forged
from tests.support.enumeration import all_reports, laws, supported
from tests.support.words import SeededWords

AIS = build("ais", 1.0, 1000, {"s": 271})
OUE = build("oue", 1.0, 200, {})
REPORTS = 20_000


def flags_of(mechanism: Mechanism, reports: Reports, items: UInt64Array, alike: int = 1) -> Flags:
    """Return all flags of reports, by the analyzer's own way."""
    n, counts, equal = len(reports), mechanism.new_tally(items), new_repeats(mechanism)
    mechanism.accumulate(counts, reports, items)
    add_repeats(equal, mechanism, reports)
    estimated = mechanism.counts(Tally(counts, n, items), items)
    law = mechanism.encoder.totals(mechanism.responder, items)
    return Flags(
        repeated=flagging.repeated(mechanism, equal, n, alike, 0.01),
        totals=flagging.totals(law, int(counts.sum()), n, alike, 0.01),
        counts=flagging.counts(mechanism, estimated, n, alike, 0.01),
    )


def honest(mechanism: Mechanism, seed: int, number: int = REPORTS) -> Reports:
    """Return reports of clients with items by Zipf's law."""
    domain = mechanism.encoder.domain or 0
    shares = 1.0 / np.arange(1, domain + 1)
    held = np.random.default_rng(seed).choice(domain, number, p=shares / shares.sum()).astype(np.uint64)
    return mechanism.encode(held, SeededWords(seed))


@each(SMALL)
def test_the_greatest_probability_of_a_report_is_exact(case: Case) -> None:
    found = laws(case.mechanism, all_reports(case.mechanism), case.items).max()
    assert case.mechanism.log_greatest == pytest.approx(math.log(found), abs=1e-9)


@each(SMALL)
def test_a_report_raises_as_many_items_as_stated(case: Case) -> None:
    bound = influence(case.mechanism)
    if bound.items is None:
        assert 0.0 < bound.share <= 1.0
        return
    most = int(supported(case.mechanism, all_reports(case.mechanism), case.items).sum(axis=1).max())
    assert most == bound.items
    assert bound.share == pytest.approx(most / (case.mechanism.encoder.domain or len(case.items)))


@each(SMALL)
def test_what_a_report_adds_in_all_keeps_to_its_law(case: Case) -> None:
    mechanism, items = case.mechanism, case.items
    reports = all_reports(mechanism)
    added = np.empty(len(reports))
    for number in range(len(reports)):
        tally = mechanism.new_tally(items)
        mechanism.accumulate(tally, reports[number : number + 1], items)
        added[number] = tally.sum()
    law = mechanism.encoder.totals(mechanism.responder, items)
    assert added.max() <= law.most + 1e-9
    for chances in laws(mechanism, reports, items):
        mean = float(chances @ added)
        assert law.low - 1e-9 <= mean <= law.high + 1e-9
        assert float(chances @ (added - mean) ** 2) <= law.variance + 1e-9
    if not mechanism.encoder.by_item:
        # Bits are independent of the item, so the variance is exact, and 0 without any freedom.
        assert law.variance == pytest.approx(float(chances @ (added - mean) ** 2), abs=1e-9)


def test_the_tail_is_the_binomial_one_and_a_little_more(subtests: pytest.Subtests) -> None:
    for reports, p in ((50, 0.3), (1000, 0.01), (10**6, 1e-6)):
        for count in {math.ceil(reports * p) + step for step in (3, 8, 20)}:
            with subtests.test(reports=reports, p=p, count=count):
                bound, exact = log_tail(reports, count, 1, math.log(p)), binom.logsf(count - 1, reports, p)
                assert exact - 1e-7 <= bound <= exact + 1.0


def test_clients_of_fewer_reports_exceed_the_scaled_binomial_law_but_not_the_bound() -> None:
    """Issue 37 gave `Pr[Bin(n/l, p) >= k/l]`; by enumeration ten clients of 6 reports pass it with l = 10."""
    weights, p, count = [6] * 10, 0.05, 11
    exact = sum(
        math.prod(p if held else 1.0 - p for held in row)
        for row in product((0, 1), repeat=10)
        if sum(weight * held for weight, held in zip(weights, row, strict=True)) > count
    )
    assert exact > 2.0 * binom.sf(1, 6, p)
    assert exact <= math.exp(log_tail(60, count + 1, 10, math.log(p)))


def test_thresholds_of_known_batches() -> None:
    """Honest equal reports are common: d = 1,000 with epsilon 4 has 508,536 reports for a million clients."""
    small = build("ais", 4.0, 1000, {"s": 18})
    assert least_suspect(small, 10**6, 1, 1e-6) == 110
    assert least_suspect(AIS, 50_000, 1, 1e-6) == 9
    assert least_suspect(AIS, 50_000, 10, 1e-6) == 56
    assert least_suspect(build("grr", 4.0, 3, {}), 1000, 1, 1e-6) > 970


def test_hashed_buckets_are_bounded_by_the_same_law_twice(subtests: pytest.Subtests) -> None:
    """Reports without a bucket of their own: the fullest bucket of honest ones stays far below, and fills evenly."""
    for name, domain, parameters in (("oue", 64, {}), ("ss", 60, {"s": 16}), ("olh", 1000, {"B": 4})):
        with subtests.test(name=name):
            mechanism = build(name, 1.0, domain, parameters)
            equal = new_repeats(mechanism)
            add_repeats(equal, mechanism, honest(mechanism, 5, 100_000))
            least = least_suspect(mechanism, 100_000, 1, 1e-6)
            assert equal.sum() == 100_000
            assert equal.max() < least < 1000
            # The index of dispersion of 2^20 buckets is 1 up to 7 standard errors, sqrt(2 / 2^20) each (1e-11).
            assert equal.var() / equal.mean() == pytest.approx(1.0, abs=0.08)
            assert len(equal) == BUCKETS


def test_honest_batches_raise_no_flag(subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five mechanisms, four batches, three flags: it fails with probability 60 * 1e-8 at most."""
    monkeypatch.setattr(flagging, "CHANCE", 1e-8)
    made = (AIS, OUE, build("grr", 1.0, 50, {}), build("hr", 1.0, 100, {}), build("olh", 2.0, 300, {"B": 8}))
    for mechanism in made:
        items = np.arange(mechanism.encoder.domain or 0, dtype=np.uint64)
        for seed in range(4):
            with subtests.test(mechanism=mechanism, seed=seed):
                assert flags_of(mechanism, honest(mechanism, seed), items).raised == ()


def test_honest_clients_that_repeat_their_answers_raise_a_flag_only_if_that_is_unknown() -> None:
    """With a memory each client sends ten equal reports."""
    items = np.arange(1000, dtype=np.uint64)
    reports = np.repeat(honest(AIS, 6, REPORTS // 10), 10)
    assert flags_of(AIS, reports, items, alike=10).raised == ()
    assert flags_of(AIS, reports, items).repeated.verdict == "flagged"


def test_one_in_a_hundred_that_repeats_one_report_is_flagged() -> None:
    items = np.arange(1000, dtype=np.uint64)
    poisoned = np.concatenate([honest(AIS, 7), forged(AIS, items[-1:], REPORTS // 100, SeededWords(8))])
    found = flags_of(AIS, poisoned, items)
    assert found.repeated.verdict == "flagged"
    assert (found.repeated.number, found.repeated.high) == (1, 6.0)
    assert found.repeated.found is not None
    assert REPORTS // 100 <= found.repeated.found < REPORTS // 100 + 6
    assert found.counts.verdict == "cannot tell"
    assert found.raised == (
        f"FLAG equal reports: one came {found.repeated.found:,.0f} times, honest clients explain 6; 1 is above that",
    )


def test_reports_of_all_ones_and_of_another_law_are_flagged() -> None:
    items = np.arange(200, dtype=np.uint64)
    ones = np.zeros(REPORTS // 100, dtype=OUE.report)
    ones["bits"] = 255
    assert OUE.unpack(OUE.pack(ones))[1].all()
    assert flags_of(OUE, np.concatenate([honest(OUE, 9), ones]), items).totals.verdict == "flagged"
    # The law of a report with 30 % more or less epsilon sets other numbers of bits.
    for factor in (0.7, 1.3):
        assert flags_of(OUE, honest(build("oue", factor, 200, {}), 10), items).totals.verdict == "flagged"


def test_functions_chosen_for_the_items_that_they_support_are_flagged() -> None:
    """Local hashing in an open domain: forgers take buckets that hold more items than others, each another report."""
    mechanism = build("olh", 2.0, None, {"B": 8})
    items = fingerprints(f"item {number}" for number in range(300))
    clients = mechanism.encode(np.resize(items, REPORTS), SeededWords(12))
    assert flags_of(mechanism, clients, items).raised == ()
    # Half of the honest clients hold an item without a column: the law covers them too.
    strangers = np.concatenate([np.resize(items, REPORTS // 2), fingerprints(map(str, range(REPORTS // 2)))])
    assert flags_of(mechanism, mechanism.encode(strangers, SeededWords(17)), items).raised == ()
    drawn = mechanism.encode(np.resize(items, 40_000), SeededWords(11))
    sizes = supported(mechanism, drawn, items).sum(axis=1)
    chosen = drawn[np.argsort(-sizes)[: REPORTS // 20]]
    found = flags_of(mechanism, np.concatenate([clients, chosen]), items)
    assert (found.repeated.verdict, found.totals.verdict) == ("not flagged", "flagged")


def test_counts_above_the_number_of_reports_are_flagged_and_a_full_house_is_not() -> None:
    mechanism = build("grr", 1.0, 100, {})
    items = np.arange(100, dtype=np.uint64)
    assert flags_of(mechanism, mechanism.encode(np.zeros(REPORTS, np.uint64), SeededWords(13)), items).raised == ()
    alike = mechanism.encode(np.zeros(REPORTS, np.uint64), SeededWords(13))
    alike["cell"][: REPORTS // 10] = 0
    found = flags_of(mechanism, alike, items)
    assert found.counts.verdict == "flagged"
    assert found.counts.found is not None
    assert found.counts.found > REPORTS


def test_forgers_that_draw_afresh_like_honest_clients_of_one_item_are_not_flagged() -> None:
    """A limit, which the documentation states: they are honest reports, one each, of an item that they do not hold."""
    items = np.arange(1000, dtype=np.uint64)
    smart = AIS.encode(np.full(REPORTS // 100, 999, np.uint64), SeededWords(14))
    assert flags_of(AIS, np.concatenate([honest(AIS, 15), smart]), items).raised == ()


def test_where_one_in_a_hundred_would_not_be_flagged_the_verdict_says_so() -> None:
    grr = build("grr", 4.0, 20, {})
    found = flags_of(grr, honest(grr, 16), np.arange(20, dtype=np.uint64))
    assert [flag.verdict for flag in (found.repeated, found.totals, found.counts)] == ["cannot tell"] * 3
    assert repeats.least_suspect(grr, REPORTS, 1, 1e-6) > REPORTS // 100
    assert influence(AIS).share == float(Fraction(271, 1000))
