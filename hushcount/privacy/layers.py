"""What one installation pays for several campaigns: of each layer, for one campaign at a time (docs/adr/0050)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import combinations

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import UsageError
from hushcount.maths.figures import rounded_up
from hushcount.policy import costs


@dataclass(frozen=True)
class Paid:
    """What an installation pays at most in a window of each of some campaigns, replace-one.

    Attributes:
        name: of a campaign; "all" for all of them.
        layer: of the campaign; None: the campaign asks all clients.
        share: of the clients that are asked, in (0, 1].
        epsilon: of the counts, against all parties; with a memory, of a whole epoch.
        discovery_epsilon: of discovery, for released values alone.
        noise_epsilon: of counts with noise of the mixes, for released counts alone: the reports are not randomised.
    """

    name: str
    layer: str | None
    share: float
    epsilon: float
    discovery_epsilon: float
    noise_epsilon: float = 0.0


def paid_for(campaigns: Collection[Campaign]) -> tuple[list[Paid], Paid]:
    """Return what each campaign costs an installation, and what all together cost it.

    All campaigns of a layer together cost as much as the dearest, because they have no client in common. This holds as
    long as the installation's id lives: a new id, a reinstallation and a second device may be asked by another campaign
    of the layer, and pay again.

    Args:
        campaigns: one file of each campaign.

    Raises:
        UsageError: a campaign is given twice, or two campaigns of a layer ask the same clients.
    """
    if twice := [name for name, times in Counter(one.id for one in campaigns).items() if times > 1]:
        raise UsageError(f"campaign {twice[0]} is given twice: give one file of each campaign")
    sampled = [(one.id, one.sample) for one in campaigns if one.sample is not None]
    for (name, sample), (other, theirs) in combinations(sampled, 2):
        if sample.meets(theirs):
            raise UsageError(
                f"campaigns {name} and {other} have buckets of layer {sample.layer} in common: make one of them with "
                "hushcount campaign new --config, which takes free buckets"
            )
    each = [_paid(one) for one in campaigns]
    together: dict[tuple[str, ...], list[Paid]] = {}
    for one in each:
        # A campaign without a sample is alone.
        together.setdefault(("campaign", one.name) if one.layer is None else ("layer", one.layer), []).append(one)
    epsilon, discovery, noise = (
        sum(max(getattr(one, name) for one in layer) for layer in together.values())
        for name in ("epsilon", "discovery_epsilon", "noise_epsilon")
    )
    return each, Paid("all", None, 1.0, epsilon, discovery, noise)


def _paid(campaign: Campaign) -> Paid:
    epsilon, discovery_epsilon, _ = costs(campaign)
    layer = None if campaign.sample is None else campaign.sample.layer
    noise = 0.0 if campaign.noise is None else campaign.noise.epsilon
    return Paid(campaign.id, layer, campaign.asked, epsilon, discovery_epsilon, noise)


def of_person(total: Paid) -> Iterator[str]:
    """Yield sentences on what all campaigns together cost one installation."""
    found = f", and {rounded_up(total.discovery_epsilon)} for discovery" if total.discovery_epsilon else ""
    if total.noise_epsilon:
        found += f", and {rounded_up(total.noise_epsilon)} for reports that are sealed, not randomised"
    yield (
        f"one installation pays at most epsilon {rounded_up(total.epsilon)} in a window of each campaign{found}: the "
        "sum over campaigns that ask all clients, and of each layer the largest"
    )
    yield "a new id, a reinstallation and a second device may be asked by another campaign of a layer, and pay again"
