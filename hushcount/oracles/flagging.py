"""The laws of the flags of poisoning: each is raised with a known probability at most if all clients are honest."""

from __future__ import annotations

import math

from hushcount.arrays import Counts, FloatArray
from hushcount.maths.variance import SupportLaw
from hushcount.oracles.encoders.base import TotalLaw
from hushcount.oracles.flags import NOTHING, Flag, Verdict
from hushcount.oracles.influence import influence
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.repeats import least_suspect

CHANCE = 1e-6
"""The greatest probability of each flag in a batch of honest clients."""


def repeated(mechanism: Mechanism, repeats: Counts, reports: int, alike: int, forgers: float) -> Flag:
    """Flag a report that came more often than honest clients explain (`repeats.least_suspect`).

    It finds lazy forgers only: reports that are drawn afresh, as an honest client of the wanted item draws them, are
    never equal more often than honest ones.

    Args:
        repeats: the counts of `add_repeats`.
        reports: n, of the batch.
        alike: l, the most equal reports that one honest client sends on purpose.
        forgers: the share of the reports that 1 % of all clients send.
    """
    least = least_suspect(mechanism, reports, alike, CHANCE)
    number, most = int((repeats >= least).sum()), int(repeats.max())
    high = None if least > reports else least - 1.0
    return Flag(verdict=_verdict(number > 0, forgers * reports >= least), found=most, high=high, number=number)


def totals(law: TotalLaw, added: int, reports: int, alike: int, forgers: float) -> Flag:
    """Flag a batch that adds more, or less, to all items together than honest clients do, whatever their items.

    Bernstein: the sum of n reports, of which l are equal, is further than t from its mean with probability at most
    `2 exp(-t^2 / (2 l (n variance + step t / 3)))`. The flag finds reports of all ones, and functions that were chosen
    for the number of items that they support.

    Args:
        law: of one report.
        added: the sum of all counts of the tally.
        reports, alike, forgers: as in `repeated`.
    """
    found = added / reports
    if law.variance <= 0.0:
        return Flag(found=found)
    nats, step = alike * math.log(2.0 / CHANCE), law.step / 3.0
    margin = (nats * step + math.sqrt((nats * step) ** 2 + 2.0 * nats * reports * law.variance)) / reports
    low, high = law.low - margin, law.high + margin
    return Flag(
        verdict=_verdict(not low <= found <= high, forgers * (law.most - law.low) >= high - law.low),
        found=found,
        low=low,
        high=high,
    )


def counts(mechanism: Mechanism, found: FloatArray, reports: int, alike: int, forgers: float) -> Flag:
    """Flag counts above the number of reports by more than noise, for all these items together.

    The mean score of an item is at most `own`, that of a client of the item, also if items collide. Chernoff's bound
    for scores in least..1, and for l equal reports of a client, limits the score of an item that all clients hold.

    Args:
        found: float64[c], unbiased counts, users.
        reports, alike, forgers: as in `repeated`.
    """
    if not len(found):
        return NOTHING
    law, most = mechanism.law, float(found.max())
    high = _greatest_count(law, reports, alike * math.log(len(found) / CHANCE) / reports)
    if high is None:
        return Flag(found=most)
    number = int((found > high).sum())
    seen = forgers * reports * influence(mechanism).up > high
    return Flag(verdict=_verdict(number > 0, seen), found=most, high=high, number=number)


def _greatest_count(law: SupportLaw, reports: int, nats: float) -> float | None:
    """Return the count whose mean score has a divergence of `nats` from `own`; None: no score has so large a one."""
    least = law.least
    mean = (float(law.own) - least) / (1.0 - least)
    if -math.log(mean) <= nats:
        return None
    low, high = mean, 1.0
    while (middle := (low + high) / 2.0) not in (low, high):
        low, high = (low, middle) if _divergence(middle, mean) >= nats else (middle, high)
    return reports * (least + high * (1.0 - least) - float(law.other)) / float(law.gain)


def _divergence(part: float, mean: float) -> float:
    rest = 0.0 if part == 1.0 else (1.0 - part) * math.log((1.0 - part) / (1.0 - mean))
    return part * math.log(part / mean) + rest


def _verdict(raised: bool, seen: bool) -> Verdict:
    """Return the verdict; `seen`: whether 1 % of forgers would raise the flag."""
    return "flagged" if raised else "not flagged" if seen else "cannot tell"
