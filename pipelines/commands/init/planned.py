"""Derive the spans of time, the limit of the ledger, and the guarantees from the answers to the prompts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.tilings import Tiling
from hushcount.maths.odds import Odds
from hushcount.planning.shuffled import Protection, protection
from hushcount.privacy.amplification import amplify
from hushcount.privacy.composition import Loss
from hushcount.privacy.queries import discovery_answer, shuffled_answer
from hushcount.privacy.statement import statement
from hushcount.senders import Senders
from pipelines.ledger.charging import cost_of

_DAY = timedelta(days=1)
_LEAST_GRACE = 2 * _DAY
_KEPT = 30 * _DAY
_RENEWED = 30


@dataclass(frozen=True)
class Spans:
    """The windows, the grace period, and how long files are kept.

    Attributes:
        tiling: how time is cut into windows.
        grace: how long a stream with less than a minimum batch waits for reports of later windows; at least two
            windows.
        kept: how long retention keeps files; at least two grace periods and a window, because late reports are compared
            with files of that age to find copies.
    """

    tiling: Tiling
    grace: timedelta
    kept: timedelta

    @classmethod
    def of(cls, tiling: Tiling) -> Spans:
        """Return the spans for windows."""
        grace = max(_LEAST_GRACE, 2 * tiling.usual)
        return cls(tiling, grace, max(_KEPT, 2 * grace + tiling.longest))


@dataclass(frozen=True)
class Budget:
    """The most that all releases within `renew_days` may cost one client."""

    epsilon: float
    delta: float
    renew_days: int


def budget_for(campaign: Campaign, window: timedelta) -> Budget:
    """Return a budget for 1.1 times the windows in its days, each with a minimum batch, at which a window costs most.

    The budget limits the damage that a fault can do, but as a guarantee to clients it is weak.
    """
    days = max(_RENEWED, math.ceil(window / _DAY))
    # Allow for more batches than windows, because a window in which the epoch changes has two batches.
    windows = math.ceil(1.1 * (timedelta(days=days) / window)) + 1
    stated = statement(campaign, campaign.shuffle.minimum_batch, Senders("client-token"))
    counts = cost_of(stated, "analyze")
    # If shuffling a minimum batch does not lower epsilon, the release costs no delta; a larger batch may cost delta.
    each = [Loss(counts.epsilon, max(counts.delta, campaign.shuffle.delta))]
    if campaign.discovery is not None:
        each.append(cost_of(stated, "discover"))
    epsilon, delta = (windows * sum(getattr(one, name) for one in each) for name in ("epsilon", "delta"))
    return Budget(_upward(epsilon), _upward(delta), days)


def shuffled_guarantee(campaign: Campaign, clients: int) -> tuple[dict[str, Any], Protection]:
    """Return what hushcount privacy --campaign answers for a batch with one report of each client, and the odds.

    A batch has at least the minimum batch, so with fewer clients the guarantee is that of a minimum batch.
    """
    minimum = campaign.shuffle.minimum_batch
    gained = amplify(campaign.require_frequency(), max(clients, minimum), campaign.shuffle.delta)
    return shuffled_answer(gained, minimum), protection(gained.local, gained)


def results_odds(campaign: Campaign, clients: int) -> Odds | None:
    """Return how far all results of a window change the odds about one client: its counts, and discovery if it has any.

    None if there is no gain over the local guarantee and no discovery.
    """
    stated = statement(campaign, max(clients, campaign.shuffle.minimum_batch), Senders("client-token"))
    whole = stated.total or stated.shuffled or stated.noisy
    return None if whole is None else whole.odds


def discovery_guarantee(campaign: Campaign) -> dict[str, Any] | None:
    """Return what hushcount privacy --campaign --discovery answers; None if the campaign has no discovery."""
    return None if campaign.keep_rule is None else discovery_answer(campaign.keep_rule)


def _upward(value: float) -> float:
    """Round a value up to three digits; the result is not below the exact sum that `value` is rounded from."""
    scale = 10.0 ** (2 - math.floor(math.log10(value)))
    return float(f"{math.ceil(value * (1.0 + 1e-9) * scale) / scale:.6g}")
