"""The hops of a batch: their order, whose job each is, and what each reads and writes."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from hushcount.campaigns.campaign import Campaign, Stream
from pipelines.batches.rows import Batch
from pipelines.deployment.settings import Deployment, Party

if TYPE_CHECKING:
    from keys.roles import SigningRole

OUTPUTS: Mapping[str, tuple[Party, str]] = {
    "shuffle": ("shuffler", "shuffled"),
    "release": ("aux-server", "released"),
    "discover": ("analyzer", "found"),
    "analyze": ("analyzer", "results"),
}
"""The hops in their order: whose job each is, and the folder that it writes."""
READERS: Mapping[Stream, str] = {"discovery": "release", "reports": "analyze"}
"""Which hop reads what the shuffler handed on of a stream."""
STREAM_OF: Mapping[str, Stream] = {"release": "discovery", "discover": "discovery", "analyze": "reports"}
"""Of which stream a batch must be for a hop to have anything to do."""
SIGNERS: Mapping[str, SigningRole] = {"shuffle": "shuffler", "release": "aux_signer"}
"""Who signs what a hop hands on."""
INPUT_OF: Mapping[str, str] = {"release": "shuffle", "discover": "release", "analyze": "shuffle"}
"""Whose output a hop reads; the shuffler's reads segments."""


def hop_names(campaign: Campaign, parties: Container[Party]) -> list[str]:
    """Return the hops of a campaign's batches that these parties run, in their order."""
    wanted = {"shuffle"}
    if campaign.discovery is not None:
        wanted |= {"release", "discover"}
    if campaign.mechanism is not None:
        wanted.add("analyze")
    return [hop for hop, (party, _) in OUTPUTS.items() if hop in wanted and party in parties]


def output_of(deployment: Deployment, hop: str, batch: Batch) -> str:
    """Return the directory that a hop writes of a batch."""
    return deployment.folder(OUTPUTS[hop][1], batch.campaign, batch.name)
