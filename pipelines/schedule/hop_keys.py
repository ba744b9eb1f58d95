"""The keys of a batch's hops, read before the first of them runs: who comes later can use what is spent now."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import RetiredKey
from pipelines.batches.hops import HANDED_ON
from pipelines.deployment.settings import Deployment
from pipelines.handover.parties import signer_of


def require_keys(deployment: Deployment, campaign: Campaign, hops: Collection[str]) -> RetiredKey | None:
    """Read every key that the hops need, and return that the analyzer's was retired: then nothing is to be released.

    Where a party runs elsewhere its keys cannot be looked at. A retired key of the auxiliary server's is said by its
    own hop, after which no other needs it.

    Raises:
        UsageError: one is missing or damaged, or cannot be used.
    """
    for hop in HANDED_ON.values():
        signer = signer_of(deployment.sign_with, hop.signer) if hop.name in hops and hop.signer else None
        if signer is not None:
            signer.read_signing()
    if not {"release", "discover", "analyze"} & set(hops):
        return None
    # The shuffler has no package of keys.
    from keys.store import campaign_key

    if "discover" in hops:
        campaign.require_hash_key()
    if "release" in hops:
        with suppress(RetiredKey):
            campaign_key(deployment.keys, "aux_server", campaign.keys.aux_server)
    if {"discover", "analyze"} & set(hops):
        try:
            campaign_key(deployment.keys, "analyzer", campaign.keys.analyzer)
        except RetiredKey as retired:
            return retired
    return None
