"""The outputs in the folders of hops: by batch, each with a summary that names the folder of its files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.handover.names import Batch
from pipelines.outputs.staging import SUMMARY


def outputs(deployment: Deployment, folder: str, campaign: str) -> Iterator[tuple[Batch, str]]:
    """Yield each batch with an output in a folder, and the path of its summary, sorted by name."""
    for path, _ in storage.list_tree(deployment.folder(folder, campaign), f"*/{SUMMARY}"):
        batch = Batch.named(campaign, path.split("/")[-2])
        if batch is not None:
            yield batch, path


def all_outputs(deployment: Deployment, folder: str) -> dict[str, list[Batch]]:
    """Return the batches with an output in a folder, by campaign, by one listing."""
    found: dict[str, list[Batch]] = defaultdict(list)
    for path, _ in storage.list_tree(deployment.folder(folder), f"*/*/{SUMMARY}"):
        campaign, name = path.split("/")[-3:-1]
        if (batch := Batch.named(campaign, name)) is not None:
            found[campaign].append(batch)
    return found
