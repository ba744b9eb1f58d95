"""The closed forms of [P25] and [P26]: losses and report lengths, as printed and corrected; losses are for n = 1."""

from __future__ import annotations

import math

from hushcount.maths.primes import prime_at_least


def worst_case_buckets(epsilon: float, prior: float) -> int:
    """Return m of MSE-OCMS+RR, [P25] eq. (13), the integer nearest to the real optimum."""
    e = math.exp(epsilon)
    if prior > 0.5:
        return round(1.0 + math.sqrt(e))
    root = math.sqrt(e * ((1.0 - prior) * e + prior) * (prior * e + 1.0 - prior))
    return round(1.0 + root / (prior * e + 1.0 - prior))


def loss_buckets(epsilon: float, domain: int) -> int:
    """Return m of l-OCMS+RR, [P25] Theorem 3.8."""
    return round(1.0 + _loss_root(epsilon, domain) / (math.exp(epsilon) + domain - 1.0))


def printed_l2(epsilon: float, items: int) -> float:
    """Return n times the l2 loss of l-OCMS+RR over this number of items, [P25] Theorem 3.8."""
    e = math.exp(epsilon)
    return 2.0 * (_loss_root(epsilon, items) + items * e) / (e - 1.0) ** 2


def _loss_root(epsilon: float, domain: int) -> float:
    e, d = math.exp(epsilon), domain
    return math.sqrt(e * (e + d - 1.0) * (d * e - e + 1.0))


def rare(epsilon: float) -> float:
    """Return `4e/(e-1)^2`: n times the variance of a rare item's share, OCMS+RR, OLH, SS and asymmetric RAPPOR."""
    return 4.0 * math.exp(epsilon) / math.expm1(epsilon) ** 2


def halved(epsilon: float) -> float:
    """Return `sqrt(e)/(sqrt(e)-1)^2`: n times the variance of MSE-OCMS+RR and of symmetric RAPPOR."""
    return math.exp(epsilon / 2.0) / math.expm1(epsilon / 2.0) ** 2


def binary(epsilon: float) -> float:
    """Return `((e+1)/(e-1))^2`: n times the variance of a rare item's share in Hadamard encoding.

    In OLH, SS and asymmetric RAPPOR, an item that everyone holds has the same variance.
    """
    return 1.0 / math.tanh(epsilon / 2.0) ** 2


def symmetric_l2(epsilon: float, size: float, width: int, items: int) -> float:
    """Return n times the l2 loss over `items` of `width` cells, if a report supports `size` cells.

    Reference: [P26] Theorem 2.6 and Lemma 3.1, eq. (36).
    """
    e = math.exp(epsilon)
    p = e * size / (e * size + width - size)
    q = (size - p) / (width - 1.0)
    return items * q * (1.0 - q) / (p - q) ** 2 + (1.0 - p - q) / (p - q)


def folded_l2(epsilon: float, domain: int) -> float:
    """Return n times the l2 loss of OCMS with `B = round(1+e)`, computed from the exact collision probability.

    Reference: docs/mathematics.md section 5.
    """
    prime, buckets = _folded(epsilon, domain)
    e, (least, larger) = math.exp(epsilon), divmod(prime, buckets)
    pairs = larger * (least + 1) * least + (buckets - larger) * least * (least - 1)
    collision = pairs / (prime * (prime - 1))
    p = e / (e + buckets - 1.0)
    q = collision * p + (1.0 - collision) / (e + buckets - 1.0)
    return domain * q * (1.0 - q) / (p - q) ** 2 + (1.0 - p - q) / (p - q)


def mixed_l2(epsilon: float, domain: int) -> float:
    """Return n times the l2 loss of OCMS as a mixture of two symmetric configurations, [P26] Corollary 5.1."""
    prime, buckets = _folded(epsilon, domain)
    least, larger = divmod(prime, buckets)
    share = larger / buckets
    loss = share * symmetric_l2(epsilon, least + 1, prime, domain)
    return loss + (1.0 - share) * symmetric_l2(epsilon, least, prime, domain) if share < 1.0 else loss


def _folded(epsilon: float, domain: int) -> tuple[int, int]:
    prime = prime_at_least(domain)
    return prime, min(prime, round(1.0 + math.exp(epsilon)))


def printed_excess(epsilon: float, domain: int) -> float | None:
    """Return `(1+alpha)(1+beta)`, [P26] Corollary 5.2: a bound of OCMS's l2 loss over the least one; None: d <= e+1."""
    e, d, prime = math.exp(epsilon), domain, prime_at_least(domain)
    if d <= e + 1.0:
        return None
    common = 4.0 * d * e - (e + 1.0) ** 2
    alpha = (d - 1) * (e + 1.0) ** 4 / (common * (d - e - 1.0) * (d * e + e + 1.0))
    beta = (prime - d) * (e + 1.0) ** 2 * (2.0 * d * prime - d - prime) / (prime**2 * (d - 1) * common)
    return (1.0 + alpha) * (1.0 + beta)


def rounding_excess(epsilon: float, domain: int, *, printed: bool) -> float | None:
    """Return `1 + alpha`, [P26] Corollary 3.2: SS's l2 loss at an integer size over the least loss; None if d <= e+1.

    The corollary prints the excess at half an item above the best size. Its proof uses the excess at half an item below
    the best size, which is larger and does bound the loss.
    """
    d, e = domain, math.exp(epsilon) + 1.0
    if d <= e:
        return None
    half = e if printed else -e
    return 1.0 + (d - 1) * e**4 / ((2 * d + half) * (2 * d * (e - 1.0) - half) * (4 * d * (e - 1.0) - e * e))


def subset_bits(width: int, size: int) -> float:
    """Return `log2 C(width, size)`."""
    return (math.lgamma(width + 1) - math.lgamma(size + 1) - math.lgamma(width - size + 1)) / math.log(2.0)


def folded_bits(prime: int, buckets: int) -> float:
    """Return `log2((P-1)/2 P B)`: half of the slopes, every shift, every bucket."""
    return math.log2((prime - 1) // 2 * prime * buckets)
