"""Which of the evaluator's keys the campaigns of a deployment name: a key serves one campaign file in all."""

from __future__ import annotations

from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import UsageError
from pipelines.deployment.campaigns import read_published


def oblivious_campaigns(directory: Path) -> list[Campaign]:
    """Return the published campaign files of a directory of campaigns that name a key of the evaluator.

    Raises:
        UsageError: a campaign cannot be read, and may name any key.
    """
    valid, faults = read_published(directory)
    for name, fault in faults.items():
        raise UsageError(
            f"which keys of the evaluator are free cannot be told, because campaign {name} cannot be read: {fault}"
        )
    return [campaign for epochs in valid for campaign in epochs.campaigns.values() if campaign.is_oblivious]


def used_keys(directory: Path) -> set[str]:
    """Return the ids of the evaluator's keys that these campaign files name; UsageError as above."""
    return {key.id for campaign in oblivious_campaigns(directory) for key in campaign.keys.evaluator}
