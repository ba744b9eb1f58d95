"""Primes for the affine encoder."""

from __future__ import annotations

_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)


def is_prime(number: int) -> bool:
    """Return whether the number is prime: Miller-Rabin with the witnesses that decide all numbers below 2**64."""
    if number < 2:
        return False
    for witness in _WITNESSES:
        if number % witness == 0:
            return number == witness
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for witness in _WITNESSES:
        power = pow(witness, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


def prime_at_least(number: int) -> int:
    """Return the smallest prime that is not below the number."""
    candidate = max(2, number)
    while not is_prime(candidate):
        candidate += 1
    return candidate
