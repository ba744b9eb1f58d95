"""What retention leaves of an output that it deletes: what its hop counted, in FOLDER/CAMPAIGN/BATCH.deleted.json.

It stays as long as what the hop read may be seen again: so that a state that was lost, or restored from a copy, neither
shuffles nor draws it a second time. It lies where the party that deletes also writes, so that a party that runs apart
needs no other place.
"""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress

from sqlalchemy import Engine as Database

from hushcount.errors import HushcountError, UsageError
from pipelines.batches import rows
from pipelines.batches.hops import CHAIN, HANDED_ON
from pipelines.batches.rows import Batch
from pipelines.batches.state import DELETED
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.files.storage_errors import told
from pipelines.outputs.counts import HopCounts
from pipelines.outputs.received_summary import read_counts, read_summary
from pipelines.outputs.staging import SUMMARY

SUFFIX = ".deleted.json"


def tombstone_path(deployment: Deployment, folder: str, batch: Batch) -> str:
    """Return where the tombstone of a batch's output lies."""
    return deployment.folder(folder, batch.campaign, f"{batch.name}{SUFFIX}")


def write_tombstone(deployment: Deployment, folder: str, batch: Batch, counts: HopCounts) -> None:
    """Say what the hop counted whose output is deleted next."""
    storage.write_json(tombstone_path(deployment, folder, batch), counts.counts.data())


def tombstones(deployment: Deployment, folder: str, campaign: str) -> dict[str, str]:
    """Return the paths of the tombstones in a folder, by the name of the batch."""
    listed = storage.list_files(deployment.folder(folder, campaign), SUFFIX)
    paths = {path.rpartition("/")[2].removesuffix(SUFFIX): path for path, _ in listed}
    return {name: path for name, path in sorted(paths.items()) if Batch.named(campaign, name) is not None}


def outputs_there(deployment: Deployment, campaign: str, windows: Container[str]) -> set[str]:
    """Return the names of the batches of these windows of which a party here left an output, or its tombstone.

    What is no summary of the batch is passed over: whoever takes the batch forward says so.
    """
    names: set[str] = set()
    for hop in CHAIN.values():
        if hop.party not in deployment.file.parties:
            continue
        names |= tombstones(deployment, hop.folder, campaign).keys()
        for path, _ in storage.list_tree(deployment.folder(hop.folder, campaign), f"*/{SUMMARY}"):
            name = path.split("/")[-2]
            batch = Batch.named(campaign, name)
            if batch is not None and batch.window in windows:
                with suppress(HushcountError, OSError):
                    summary = read_summary(path)
                    names |= {name} if (summary.hop, summary.batch) == (hop.name, name) else set()
    return names


def enter_deleted(state: Database, deployment: Deployment, campaign: str) -> dict[str, str]:
    """Enter what was deleted here and what it had counted, where the state does not know.

    Returns:
        A sentence for each tombstone that cannot be read, by the name of its batch.
    """
    problems = {}
    for hop, folder in ((one.name, one.folder) for one in HANDED_ON.values() if one.party in deployment.file.parties):
        with state.begin() as connection:
            known = {name for what, name in rows.deleted_folders(connection, campaign) if what == folder}
        for name, path in tombstones(deployment, folder, campaign).items():
            batch = Batch.named(campaign, name)
            if batch is None or name in known:
                continue
            try:
                counts = read_counts(path)
                if counts.hop != hop:
                    raise UsageError(f"{path} is of hushcount {counts.hop}, must be of {hop}: restore it")
            except Exception as error:
                problems[name] = f"{campaign}/{name}: {told(error)}"
                continue
            with state.begin() as connection:
                if hop not in rows.counts_of(connection, batch):
                    rows.record(connection, batch, hop, counts)
                # Not complete: it may have been killed, and to go on with it costs nothing.
                row = {"campaign": campaign, "folder": folder, "batch": name, "complete": False}
                connection.execute(DELETED.insert().values(**row))
    return problems
