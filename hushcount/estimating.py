"""Estimates of a campaign with repeated answers: the one way from a tally to counts with errors."""

from __future__ import annotations

from collections.abc import Sequence

from hushcount.arrays import UInt64Array
from hushcount.campaigns.campaign import Campaign
from hushcount.oracles.estimates import Estimate
from hushcount.oracles.tally import Tally
from hushcount.privacy.unit import repeats_of


def estimated(campaign: Campaign, tally: Tally, items: UInt64Array) -> Estimate:
    """Return the estimates of a campaign's tally, with the error that repeated answers add."""
    return campaign.require_frequency().estimate(tally, items).repeated(repeats_of(campaign, tally.senders))


def summed(campaign: Campaign, tally: Tally, groups: Sequence[UInt64Array]) -> Estimate:
    """Return the estimate of the sum of each group of distinct items, with the error that repeated answers add."""
    return campaign.require_frequency().sums(tally, groups).repeated(repeats_of(campaign, tally.senders))
