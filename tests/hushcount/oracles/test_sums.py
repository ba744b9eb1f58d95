"""Sums over groups of items: their errors are those of the sum, and intervals hold the truth."""

from __future__ import annotations

import numpy as np
import pytest

from hushcount.oracles.catalogue import MEANS
from hushcount.oracles.estimates import Estimate
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.tally import Tally
from tests.hushcount.oracles.cases import CASES, Case, each
from tests.support.words import SeededWords

BY_NAME = {case.name: case for case in CASES}


def counted(mechanism: Mechanism, items: np.ndarray, held: np.ndarray, run: int) -> Tally:
    reports = mechanism.encode(np.repeat(items, held), SeededWords(run))
    counts = mechanism.new_tally(items)
    mechanism.accumulate(counts, reports, items)
    return Tally(counts, int(held.sum()), items)


def rows(estimate: Estimate) -> list[np.ndarray]:
    """Return all that an estimate says of its rows."""
    return [
        estimate.count,
        estimate.standard_error,
        estimate.collision_error,
        estimate.p_values(),
        estimate.detected(0.01, 7),
        *estimate.interval(0.95),
        *estimate.interval(0.9, 10),
    ]


def test_groups_of_one_item_have_the_rows_of_estimate(subtests: pytest.Subtests) -> None:
    """By themselves, and beside a group of several."""
    for case in [case for case in CASES if case.oracle not in MEANS]:
        for repeats in (1, 3):
            with subtests.test(case=case.name, repeats=repeats):
                mechanism, items = case.mechanism, case.items
                tally = counted(mechanism, items, np.arange(1, len(items) + 1) * 5, 1)
                alone = mechanism.estimate(tally, items).repeated(repeats)
                single = mechanism.sums(tally, list(items[:, None])).repeated(repeats)
                mixed = mechanism.sums(tally, [*items[:2, None], items, *items[2:, None]]).repeated(repeats)
                for expected, one, both in zip(rows(alone), rows(single), rows(mixed), strict=True):
                    assert np.array_equal(expected, one)
                    assert np.array_equal(expected, np.delete(both, 2))


@each([case for case in CASES if 2 < (case.mechanism.encoder.domain or 0) < 5000])
def test_all_items_but_one_are_the_reports_without_it(case: Case) -> None:
    mechanism = case.mechanism
    domain = np.arange(mechanism.encoder.domain or 0, dtype=np.uint64)
    tally = counted(mechanism, domain, np.full(len(domain), 2), 2)
    other, listed = mechanism.estimate(tally, domain[-1:]), mechanism.sums(tally, [domain[:-1], domain])
    assert listed.count[0] == tally.reports - other.count[0]
    assert listed.standard_error[0] == other.standard_error[0]
    low, high = other.interval(0.9)
    assert [limit[0] for limit in listed.interval(0.9)] == [tally.reports - high[0], tally.reports - low[0]]
    assert listed.count[1] == tally.reports
    assert listed.error[1] == 0.0
    assert [limit[1] for limit in listed.interval(0.9)] == [tally.reports, tally.reports]


def test_in_a_pool_of_a_closed_domain_the_other_items_are_counted_where_they_are_fewer(
    subtests: pytest.Subtests,
) -> None:
    """They have far less error, and nobody says that the pool is of a closed domain but who knows its items."""
    for name in (
        "rappor-64-128",
        "gcms-16-1000",
        "hcms-100-50",
    ):
        with subtests.test(name=name):
            mechanism, items = BY_NAME[name].mechanism, np.arange(60, dtype=np.uint64)
            tally = counted(mechanism, items, np.full(60, 20), 3)
            known, unknown = mechanism.sums(tally, [items[:-3]], items), mechanism.sums(tally, [items[:-3]])
            rest = mechanism.sums(tally, [items[-3:]])
            assert known.count[0] == tally.reports - rest.count[0]
            assert known.error[0] == rest.error[0] < 0.5 * unknown.error[0]
            with pytest.raises(ValueError, match="cannot hold"):
                mechanism.sums(tally, [items[:3]], items[1:])


def test_groups_that_are_none(subtests: pytest.Subtests) -> None:
    for groups, fault in (
        ([[0], []], "group 1 is empty"),
        ([[0, 1], [3, 2, 3]], "group 1 has an item twice"),
        ([[0, 5]], "cannot hold"),
    ):
        with subtests.test(groups=groups):
            mechanism = BY_NAME["grr-5"].mechanism
            tally = counted(mechanism, np.arange(5, dtype=np.uint64), np.full(5, 3), 1)
            with pytest.raises(ValueError, match=fault):
                mechanism.sums(tally, [np.array(group, dtype=np.uint64) for group in groups])
