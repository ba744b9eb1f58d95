"""Campaigns with noise of the mixes, and a site with one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hushcount.campaigns.campaign import Campaign
from tests.hushcount.campaigns.test_campaign_file import data
from tests.support.jobs import done
from tests.support.site import Site

SIGNED = """sign_with = "signing"
shuffler_keys = "signing/public.json"
aux_server_keys = "signing/public.json"
"""


class NoiseSite(Site):
    """One operator with all keys, whose campaign has noise of the mixes."""

    mechanism = None
    floor = 1
    options = ("--noise", "--epsilon", 1, "--window", "1d")

    def __init__(self, root: Path, *, settings: str = "", tail: str = "", **more: bool) -> None:
        done("keys", "new", "--role", "handing-on", "--out", root / "signing")
        super().__init__(root, settings=SIGNED + settings, tail=tail, **more)


def noise_campaign(
    epsilon: float = 1.0, delta: float = 1e-8, cap: int = 1, discovery: dict[str, Any] | None = None
) -> Campaign:
    """Return a campaign with noise, of windows of a day; with discovery if its changed settings are given."""
    file = data()
    file["mechanism"], file["noise"] = None, {"epsilon": epsilon, "delta": delta, "seconds": 86_400}
    file["shuffle"] |= {"cap": cap, "minimum_batch": 1}
    file["discovery"] = None if discovery is None else file["discovery"] | discovery
    return Campaign.model_validate(file)
