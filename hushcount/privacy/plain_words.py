"""The privacy statement in a few sentences for people who decide about a product."""

from __future__ import annotations

import math
from collections.abc import Iterator

from hushcount.privacy.guarantees import Discovery, Shuffled, Statement, Total
from hushcount.privacy.rounding import ceiling
from hushcount.privacy.unit import Units

_ONE_VALUE = "sent one value rather than another"
_TOOK_PART = "took part (what the exact numbers of reports tell of that comes on top)"
_ROLES = "as long as the parties keep to their roles"


def plain_sentences(result: Statement, units: Units) -> Iterator[str]:
    """Yield what the figures of a statement tell about one person; each sentence holds by itself.

    Args:
        result: the statement's figures: local, shuffled, discovery and total, as far as there are.
        units: whose reports they bound.

    The same figures give the same sentences, so that two jobs say the same of the same clients, each of what it
    released. The odds between any two values that a person may have sent are what `odds.Odds` bounds: seeing the
    result changes them by `exp(epsilon)` at most, but for a chance. Figures are rounded up.
    """
    local, counts, found, both = result.local, result.shuffled, result.discovery, result.total
    lasting = None if local is None else local.epoch_epsilon
    # Where there are two streams, each sentence names its own.
    counted = " to be counted" if found else ""
    if counts and not lasting:
        yield (
            f"What the counts tell about {units.reports.person(counted)} changes the odds that the person "
            f"{_ONE_VALUE} by {_within(counts)}, {_ROLES}."
        )
    if found:
        relation = _ONE_VALUE if found.relation == "replace-one" else _TOOK_PART
        yield (
            f"A value is shown only when {units.discovery.enough}, about {found.clients_for_even_chance:,}: what "
            f"the values found tell about {units.discovery.person(' for discovery')} changes the odds that the "
            f"person {relation} by {_within(found)}, {_ROLES}."
        )
    if local is not None and lasting:
        changes = "; when a value changed is not hidden" if (local.values or 0) > 1 else ""
        yield (
            "All counts of the epoch together, however often a person reports, change the odds that any one person "
            f"{_ONE_VALUE} by {_odds(lasting)}, even if all parties broke their promises together, because each report "
            f"is randomised on the person's own device and repeated from there{changes}."
        )
    if both:
        yield (
            f"Counts and values found together, of {units.person()}, change the odds that the person "
            f"{_ONE_VALUE} by {_within(both)}, {_ROLES}."
        )
    if local is not None and not lasting:
        yield (
            f"Even if all parties broke their promises together, the reports of {units.reports.person(counted)} would "
            f"change the odds that the person {_ONE_VALUE} by {_odds(local.epsilon)}, because each is "
            "randomised on the person's own device."
        )
    if found:
        yield (
            "If the analyzer and the auxiliary server broke their promises together, the values sent for discovery "
            "would be open to them, because they are sealed but not randomised."
        )


def _within(part: Shuffled | Discovery | Total) -> str:
    odds = part.odds
    but = f", but for a chance of {_chance(odds.chance)}" if odds.chance else ""
    return f"{_odds(odds.epsilon)}{but}"


def _odds(epsilon: float) -> str:
    """Return how much odds can change: per cent below a factor of two, else a factor; rounded up."""
    gain = math.expm1(epsilon) if epsilon < 700.0 else math.inf
    if gain < 1.0:
        return f"{ceiling(100.0 * gain, 2):f} % at most"
    return f"a factor of {ceiling(gain + 1.0, 3):f} at most" if math.isfinite(gain) else "any factor"


def _chance(chance: float) -> str:
    """Return a chance as one in so many, not less than it is."""
    whole = math.floor(1.0 / chance)
    # Two digits are enough, and 1 in 9,090,909 reads as if they were known.
    scale = 10 ** max(0, len(str(whole)) - 2)
    return f"1 in {whole // scale * scale:,}"
