"""The squares of groups that were named beforehand: those of plain counting, for any sharding, and what they tell."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import CATALOGUE, plan
from hushcount.oracles.encoders.affine import Affine
from hushcount.oracles.encoders.base import Family
from hushcount.oracles.groups import Groups
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.responders.interval import Interval
from hushcount.oracles.responders.randomised_response import RandomisedResponse
from hushcount.oracles.simulation import SeededWords

SEED = "5e" * 32
KEEPING = {
    "ais": ("ais", 1.0, 300, {}),
    # Above 2**16 words have 64 bits.
    "ais of many": ("ais", 1.0, 70_000, {}),
    "ais of any": ("ais", 1.0, None, {}),
    "olh": ("olh", 2.0, 300, {}),
    "ocms": ("ocms", 1.0, 300, {"B": 7}),
    "olh of any": ("olh", 2.0, None, {}),
}


@cache
def made(name: str) -> Mechanism:
    mechanism, epsilon, domain, fixed = KEEPING[name]
    parameters = plan(mechanism, epsilon, domain, fixed, Objective(), SEED)
    return CATALOGUE[mechanism].build(epsilon, domain, parameters)


def of(*groups: np.ndarray) -> Groups:
    return Groups.of([group.astype(np.uint64) for group in groups])


def drawn(mechanism: Mechanism, count: int, run: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return items, and reports of clients that hold some of them."""
    domain = mechanism.encoder.domain
    rng = np.random.default_rng(run)
    items = np.arange(min(domain, 300)) if domain else rng.integers(0, 2**61 - 1, 300)
    items = items.astype(np.uint64)
    return items, mechanism.encode(rng.choice(items, count), SeededWords(7, run))


@pytest.mark.parametrize("name", KEEPING)
@pytest.mark.long(but=("olh", "ais of any"))
def test_squares_are_those_of_plain_counting(name: str) -> None:
    mechanism = made(name)
    items, reports = drawn(mechanism, 1500)
    last = items[-1:]
    groups = of(items[:1], items[3:10], items[5:40:3], last, items)
    held = np.array([mechanism.supports(reports, np.full(len(reports), item)) for item in items]).astype(int)
    members = [held[:1], held[3:10], held[5:40:3], held[-1:], held]
    assert mechanism.keeps_squares
    assert mechanism.squares(reports, groups) == [int((part.sum(axis=0) ** 2).sum()) for part in members]
    # Sharded, and of no reports.
    parts = [mechanism.squares(part, groups) for part in np.split(reports, [0, 1, 1030])]
    assert parts[0] == [0] * len(groups)
    assert [sum(each) for each in zip(*parts, strict=True)] == mechanism.squares(reports, groups)
    assert mechanism.squares(reports, of()) == []


def test_squares_for_small_and_large_primes_and_any_number_of_buckets(subtests: pytest.Subtests) -> None:
    """65,521 is the largest prime whose residues are found in words of 32 bits."""
    for prime in (5, 101, 65_521, 65_537):
        with subtests.test(prime=prime):
            domain = min(prime, 60)
            groups = of(np.arange(domain), np.array([3, 1]))
            for buckets in {2, 3, 4, 6, 16, 55, prime - 1, prime} - {*range(prime + 1, 99)}:
                whole = buckets == prime
                responder = (
                    Interval.spending(1.5, prime, prime // 3) if whole else RandomisedResponse.spending(1.5, buckets)
                )
                mechanism = Mechanism(Affine(domain, prime, buckets), responder)
                reports = mechanism.encode(
                    np.arange(300, dtype=np.uint64) % np.uint64(domain), SeededWords(prime, buckets)
                )
                plain = Family.squares(mechanism.encoder, responder, reports, groups)
                assert mechanism.squares(reports, groups) == plain


def test_mechanisms_whose_counts_tell_the_error_keep_none() -> None:
    for name, entry in CATALOGUE.items():
        fixed = {"k": 8, "m": 64} if entry.seeded else {}
        mechanism = entry.build(1.0, 40, plan(name, 1.0, 40, fixed, Objective(), SEED))
        assert mechanism.keeps_squares == isinstance(mechanism.encoder, Affine), name


def variance_of(mechanism: Mechanism, squares: int, size: int, reports: int, count: float) -> float:
    """Return the variance of a group's estimated count, from its squares: unbiased at the estimated count."""
    gain, other = mechanism.p_star - mechanism.q_star, size * mechanism.q_star
    return (squares - count * (other + gain) ** 2 - (reports - count) * other**2) / gain**2


@pytest.mark.long
@pytest.mark.parametrize("name", ["ais", "ocms"])
def test_the_variance_from_squares_is_unbiased_where_the_formula_is_off(name: str) -> None:
    """Of consecutive items, which affine functions do not treat alike; fails with probability below 1e-6.

    The counts of 700 collections vary by their variance, within 5 of its standard deviations, `sqrt(2/700)` of it.
    The mean variance from squares is the same within these.
    """
    mechanism, runs, each = made(name), 700, 400
    consecutive = np.arange(10, 30)
    groups, clients = of(consecutive), np.repeat([12, 35], [100, 300]).astype(np.uint64)
    counts, stated = np.empty(runs), np.empty(runs)
    gain, other = mechanism.p_star - mechanism.q_star, len(consecutive) * mechanism.q_star
    for run in range(runs):
        reports = mechanism.encode(clients, SeededWords(11, run))
        held = sum(mechanism.supports(reports, np.full(each, item, dtype=np.uint64)).sum() for item in consecutive)
        counts[run] = (held - each * other) / gain
        (squares,) = mechanism.squares(reports, groups)
        stated[run] = variance_of(mechanism, squares, len(consecutive), each, counts[run])
    assert abs(counts.mean() - 100.0) < 5.0 * counts.std() / math.sqrt(runs)
    assert abs(stated.mean() / counts.var(ddof=1) - 1.0) < 5.0 * math.sqrt(2.0 / runs)
    # One that is 30 % off, as the mean formula of a group may be, is told apart.
    assert 5.0 * math.sqrt(2.0 / runs) < 0.3
