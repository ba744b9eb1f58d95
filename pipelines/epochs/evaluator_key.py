"""Which key of the evaluator the next epoch of an oblivious campaign takes."""

from __future__ import annotations

from datetime import datetime

from hushcount.collection.windows import window_at
from hushcount.errors import UsageError
from keys.directories import PublicFile
from keys.listing import listed_keys, next_key
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.evaluator_keys import used_keys
from pipelines.deployment.parts import NextEpochPart
from pipelines.deployment.settings import Deployment


def with_evaluator(
    deployment: Deployment, epochs: Epochs, part: NextEpochPart, keys: PublicFile, now: datetime
) -> tuple[PublicFile, int]:
    """Return the keys of the next epoch with that of the evaluator, if it needs one, and how many are left after it.

    Raises:
        UsageError: no public keys of the evaluator are named, or none is left that served no campaign file of the
            deployment, or one of these cannot be read.
    """
    _, campaign = epochs.newest
    if not campaign.is_oblivious:
        return keys, 0
    if not part.evaluator_keys:
        raise UsageError(
            f"campaign {campaign.id} is oblivious, and each epoch needs a fresh key of the evaluator: set "
            f"evaluator_keys under [next_epoch.{campaign.id}] to its public.json"
        )
    sources = [deployment.base / name for name in part.evaluator_keys]
    used = used_keys(deployment.campaigns)
    key = next_key(sources, window_at(now, deployment.windows.length).end, used)
    left = [one.id for one in listed_keys(sources)]
    return keys.model_copy(update={"evaluator": (key,)}), len(left) - 1 - left.index(key.id)
