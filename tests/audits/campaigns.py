"""A campaign for every frequency oracle, planned as `hushcount campaign new` plans it, small enough to audit."""

from __future__ import annotations

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary
from hushcount.campaigns.parts import portable
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import CATALOGUE, plan
from keys.private import PrivateKey
from tests.hushcount.campaigns.test_campaign_file import changed

ANALYZER, AUX_SERVER = PrivateKey(bytes([1]) * 32), PrivateKey(bytes([2]) * 32)
DICTIONARY = Dictionary(tuple(f"item {number}" for number in range(9)))
VALUES = ("item 2", "what no list holds")
"""The two inputs: a listed item, and one that is reported as "other"."""
EPSILON = 1.0
_SETTINGS = {"k": 16, "m": 32}


def campaign_of(oracle: str, epsilon: float = EPSILON, *, listed: bool = True) -> Campaign:
    """Return a campaign of nine items and "other", or of the open domain."""
    settings = _SETTINGS if CATALOGUE[oracle].seeded else {}
    domain = len(DICTIONARY.items) + 1 if listed else None
    parameters = plan(oracle, epsilon, domain, settings, Objective("l2"), "5eed" * 16)
    data = changed("mechanism", {"name": oracle, "epsilon": epsilon, "parameters": portable(parameters)})
    del data["dictionary"]
    if listed:
        data["dictionary"] = {"path": "items.txt", "items": len(DICTIONARY.items), "digest": DICTIONARY.digest}
    return Campaign.model_validate(data)
