"""Unary responses: exact thresholds, the exact loss, and bits that stay within their report."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.maths.probability import odds_ratio, spending_flip, symmetric_threshold
from hushcount.oracles.responders.unary import Unary
from hushcount.randomness import WORD_VALUES, SystemWords
from hushcount.wire.fields import report_dtype
from tests.support.statistics import deviations

epsilons = st.floats(1e-3, 40.0)


def exact_loss(keep: int, flip: int) -> Decimal:
    with localcontext() as context:
        context.prec = 80
        return (Decimal(keep * (WORD_VALUES - flip)) / Decimal(flip * (WORD_VALUES - keep))).ln()


@given(epsilon=epsilons)
def test_symmetric_bits_never_lose_more_than_the_budget_and_hardly_less(epsilon: float) -> None:
    responder = Unary.symmetric(epsilon, 5)
    assert responder.keep + responder.flip == WORD_VALUES
    assert exact_loss(responder.keep, responder.flip) <= Decimal(epsilon)
    assert responder.epsilon <= epsilon
    # One step of 2**-64 in p moves the loss by 2 * 2**-64 / (p q).
    step = 2.0 * 2.0**-64 / (responder.p * responder.q)
    assert epsilon - responder.epsilon <= max(1e-15, 2 * step, math.ulp(epsilon))


@given(epsilon=epsilons)
def test_the_next_symmetric_threshold_would_exceed_the_budget(epsilon: float) -> None:
    keep = symmetric_threshold(epsilon) + 1
    assert exact_loss(keep, WORD_VALUES - keep) > Decimal(epsilon)


@given(epsilon=epsilons, p=st.floats(0.05, 0.999) | st.just(0.5))
def test_bits_of_a_given_p_never_lose_more_than_the_budget_and_hardly_less(epsilon: float, p: float) -> None:
    responder = Unary.spending(epsilon, 5, p)
    assert responder.p == p
    assert exact_loss(responder.keep, responder.flip) <= Decimal(epsilon)
    assert responder.epsilon <= epsilon
    step = 2.0**-64 / (responder.q * (1.0 - responder.q))
    assert epsilon - responder.epsilon <= max(1e-15, 2 * step, math.ulp(epsilon))


@given(epsilon=epsilons, p=st.floats(0.05, 0.999))
def test_a_smaller_flip_would_exceed_the_budget(epsilon: float, p: float) -> None:
    keep = math.floor(p * WORD_VALUES)
    flip = spending_flip(epsilon, keep) - 1
    assert flip == 0 or exact_loss(keep, flip) > Decimal(epsilon)


@given(keep=st.integers(2, WORD_VALUES - 1), data=st.data())
def test_the_stated_loss_is_rounded_up_by_at_most_one_float(keep: int, data: st.DataObject) -> None:
    flip = data.draw(st.integers(1, keep - 1))
    stated, exact = odds_ratio(keep, flip), exact_loss(keep, flip)
    assert Decimal(stated) >= exact
    assert Decimal(math.nextafter(stated, -math.inf)) < exact


def test_what_is_no_randomiser_raises(subtests: pytest.Subtests) -> None:
    cases = [
        ((1, 3, 2), "width is 1,.* 2 "),
        ((5, 1 << 62, 1 << 62), r"p is 0.25,.* q, .*0.25,.* 1"),
        ((5, 1 << 61, 1 << 62), r"p is 0.125,.* q, .*0.25,.* 1"),
        ((5, 1 << 64, 1 << 62), r"p is 1,.* q, .*0.25,.* 1"),
        ((5, 1 << 62, 0), r"p is 0.25,.* q, .*0,.* 1"),
    ]
    for arguments, message in cases:
        with subtests.test(arguments=arguments), pytest.raises(ValueError, match=message):
            Unary(*arguments)


def test_a_certain_bit_is_refused(subtests: pytest.Subtests) -> None:
    for p in (0.0, 1.0):
        with subtests.test(p=p), pytest.raises(ValueError, match=rf"p is {p:g},.* 0 .* 1"):
            Unary.spending(1.0, 5, p)


def test_bits_behind_the_last_cell_are_never_set(subtests: pytest.Subtests) -> None:
    for width in (2, 7, 8, 9, 63, 64, 65, 130):
        with subtests.test(width=width):
            responder = Unary.symmetric(0.5, width)
            reports = np.zeros(300, dtype=report_dtype(responder.fields))
            responder.respond(reports, np.arange(300, dtype=np.uint64) % np.uint64(width), SystemWords())
            bits = np.unpackbits(reports["bits"], axis=1, bitorder="little")
            assert not bits[:, width:].any()
            # Each of the others is set sometimes and sometimes not: fails with probability below 130 * 2 * 0.57**300.
            assert np.all((bits[:, :width].any(axis=0)) & ~(bits[:, :width].all(axis=0)))


def test_every_cell_is_set_with_its_probability(subtests: pytest.Subtests) -> None:
    # Normal bounds for all cells of both widths together at FAILURE; the own one is in the middle.
    for width in (9, 65):
        with subtests.test(width=width):
            responder, count, own = Unary.spending(1.0, width, 0.5), 40_000, width // 2
            reports = np.zeros(count, dtype=report_dtype(responder.fields))
            responder.respond(reports, np.full(count, own, dtype=np.uint64), SystemWords())
            ones = np.unpackbits(reports["bits"], axis=1, bitorder="little", count=width).sum(axis=0)
            p = np.where(np.arange(width) == own, responder.p, responder.q)
            assert np.all(np.abs(ones - count * p) <= deviations(2 * width) * np.sqrt(count * p * (1 - p)))
            assert not np.all(
                np.abs(ones - count * p[::-1] * 1.05) <= deviations(2 * width) * np.sqrt(count * p * (1 - p))
            )


def test_many_wide_reports_are_made_in_parts() -> None:
    width, count = 70_000, 100  # more bits than are worked on at once
    responder = Unary.symmetric(1.0, width)
    reports = np.zeros(count, dtype=report_dtype(responder.fields))
    cells = np.arange(count, dtype=np.uint64) * np.uint64(699)
    responder.respond(reports, cells, SystemWords())
    own = responder.supports(reports, cells).sum()
    bits = np.unpackbits(reports["bits"], axis=1, bitorder="little", count=width)
    # Binomial(100, 0.62) is within 45 of its mean but with probability below 1e-6.
    assert abs(own - count * responder.p) < 45
    # Normal bounds for a hundred sizes: seven deviations.
    sizes = bits.sum(axis=1) - responder.p - (width - 1) * responder.q
    assert np.abs(sizes).max() < 7.0 * math.sqrt(responder.size_variance)
    tally = np.zeros((1, width), dtype=np.int64)
    responder.count_cells(tally, reports, None)
    expected = bits.sum(axis=0)
    assert np.array_equal(tally[0], expected)
    rows = np.arange(count) % 3
    apart = np.zeros((3, width), dtype=np.int64)
    responder.count_cells(apart, reports, rows)
    assert np.array_equal(apart.sum(axis=0), expected)
