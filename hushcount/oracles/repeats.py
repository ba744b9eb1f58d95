"""How often equal reports came: a count for each bucket of reports, and the most that honest clients explain."""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np

from hushcount.arrays import Counts, Reports, UInt64Array
from hushcount.oracles.mechanism import Mechanism
from hushcount.wire.fields import report_codes

BUCKETS = 1 << 20
"""The most buckets, a power of two: their counts take 8 MiB for any number of reports."""
_BITS = BUCKETS.bit_length() - 1
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def new_repeats(mechanism: Mechanism) -> Counts:
    """Return int64[b], the counts of no report; b is the number of different reports, BUCKETS at most."""
    return np.zeros(min(report_codes(mechanism.fields), BUCKETS), dtype=np.int64)


def add_repeats(repeats: Counts, mechanism: Mechanism, reports: Reports) -> None:
    """Add 1 to the bucket of each report in place; integers only, so any sharding gives identical counts.

    Equal reports share a bucket. If there are at most BUCKETS different reports, each has a bucket of its own.
    Otherwise a public hash chooses the bucket: honest reports are random without it, and whoever sends reports that the
    hash puts together raises a flag as with equal reports.
    """
    exact = report_codes(mechanism.fields) <= BUCKETS
    np.add.at(repeats, _numbers(mechanism.pack(reports)) if exact else _hashed(reports), 1)


def _numbers(octets: np.ndarray) -> UInt64Array:
    return (octets.astype(np.uint64) << (np.uint64(8) * np.arange(octets.shape[1], dtype=np.uint64))).sum(axis=1)


def _hashed(reports: Reports) -> UInt64Array:
    """Return uint64[n] below BUCKETS: a sum over the words of each report in memory, each with a multiplier, folded."""
    size = reports.dtype.itemsize
    padded = np.zeros((len(reports), -(-size // 8) * 8), dtype=np.uint8)
    padded[:, :size] = np.ascontiguousarray(reports).view(np.uint8).reshape(len(reports), size)
    words = padded.view("<u8")
    # Odd multipliers, different for each word: powers of one odd number.
    powers = np.cumprod(np.full(words.shape[1], _MULTIPLIER))
    state = words @ powers
    return (state ^ (state >> np.uint64(32))) * _MULTIPLIER >> np.uint64(64 - _BITS)


def least_suspect(mechanism: Mechanism, reports: int, alike: int, chance: float) -> int:
    """Return the least count of a bucket that honest clients cause with a probability of at most `chance`.

    If the reports are more than the buckets, a bucket holds different reports too. Then the bound is applied twice:
    no report comes more than l' times, so a bucket is a sum of counts of at most l', each there with probability
    1/BUCKETS. This takes the hash for a random function.

    Args:
        reports: n, of the batch.
        alike: l, the most equal reports that one honest client sends on purpose: 1 without a memory.

    Returns:
        The count; above `reports` if no count of the batch is so improbable.
    """
    greatest = mechanism.log_greatest
    if report_codes(mechanism.fields) <= BUCKETS:
        return _least(reports, alike, greatest, chance)
    most = _least(reports, alike, greatest, chance / 2.0) - 1
    return _least(reports, min(max(most, alike), reports), -math.log(BUCKETS), chance / 2.0)


def _least(reports: int, alike: int, log_p: float, chance: float) -> int:
    """Return the least k with `(1/p) Pr[a value comes k times] <= chance`, by bisection; n + 1 if there is none."""
    first = math.ceil(reports * math.exp(log_p)) + alike
    counts = range(min(first, reports + 1), reports + 1)
    limit = math.log(chance) + log_p
    return counts.start + bisect_left(counts, True, key=lambda k: log_tail(reports, k, alike, log_p) <= limit)


def log_tail(reports: int, count: int, alike: int, log_p: float) -> float:
    """Return an upper bound of the logarithm of the probability that a value of probability p comes `count` times.

    With l = 1 this is the binomial tail, as its first term over `1 - r`, r the ratio of the next two terms. With l > 1
    the weights of clients vary, and `Pr[l Bin(n/l, p) >= k]` is no bound: with l = 10, two clients of 6 reports exceed
    11. Chernoff's bound is greatest for n/l clients of l equal reports each, `exp(-(n/l) KL(k/n || p))`.

    The sum over all values is at most 1/p times the bound at the greatest p, because from one client above the mean on
    the bound grows at least in proportion to p.

    Args:
        count: k, above the mean by `alike` or more, and at most `reports`.
    """
    p, rest = math.exp(log_p), _log1m(log_p)
    if alike > 1:
        part = count / reports
        kept = 0.0 if count == reports else (1.0 - part) * (math.log1p(-part) - rest)
        return -(reports / alike) * max(part * (math.log(part) - log_p) + kept, 0.0)
    ratio = (reports - count) / (count + 1) * p / -math.expm1(log_p)
    if ratio >= 1.0:
        return 0.0
    ways = math.lgamma(reports + 1) - math.lgamma(count + 1) - math.lgamma(reports - count + 1)
    return ways + count * log_p + (reports - count) * rest - math.log1p(-ratio)


def _log1m(log_p: float) -> float:
    """Return log(1 - p)."""
    return math.log1p(-math.exp(log_p))
