"""Which of the evaluator's keys the campaigns of a deployment name: a key serves one campaign file in all."""

from __future__ import annotations

from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.epochs import COLLECTION_FILE
from hushcount.errors import UsageError
from pipelines.deployment.campaigns import read_campaign
from pipelines.files.storage_errors import told


def oblivious_campaigns(directory: Path) -> list[Campaign]:
    """Return the published campaign files of a directory of campaigns that name a key of the evaluator.

    Raises:
        UsageError: a campaign cannot be read, and may name any key.
    """
    found = []
    for path in sorted(directory.glob(f"*/{COLLECTION_FILE}")):
        try:
            epochs = read_campaign(path.parent)
        except Exception as error:
            raise UsageError(
                f"which keys of the evaluator are free cannot be told, because campaign {path.parent.name} cannot be "
                f"read: {told(error)}"
            ) from error
        found += [campaign for campaign in epochs.campaigns.values() if campaign.is_oblivious]
    return found


def used_keys(directory: Path) -> set[str]:
    """Return the ids of the evaluator's keys that these campaign files name; UsageError as above."""
    return {key.id for campaign in oblivious_campaigns(directory) for key in campaign.keys.evaluator}
