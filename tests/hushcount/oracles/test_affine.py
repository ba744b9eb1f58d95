"""Affine functions: half of the slopes give the law of all; collisions by enumeration; decoding is the definition."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hushcount.arrays import Reports
from hushcount.maths import field61
from hushcount.maths.primes import prime_at_least
from hushcount.oracles import decoding
from hushcount.oracles.encoders.affine import Affine
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.responders.base import Responder, Sized
from hushcount.oracles.responders.interval import Interval
from hushcount.oracles.responders.randomised_response import RandomisedResponse
from hushcount.oracles.responders.subset import Subset
from hushcount.wire.fields import report_dtype
from tests.support.enumeration import all_values
from tests.support.statistics import FAILURE, deviations
from tests.support.words import SeededWords

PRIMES = (2, 3, 5, 7, 11, 13)
MERSENNE = field61.PRIME


def every_function(encoder: Affine, slopes: range | None = None) -> Reports:
    rows = [
        (slope,) if shift is None else (slope, shift)
        for slope in slopes or range(1, encoder.slopes + 1)
        for shift in (range(encoder.prime) if encoder.folded else [None])
    ]
    return np.array(rows, dtype=report_dtype(encoder.fields))


def test_slopes_are_the_lower_half() -> None:
    assert [Affine(2, prime, prime).slopes for prime in (2, 3, 5, 13)] == [1, 1, 2, 6]
    assert [(field.name, field.least, field.bound) for field in Affine(9, 13, 4).fields] == [
        ("slope", 1, 7),
        ("shift", 0, 13),
    ]


def test_functions_are_counted(subtests: pytest.Subtests) -> None:
    for buckets, functions in ((26003, 13001), (4, 13001 * 26003)):
        with subtests.test(buckets=buckets, functions=functions):
            assert Affine(26000, 26003, buckets).log_functions() == pytest.approx(math.log(functions), rel=1e-15)


def law_of_supports(encoder: Affine, responder: Responder, slopes: range) -> dict[tuple[bytes, bytes], Fraction]:
    """Return the share of the functions and answers that make each supported set, with their probabilities by item."""
    functions, answers = every_function(encoder, slopes), all_values(responder.fields)
    places = np.indices((len(functions), len(answers))).reshape(2, -1)
    functions, answers = functions[places[0]], answers[places[1]]
    cells = [encoder.cell(functions, np.full(len(functions), item, np.uint64)) for item in range(encoder.prime)]
    supports = np.stack([responder.supports(answers, cell) for cell in cells], axis=1)
    chances = np.stack([responder.log_prob(answers, cell) for cell in cells], axis=1)
    counted = Counter((row.tobytes(), chance.tobytes()) for row, chance in zip(supports, chances, strict=True))
    return {key: Fraction(count, len(functions)) for key, count in counted.items()}


def grid(prime: int) -> list[tuple[Affine, Responder]]:
    folded = [Affine(prime, prime, buckets) for buckets in range(2, prime)]
    answers = [(encoder, RandomisedResponse.spending(1.0, encoder.cells)) for encoder in folded]
    windows = [
        (encoder, Interval.spending(1.0, encoder.cells, size))
        for encoder in (*folded, Affine(prime, prime, prime))
        for size in range(1, encoder.cells)
    ]
    return [*answers, *windows]


def test_half_of_the_slopes_make_every_supported_set_as_often_as_all_do(subtests: pytest.Subtests) -> None:
    for prime in (3, 5, 7, 11, 13):
        with subtests.test(prime=prime):
            for encoder, responder in grid(prime):
                half = law_of_supports(encoder, responder, range(1, encoder.slopes + 1))
                assert half == law_of_supports(encoder, responder, range(1, prime))


def test_fewer_slopes_than_half_would_change_the_law() -> None:
    for encoder, responder in ((Affine(11, 11, 11), Interval.spending(1.0, 11, 4)), grid(11)[1]):
        assert law_of_supports(encoder, responder, range(1, 5)) != law_of_supports(encoder, responder, range(1, 11))


def test_every_pair_of_items_collides_in_the_stated_share_of_all_functions(subtests: pytest.Subtests) -> None:
    for prime in PRIMES:
        with subtests.test(prime=prime):
            for buckets in range(2, prime + 1):
                encoder = Affine(prime, prime, buckets)
                functions = every_function(encoder)
                cells = [encoder.cell(functions, np.full(len(functions), item, np.uint64)) for item in range(prime)]
                for one, other in permutations(cells, 2):
                    assert Fraction(int((one == other).sum()), len(functions)) == encoder.collision


# Decoding


def random_reports(encoder: Affine, responder: Responder, count: int, seed: int) -> Reports:
    """Return reports whose numbers are uniform, whatever the item; slopes from the whole field."""
    generator = np.random.default_rng(seed)
    fields = (*encoder.fields, *responder.fields)
    reports = np.zeros(count, dtype=report_dtype(fields))
    for field in fields:
        reports[field.name] = generator.integers(getattr(field, "least", 0), field.bound, count)
    return reports


def counted(encoder: Affine, responder: Responder, reports: Reports, items: np.ndarray) -> list[int]:
    tally = np.zeros(encoder.tally_shape(items), dtype=np.int64)
    encoder.accumulate(tally, responder, reports, items)
    return tally[0].tolist()


def defined(encoder: Affine, responder: Sized, reports: Reports, items: list[int]) -> list[int]:
    """Return how many reports support each item by the definition, in Python's own integers.

    A report of randomised response supports the cell that it names: a window of one cell.
    """
    prime, buckets, size = encoder.prime, encoder.buckets, responder.size
    rows = [(slope, sum(shift), start) for slope, *shift, start in reports.tolist()]
    return [sum(((a * x + b) % prime % buckets - w) % buckets < size for a, b, w in rows) for x in items]


@given(
    data=st.data(),
    domain=st.integers(3, 120),
    folded=st.booleans(),
    windows=st.booleans(),
    count=st.integers(0, 60),
    seed=st.integers(0, 2**32),
)
@settings(deadline=None, max_examples=160)
def test_items_are_counted_by_the_definition(
    data: st.DataObject, domain: int, folded: bool, windows: bool, count: int, seed: int
) -> None:
    # No oracle of the catalogue has windows of folded functions, but the grid does.
    prime = prime_at_least(domain)
    buckets = data.draw(st.integers(2, prime - 1)) if folded else prime
    size = data.draw(st.integers(1, buckets - 1))
    encoder = Affine(domain, prime, buckets)
    answers: Sized = Interval.spending(1.0, buckets, size) if windows else RandomisedResponse.spending(1.0, buckets)
    items = data.draw(st.permutations(range(domain)))[: data.draw(st.integers(1, domain))]
    reports = random_reports(encoder, answers, count, seed)
    found = counted(encoder, answers, reports, np.array(items, dtype=np.uint64))
    assert found == defined(encoder, answers, reports, items)


def test_every_other_responder_decodes_as_it_supports(subtests: pytest.Subtests) -> None:
    # With several runs of cells.
    responder = Subset.spending(1.0, 6, 3)
    for encoder in (Affine(23, 23, 6), Affine(None, MERSENNE, 6)):
        with subtests.test(encoder=encoder):
            items = np.arange(23, dtype=np.uint64)
            reports = Mechanism(encoder, responder).encode(np.resize(items, 300), SeededWords(1))
            cells = [encoder.cell(reports, np.full(300, item)) for item in items]
            expected = [int(responder.supports(reports, cell).sum()) for cell in cells]
            assert counted(encoder, responder, reports, items) == expected


def test_long_inputs_are_decoded_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    unfolded, folded = Affine(53, 53, 53), Affine(53, 53, 6)
    for encoder, responder in (
        (unfolded, Interval.spending(1.0, 53, 14)),
        (folded, Interval.spending(1.0, 6, 2)),
        (folded, RandomisedResponse.spending(1.0, 6)),
    ):
        reports = random_reports(encoder, responder, 500, 1)
        items = np.arange(53, dtype=np.uint64)
        whole = counted(encoder, responder, reports, items)
        with monkeypatch.context() as patched:
            patched.setattr(decoding, "AT_ONCE", 7)
            assert counted(encoder, responder, reports, items) == whole


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


# The open domain


WINDOWS: st.SearchStrategy[tuple[Affine, Sized]] = st.integers(1, MERSENNE - 2**20).map(
    lambda size: (Affine(None, MERSENNE, MERSENNE), Interval(MERSENNE, size, 2**64 - 1))
)
BUCKETS = (st.integers(2, 200) | st.sampled_from([2**12, 3 * 2**40, MERSENNE - 1])).map(
    lambda buckets: (Affine(None, MERSENNE, buckets), RandomisedResponse.spending(1.0, buckets))
)


@given(
    mechanism=WINDOWS | BUCKETS,
    items=st.lists(st.integers(0, MERSENNE - 1), min_size=1, max_size=8),
    seed=st.integers(0, 2**32),
)
@settings(deadline=None, max_examples=120)
def test_fingerprints_are_counted_by_the_definition(
    mechanism: tuple[Affine, Sized], items: list[int], seed: int
) -> None:
    encoder, responder = mechanism
    reports = random_reports(encoder, responder, 30, seed)
    # The last report is of the first item's own cell, for buckets so many that no other supports anything.
    reports[responder.fields[0].name][-1] = encoder.cell(reports[-1:], np.array(items[:1], dtype=np.uint64))[0]
    expected = defined(encoder, responder, reports, items)
    assert expected[0] >= 1
    assert counted(encoder, responder, reports, np.array(items, dtype=np.uint64)) == expected
    for x, total in zip(items, expected, strict=True):
        cells = encoder.cell(reports, np.full(30, x, dtype=np.uint64))
        assert responder.supports(reports, cells).sum() == total


def open_mechanisms(epsilon: float) -> list[Mechanism]:
    window, buckets = int(MERSENNE / (math.e + 1.0)), 4
    return [
        Mechanism(Affine(None, MERSENNE, MERSENNE), Interval.spending(epsilon, MERSENNE, window)),
        Mechanism(Affine(None, MERSENNE, buckets), RandomisedResponse.spending(epsilon, buckets)),
    ]


def test_open_reports_support_their_item_with_p_and_others_with_q_star() -> None:
    """Four two-sided normal tests, all wrong with probability FAILURE; 1.3 and 0.7 epsilon are rejected by each p."""
    n, own, other = 20_000, 123_456_789_012_345_678, 2**61 - 2
    items = np.array([own, other], dtype=np.uint64)
    bound = deviations(4)
    right, more, less = (open_mechanisms(factor) for factor in (1.0, 1.3, 0.7))
    for index, mechanism in enumerate(right):
        reports = mechanism.encode(np.full(n, own, dtype=np.uint64), SeededWords(index))
        counts = counted(mechanism.encoder, mechanism.responder, reports, items)
        for count, share in zip(counts, (mechanism.p_star, mechanism.q_star), strict=True):
            assert abs(count - n * share) < bound * math.sqrt(n * share * (1.0 - share))
        for wrong in (more[index], less[index]):
            share = wrong.p_star
            assert abs(counts[0] - n * share) > bound * math.sqrt(n * share * (1.0 - share))


def test_open_slopes_are_uniform_on_the_lower_half() -> None:
    """One Kolmogorov-Smirnov test, wrong with probability FAILURE; slopes from the whole field are rejected."""
    encoder = Affine(None, MERSENNE, MERSENNE)
    reports = np.zeros(20_000, dtype=report_dtype(encoder.fields))
    encoder.draw(reports, SeededWords(3))
    assert reports["slope"].min() >= 1
    assert reports["slope"].max() <= encoder.slopes
    drawn = reports["slope"].astype(np.float64) / encoder.slopes
    assert stats.kstest(drawn, "uniform").pvalue > FAILURE
    assert stats.kstest(drawn / 2.0, "uniform").pvalue < FAILURE


# Answers and parameters


def test_an_affine_tally_answers_for_its_own_items_only() -> None:
    encoder = Affine(50, 53, 53)
    items = np.array([30, 2, 17], dtype=np.uint64)
    counts = np.array([[300, 20, 170]], dtype=np.int64)
    assert encoder.scores(counts, items, np.array([17, 30], np.uint64)).tolist() == [170, 300]
    for stranger in (0, 3, 49):
        with pytest.raises(ValueError, match="not made for"):
            encoder.scores(counts, items, np.array([2, stranger], dtype=np.uint64))
    with pytest.raises(ValueError, match="made for no items"):
        encoder.scores(counts[:, :0], items[:0], items)


def test_items_outside_raise(subtests: pytest.Subtests) -> None:
    for encoder, outside in ((Affine(50, 53, 53), 50), (Affine(None, MERSENNE, MERSENNE), MERSENNE)):
        with subtests.test(encoder=encoder, outside=outside):
            items = np.array([outside], dtype=np.uint64)
            reports = np.zeros(1, dtype=report_dtype(encoder.fields))
            message = rf"item.* 0\.\.{outside - 1}"
            with pytest.raises(ValueError, match=message):
                encoder.cell(reports, items)
            responder = Interval.spending(1.0, encoder.cells, 10)
            with pytest.raises(ValueError, match=message):
                encoder.accumulate(np.zeros((1, 1), dtype=np.int64), responder, reports, items)


def test_bad_parameters_raise_with_name_value_and_range(subtests: pytest.Subtests) -> None:
    cases = [
        ((100, 100, 100), "prime is 100,"),
        ((100, 2**31 + 11, 4), "prime is 2147483659,.*below"),
        ((1, 101, 4), r"domain is 1,.*2\.\.101"),
        ((102, 101, 4), r"domain is 102,.*2\.\.101"),
        ((100, 101, 1), r"B is 1,.*2\.\.101"),
        ((100, 101, 102), r"B is 102,.*2\.\.101"),
        ((None, 101, 101), r"prime is 101,.*2\*\*61-1"),
        ((None, 2**61 - 1, 2**61), r"B is 2305843009213693952,.*2\.\."),
    ]
    for arguments, message in cases:
        with subtests.test(arguments=arguments), pytest.raises(ValueError, match=message):
            Affine(*arguments)
