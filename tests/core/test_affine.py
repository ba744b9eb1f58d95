"""Affine functions: collisions by enumeration, and the fast decoder against the definition of support."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcount.encoders.affine import Affine
from hushcount.fields import report_dtype
from hushcount.kernels.walk import walk, walk_numpy
from hushcount.primes import prime_at_least
from hushcount.responders.interval import Interval
from hushcount.responders.randomised_response import RandomisedResponse
from hushcount.systems import build
from hushcount.tally import Tally
from tests.support.words import SeededWords

PRIMES = (2, 3, 5, 7, 11, 13)


def every_function(encoder: Affine) -> np.ndarray:
    slopes = range(1, encoder.prime)
    shifts = range(encoder.prime) if encoder.folded else [None]
    rows = [(slope,) if shift is None else (slope, shift) for slope in slopes for shift in shifts]
    return np.array(rows, dtype=report_dtype(encoder.fields))


@pytest.mark.parametrize("prime", PRIMES)
def test_every_pair_of_items_collides_in_the_stated_share_of_all_functions(prime: int) -> None:
    for buckets in range(2, prime + 1):
        encoder = Affine(prime, prime, buckets)
        functions = every_function(encoder)
        cells = [encoder.cell(functions, np.full(len(functions), item, np.uint64)) for item in range(prime)]
        for one, other in permutations(cells, 2):
            assert Fraction(int((one == other).sum()), len(functions)) == encoder.collision


@pytest.mark.parametrize(("prime", "buckets", "printed"), [(101, 4, 0.242574), (26003, 21, 0.047582)])
def test_collision_reference_values(prime: int, buckets: int, printed: float) -> None:
    assert float(Affine(prime, prime, buckets).collision) == pytest.approx(printed, abs=5e-7)


def test_collision_of_a_larger_field_by_enumeration() -> None:
    encoder = Affine(101, 101, 4)
    functions = every_function(encoder)
    cells = [encoder.cell(functions, np.full(len(functions), item, np.uint64)) for item in (0, 100)]
    assert Fraction(int((cells[0] == cells[1]).sum()), len(functions)) == encoder.collision


def test_unfolded_functions_never_collide() -> None:
    assert Affine(100, 101, 101).collision == 0


@given(
    prime=st.sampled_from([2, 3, 5, 7, 101, 257]),
    seed=st.integers(0, 2**32),
    count=st.integers(0, 40),
    longest=st.integers(0, 600),
)
@settings(deadline=None)
def test_the_compiled_walk_equals_its_plain_twin(prime: int, seed: int, count: int, longest: int) -> None:
    generator = np.random.default_rng(seed)
    begins, steps = generator.integers(0, prime, (2, count)).astype(np.uint64)
    lengths = generator.integers(0, longest + 1, count).astype(np.uint64)
    compiled, plain = (np.full(prime, 5, dtype=np.int64) for _ in range(2))
    walk(compiled, begins, steps, lengths)
    walk_numpy(plain, begins, steps, lengths)
    assert np.array_equal(compiled, plain)
    assert compiled.sum() == 5 * prime + lengths.sum()


@given(data=st.data(), domain=st.integers(2, 120), count=st.integers(0, 60), seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=60)
def test_ais_counts_the_items_whose_residue_lies_in_the_window(
    data: st.DataObject, domain: int, count: int, seed: int
) -> None:
    prime = prime_at_least(domain)
    size = data.draw(st.integers(1, prime - 1))
    encoder, responder = Affine(domain, prime, prime), Interval.spending(1.0, prime, size)
    items = np.array(data.draw(st.permutations(range(domain))), dtype=np.uint64)[: data.draw(st.integers(1, domain))]
    generator = np.random.default_rng(seed)
    reports = np.zeros(count, dtype=report_dtype((*encoder.fields, *responder.fields)))
    reports["slope"] = generator.integers(1, prime, count)
    reports["start"] = generator.integers(0, prime, count)
    tally = np.zeros(encoder.tally_shape(items), dtype=np.int64)
    encoder.accumulate(tally, responder, reports, items)
    expected = [
        sum((a * x - w) % prime < size for a, w in reports[["slope", "start"]].tolist()) for x in items.tolist()
    ]
    assert tally.tolist() == [expected]


@given(data=st.data(), domain=st.integers(3, 120), count=st.integers(0, 60), seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=60)
def test_ocms_counts_the_items_in_the_reported_bucket(data: st.DataObject, domain: int, count: int, seed: int) -> None:
    prime = prime_at_least(domain)
    buckets = data.draw(st.integers(2, prime - 1))
    encoder, responder = Affine(domain, prime, buckets), RandomisedResponse.spending(1.0, buckets)
    items = np.array(data.draw(st.permutations(range(domain))), dtype=np.uint64)[: data.draw(st.integers(1, domain))]
    generator = np.random.default_rng(seed)
    reports = np.zeros(count, dtype=report_dtype((*encoder.fields, *responder.fields)))
    reports["slope"] = generator.integers(1, prime, count)
    reports["shift"] = generator.integers(0, prime, count)
    reports["cell"] = generator.integers(0, buckets, count)
    tally = np.zeros(encoder.tally_shape(items), dtype=np.int64)
    encoder.accumulate(tally, responder, reports, items)
    rows = reports[["slope", "shift", "cell"]].tolist()
    expected = [sum((a * x + b) % prime % buckets == z for a, b, z in rows) for x in items.tolist()]
    assert tally.tolist() == [expected]


@given(data=st.data(), prime=st.sampled_from([5, 7, 11, 31]), seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=40)
def test_folded_windows_decode_too(data: st.DataObject, prime: int, seed: int) -> None:
    # No named system has them, but the grid does: affine folded mod B x interval.
    buckets = data.draw(st.integers(2, prime - 1))
    size = data.draw(st.integers(1, buckets - 1))
    encoder, responder = Affine(prime, prime, buckets), Interval.spending(1.0, buckets, size)
    items = np.arange(prime, dtype=np.uint64)
    generator = np.random.default_rng(seed)
    reports = np.zeros(20, dtype=report_dtype((*encoder.fields, *responder.fields)))
    reports["slope"] = generator.integers(1, prime, 20)
    reports["shift"] = generator.integers(0, prime, 20)
    reports["start"] = generator.integers(0, buckets, 20)
    tally = np.zeros(encoder.tally_shape(items), dtype=np.int64)
    encoder.accumulate(tally, responder, reports, items)
    rows = reports[["slope", "shift", "start"]].tolist()
    expected = [sum(((a * x + b) % prime % buckets - w) % buckets < size for a, b, w in rows) for x in range(prime)]
    assert tally.tolist() == [expected]


def test_a_field_near_its_largest_prime_does_not_overflow() -> None:
    prime = 2**31 - 1
    for encoder in (Affine(prime, prime, prime), Affine(prime, prime, prime - 1), Affine(prime, prime, 3)):
        reports = np.zeros(1, dtype=report_dtype(encoder.fields))
        for name in reports.dtype.names:
            reports[name] = prime - 1
        for item in (0, 1, 12345, prime - 1):
            shift = prime - 1 if encoder.folded else 0
            expected = ((prime - 1) * item + shift) % prime % encoder.buckets
            assert encoder.cell(reports, np.array([item], dtype=np.uint64)).tolist() == [expected]


def test_long_inputs_are_walked_in_chunks(monkeypatch) -> None:
    from hushcount.encoders import affine

    mechanism = build("ais", 1.0, 50, {"s": 14})
    items = np.arange(50, dtype=np.uint64)
    reports = mechanism.encode(np.resize(items, 500), SeededWords(1))
    whole, chunked = mechanism.new_tally(items), mechanism.new_tally(items)
    mechanism.accumulate(whole, reports, items)
    monkeypatch.setattr(affine, "_CHUNK_WALKS", 7)
    mechanism.accumulate(chunked, reports, items)
    assert np.array_equal(whole, chunked)


def test_an_affine_tally_answers_for_its_own_items_only() -> None:
    mechanism = build("ais", 1.0, 50, {"s": 14})
    items = np.array([30, 2, 17], dtype=np.uint64)
    counts = np.array([[300, 20, 170]], dtype=np.int64)
    assert mechanism.encoder.support_counts(counts, items, np.array([17, 30], np.uint64)).tolist() == [170, 300]
    for stranger in (0, 3, 49):
        with pytest.raises(ValueError, match="not made for"):
            mechanism.estimate(Tally(counts, 500, items), np.array([2, stranger], dtype=np.uint64))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((100, 100, 100), "prime is 100, must be a prime"),
        ((100, 2**31 + 11, 4), "prime is 2147483659, must be a prime below"),
        ((1, 101, 4), r"domain is 1, must be in 2\.\.101 items"),
        ((102, 101, 4), r"domain is 102, must be in 2\.\.101 items"),
        ((100, 101, 1), r"B is 1, must be in 2\.\.101 buckets"),
        ((100, 101, 102), r"B is 102, must be in 2\.\.101 buckets"),
    ],
)
def test_bad_parameters_raise_with_name_value_and_range(arguments: tuple[int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Affine(*arguments)
