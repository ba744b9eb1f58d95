"""Primes: as trial division finds them, and the composites that fool weaker tests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.maths.primes import is_prime, prime_at_least


def by_trial_division(number: int) -> bool:
    if number < 2:
        return False
    divisor = 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            return False
        divisor += 1
    return True


def test_small_numbers() -> None:
    assert [number for number in range(-3, 5000) if is_prime(number)] == [
        number for number in range(5000) if by_trial_division(number)
    ]


@given(st.integers(0, 10**8))
def test_numbers_of_eight_digits(number: int) -> None:
    assert is_prime(number) == by_trial_division(number)


def test_pseudoprimes_are_seen_through(subtests: pytest.Subtests) -> None:
    for composite in (
        561,
        41041,
        3215031751,
        3474749660383,
        341550071728321,
        3825123056546413051,
        (2**31 - 1) ** 2,
        2**61 + 1,
    ):
        with subtests.test(composite=composite):
            assert not is_prime(composite)


@given(st.integers(-5, 10**6))
def test_prime_at_least_skips_no_prime(number: int) -> None:
    found = prime_at_least(number)
    assert found >= number
    assert by_trial_division(found)
    assert not any(by_trial_division(between) for between in range(max(number, 0), found))
