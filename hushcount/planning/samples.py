"""The least sample of clients that sends enough reports (docs/adr/0050)."""

from __future__ import annotations

from hushcount.campaigns.parts import BUCKETS
from hushcount.errors import UsageError

_SHORT = 1e-6
"""The most probability that a sample has fewer clients than reports are needed."""


def least_sample(clients: int, reports: int) -> float:
    """Return the least share of the clients, in 10,000th parts, that contains so many clients, but for chance of 1e-6.

    Each client is asked independently of the others, so their number is binomial.

    Raises:
        UsageError: even all clients are too few.
    """
    # A planner's library.
    from scipy.special import betainc

    if reports > clients:
        raise UsageError(
            f"clients is {clients:,}, must be at least {reports:,}, the reports that are needed: ask all of them, in "
            "longer windows, or give a larger epsilon or a larger share to detect"
        )

    def suffices(buckets: int) -> bool:
        return bool(buckets == BUCKETS or betainc(clients - reports + 1, reports, 1 - buckets / BUCKETS) <= _SHORT)

    # The probability of too few clients falls as the sample grows.
    least, most = 0, BUCKETS
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if suffices(middle) else (middle, most)
    return most / BUCKETS
