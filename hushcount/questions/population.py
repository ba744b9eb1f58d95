"""Counts in a whole population, from the reports of a random sample of its clients (docs/adr/0050)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushcount.arrays import FloatArray
from hushcount.errors import UsageError
from hushcount.questions.counted import Counted, Group
from hushcount.questions.mover import Limited, sum_limits
from hushcount.questions.totals import total


@dataclass(frozen=True, eq=False)
class Scaled:
    """The number of a population's clients that hold each group, float64[g] each: estimate, standard error, limits."""

    count: FloatArray
    error: FloatArray
    low: FloatArray
    high: FloatArray


def scaled(results: Sequence[Counted], groups: Sequence[Group], population: int, confidence: float) -> Scaled:
    """Return the share of each group in the results, times the population's clients.

    The clients that reported are taken as a random sample of the population: those who were not asked, and those who
    were asked and did not report, hold the groups as often. A sample is the same for a whole epoch, so windows add no
    clients: m is the number of clients that must have reported in the largest result. Each limit has two distances from
    the estimate, which are added in squares (`sum_limits`): that of the total among those who reported, and that of
    Clopper and Pearson's limit for m clients at the estimated share.

    Args:
        results: at least one; of campaigns with a sample.
        population: clients, at least m.
        confidence: of each interval alone, in (0, 1).

    Raises:
        UsageError: a campaign has no sample, or takes several reports of a client in a window, or the population is too
            small; or as in `total`.

    Reference: Clopper and Pearson 1934; Zou and Donner 2008.
    """
    clients = max(map(_clients, results))
    if population < clients:
        raise UsageError(
            f"population is {population:,}, must be at least {clients:,}, the clients that reported in a window"
        )
    found = total(results, groups, confidence)
    share, n = found.count / found.reports, found.reports
    held = np.clip(share, 0.0, 1.0)
    low, high = _sampled(held, clients, (1.0 - confidence) / 2.0)
    answered = Limited(share, found.low / n, found.high / n)
    sampled = Limited(np.zeros_like(share), low - held, high - held)
    both = np.stack(sum_limits([answered, sampled]))
    error = np.hypot(found.error / n, np.sqrt(held * (1.0 - held) / clients))
    return Scaled(population * share, population * error, *(population * both))


def _clients(one: Counted) -> int:
    """Return the least number of clients of a result's reports, at least 1."""
    campaign, senders = one.campaign, one.tally.senders
    if campaign.sample is None:
        raise UsageError(
            f"campaign {campaign.id} asks all its clients, so its counts are of all that report: leave out --population"
        )
    if campaign.shuffle.cap > 1:
        raise UsageError(
            f"campaign {campaign.id} takes {campaign.shuffle.cap} reports of a client in a window, so a share of its "
            "reports is no share of clients: leave out --population"
        )
    return -(-one.reports // senders.allotments("reports"))


def _sampled(share: FloatArray, clients: int, tail: float) -> tuple[FloatArray, FloatArray]:
    """Return (low, high), float64[g] each, of the population's share, if `share` of a sample of clients hold a group.

    If low were the population's share, so many clients of the sample or more would hold the group with probability
    `tail`; if high were, so many or fewer.
    """
    # A server's library.
    from scipy.special import betaincinv

    held = share * clients
    low = betaincinv(np.maximum(held, 1e-9), clients - held + 1.0, tail)
    high = 1.0 - betaincinv(np.maximum(clients - held, 1e-9), held + 1.0, tail)
    return np.where(held > 0.0, low, 0.0), np.where(held < clients, high, 1.0)
