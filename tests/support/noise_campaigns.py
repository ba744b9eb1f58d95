"""Campaigns with noise of the mixes, as their files would be read."""

from __future__ import annotations

from typing import Any

from hushcount.campaigns.campaign import Campaign
from tests.hushcount.campaigns.test_campaign_file import data


def noise_campaign(
    epsilon: float = 1.0, delta: float = 1e-8, cap: int = 1, discovery: dict[str, Any] | None = None
) -> Campaign:
    """Return a campaign with noise, of windows of a day; with discovery if its changed settings are given."""
    file = data()
    file["mechanism"], file["noise"] = None, {"epsilon": epsilon, "delta": delta, "seconds": 86_400}
    file["shuffle"] |= {"cap": cap, "minimum_batch": 1}
    file["discovery"] = None if discovery is None else file["discovery"] | discovery
    return Campaign.model_validate(file)
