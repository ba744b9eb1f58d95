"""Estimate counts, errors and flags of a campaign's tally, including the error that repeated answers add."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hushcount.arrays import Counts, FloatArray, UInt64Array
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary, items_of, other_item
from hushcount.errors import UsageError
from hushcount.oracles import flagging
from hushcount.oracles.estimates import Estimate
from hushcount.oracles.flags import UNFLAGGED, Flag, Flags
from hushcount.oracles.influence import forged_part
from hushcount.oracles.tally import Tally
from hushcount.privacy.unit import repeats_of
from hushcount.strata import Where


def estimated(campaign: Campaign, tally: Tally, items: UInt64Array) -> Estimate:
    """Return the estimates of a campaign's tally, with the error that repeated answers add; of all strata together."""
    if campaign.has_cells:
        return summed(campaign, tally, [items[at : at + 1] for at in range(len(items))])
    return campaign.require_frequency().estimate(tally, items).repeated(repeats_of(campaign, tally.senders))


def summed(
    campaign: Campaign,
    tally: Tally,
    groups: Sequence[UInt64Array],
    listed: Dictionary | None = None,
    where: Sequence[Where] = (),
) -> Estimate:
    """Return the estimate of the sum of each group of distinct items, with the error that repeated answers add.

    Args:
        listed: the campaign's dictionary, if the caller has read it; None: this function reads the dictionary if
            needed.
        where: for each group, the coordinates that its reports must have; none: the groups of all strata.

    Raises:
        UsageError: the campaign lacks an axis; or the error of a sum is unknown, because the dictionary is not in
            random order (`_require_random_order`).
        ValueError: as in `Mechanism.sums`.
    """
    mechanism, everything = campaign.require_frequency(), None
    if campaign.has_cells or any(where):
        return mechanism.sums(tally, campaign.cells_of(groups, where)).repeated(repeats_of(campaign, tally.senders))
    larger = [group for group in groups if len(group) > 1]
    if larger and mechanism.encoder.domain is None and (listed := listed or campaign.read_dictionary()) is not None:
        other = np.array([other_item(mechanism)], dtype=np.uint64)
        everything = np.concatenate([items_of(mechanism, listed, listed.items), other])
    if mechanism.encoder.groups_differ and mechanism.encoder.domain is not None:
        _require_random_order(campaign, larger, mechanism.encoder.domain, listed)
    return mechanism.sums(tally, groups, everything).repeated(repeats_of(campaign, tally.senders))


def flagged(campaign: Campaign, tally: Tally, repeats: Counts) -> Flags:
    """Return the flags of a batch, without those of counts.

    Args:
        repeats: how often equal reports of the batch came, by `hushcount.oracles.repeats.add_repeats`.
    """
    mechanism, n = campaign.require_frequency(), tally.reports
    if mechanism.encoder.noise is not None:
        # Reports of an item are all equal, dummies are among them, and each report counts for one item.
        return UNFLAGGED
    alike, forgers = repeats_of(campaign, tally.senders), forged_part(campaign.asked)
    law = mechanism.encoder.totals(mechanism.responder, tally.items)
    return Flags(
        repeated=flagging.repeated(mechanism, repeats, n, alike, forgers),
        totals=flagging.totals(law, int(tally.counts.sum()), n, alike, forgers),
    )


def flagged_counts(campaign: Campaign, tally: Tally, counts: FloatArray) -> Flag:
    """Return the flag of estimated counts, float64[c] users; of the counts of all cells if there are some.

    The law of the flag is of one item of the mechanism, so it does not hold for sums of cells.
    """
    if campaign.has_cells:
        counts = campaign.require_frequency().counts(tally, tally.items)
    alike, forgers = repeats_of(campaign, tally.senders), forged_part(campaign.asked)
    return flagging.counts(campaign.require_frequency(), counts, tally.reports, alike, forgers)


def _require_random_order(
    campaign: Campaign, groups: list[UInt64Array], domain: int, listed: Dictionary | None
) -> None:
    """Raise UsageError if a group omits two or more items of a dictionary that is not in random order.

    A group of all items except one is permitted whatever the order of the dictionary, because the group's sum is the
    number of reports minus the count of the omitted item.
    """
    partial = [group for group in groups if len(group) < domain - 1]
    listed = listed or (campaign.read_dictionary() if partial else None)
    if partial and listed is not None and not listed.is_in_random_order:
        raise UsageError(
            f"the error of a sum of {len(partial[0]):,} items is unknown, because the dictionary is not in random "
            "order: make the next epoch with `hushcount campaign new`, which writes its dictionary in random order"
        )
