"""What retention leaves of an output that it deletes: what its hop counted, in FOLDER/CAMPAIGN/BATCH.deleted.json.

It stays as long as the hop's input may be seen again: a state that was lost, or restored from a copy, neither shuffles
nor draws it a second time. The party that deletes writes it beside its own outputs, and needs no other place.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import suppress

from sqlalchemy import Engine as Database

from hushcount.errors import HushcountError, UsageError
from pipelines.batches import rows
from pipelines.batches.hops import CHAIN, HANDED_ON
from pipelines.batches.state import DELETED
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.files.storage_errors import told
from pipelines.handover.names import Batch
from pipelines.outputs.received_summary import read_counts, read_summary
from pipelines.outputs.staging import SUMMARY

SUFFIX = ".deleted.json"


def tombstone_path(deployment: Deployment, folder: str, batch: Batch) -> str:
    """Return where the tombstone of a batch's output lies."""
    return deployment.folder(folder, batch.campaign, f"{batch.name}{SUFFIX}")


def tombstones(deployment: Deployment, folder: str, campaign: str) -> dict[Batch, str]:
    """Return the paths of the tombstones in a folder, by batch."""
    listed = storage.list_files(deployment.folder(folder, campaign), SUFFIX)
    found = {Batch.named(campaign, path.rpartition("/")[2].removesuffix(SUFFIX)): path for path, _ in listed}
    return {batch: path for batch, path in found.items() if batch is not None}


def outputs(deployment: Deployment, folder: str, campaign: str) -> Iterator[tuple[Batch, str]]:
    """Yield each batch of which a folder has an output, with the path of its summary, sorted by name."""
    for path, _ in storage.list_tree(deployment.folder(folder, campaign), f"*/{SUMMARY}"):
        batch = Batch.named(campaign, path.split("/")[-2])
        if batch is not None:
            yield batch, path


def outputs_there(deployment: Deployment, campaign: str, windows: Container[str]) -> set[str]:
    """Return the names of the batches of these windows of which a party here left an output, or its tombstone.

    A summary that is not the batch's is passed over: the hop that reads it says so.
    """
    names: set[str] = set()
    for hop in (hop for hop in CHAIN.values() if hop.party in deployment.file.parties):
        names |= {batch.name for batch in tombstones(deployment, hop.folder, campaign)}
        for batch, path in outputs(deployment, hop.folder, campaign):
            if batch.window in windows:
                with suppress(HushcountError, OSError):
                    summary = read_summary(path)
                    names |= {batch.name} if (summary.hop, summary.batch) == (hop.name, batch.name) else set()
    return names


def enter_deleted(state: Database, deployment: Deployment, campaign: str) -> dict[str, str]:
    """Enter what was deleted here and what it had counted, where the state does not know.

    Returns:
        A sentence for each tombstone that cannot be read, by the name of its batch.
    """
    problems = {}
    for hop in (hop for hop in HANDED_ON.values() if hop.party in deployment.file.parties):
        with state.begin() as connection:
            known = rows.deleted_folders(connection, campaign)
        for batch, path in tombstones(deployment, hop.folder, campaign).items():
            if (hop.folder, batch.name) in known:
                continue
            try:
                counts = read_counts(path)
                if counts.hop != hop.name:
                    raise UsageError(f"{path} is of hushcount {counts.hop}, must be of {hop.name}: restore it")
            except Exception as error:
                problems[batch.name] = f"{campaign}/{batch.name}: {told(error)}"
                continue
            with state.begin() as connection:
                if hop.name not in rows.counts_of(connection, batch):
                    rows.record(connection, batch, hop.name, counts)
                # Not complete: the deletion may have been killed, and deleting again costs nothing.
                row = {"campaign": campaign, "folder": hop.folder, "batch": batch.name, "complete": False}
                connection.execute(DELETED.insert().values(**row))
    return problems
