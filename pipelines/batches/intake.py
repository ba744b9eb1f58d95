"""From what collectors left in the store to batches: register manifests, close windows when they are due."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from datetime import datetime

from sqlalchemy import Engine as Database
from sqlalchemy.exc import DataError, IntegrityError

from hushcount.collection.manifests import SUFFIX, Manifest
from hushcount.errors import HushcountError
from hushcount.formats.reading import LISTING_BYTES
from pipelines.batches import closing, rows
from pipelines.batches.tombstones import outputs_there
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.files.storage_errors import told
from pipelines.handover.file_list import fault_of
from pipelines.handover.upstream import placed_manifest


def new_manifests(
    deployment: Deployment, campaign: str, known: Container[str]
) -> Iterator[tuple[str, Manifest | Exception]]:
    """Yield each manifest that is not known, or why it cannot be read, by its path in the folder of segments.

    Raises:
        UsageError: the folder cannot be listed.
    """
    root = deployment.folder("segments")
    for path, _ in storage.list_tree(storage.join(root, campaign), f"*/*/*{SUFFIX}"):
        # CAMPAIGN/EPOCH-FINGERPRINT/WINDOW/COLLECTOR-ID.manifest.json
        relative = storage.relative(path, root)
        if relative not in known:
            try:
                data = storage.read_bytes(path, LISTING_BYTES)
                manifest: Manifest | Exception = placed_manifest(data, path, relative.rpartition("/")[0])
            except Exception as error:
                manifest = error
            yield relative, manifest


def register_new(state: Database, deployment: Deployment, campaign: str) -> list[str]:
    """Enter the manifests that came since the last run; return a sentence for each that cannot be read yet."""
    problems = []
    with state.begin() as connection:
        known = rows.known_manifests(connection, campaign)
    for relative, manifest in new_manifests(deployment, campaign, known):
        if not isinstance(manifest, Manifest):
            problems.append(f"{relative}: {told(manifest)}")
            continue
        try:
            with state.begin() as connection:
                rows.register(connection, relative, manifest)
        except IntegrityError:
            problems.append(
                f"{relative}: names a segment that another manifest has named: see which is right and remove the "
                "other, then hushcount segments relist lists what is in none"
            )
        except DataError:
            problems.append(f"{relative}: holds what the state cannot")
    return problems


def take_back_restored(state: Database, deployment: Deployment, campaign: str, now: datetime) -> list[str]:
    """Let segments that were put aside wait again once they match their manifests, until their grace period ends.

    Returns:
        A sentence for each that cannot be read.
    """
    with state.begin() as connection:
        aside = rows.quarantined(connection, campaign)
        windows = rows.known_windows(connection, campaign)
    problems = []
    for segment, _ in aside:
        path = deployment.folder("segments", segment.path)
        if windows[segment.window].end + deployment.windows.grace < now or not storage.exists(path):
            continue
        try:
            fault = fault_of(path, segment.bytes, segment.digest)
        except (HushcountError, OSError) as error:
            problems.append(told(error))
            continue
        if fault is None:
            with state.begin() as connection:
                rows.let_wait(connection, segment.path)
    return problems


def close_due(
    state: Database, deployment: Deployment, epochs: Epochs, now: datetime, say: Callable[[str], None]
) -> Iterator[str]:
    """Close the windows that are due, oldest first; yield the name of each when it is closed."""
    windows, campaign = deployment.windows, epochs.campaign
    with state.begin() as connection:
        due = closing.due_windows(connection, campaign, windows.patience, deployment.file.collectors, now)
    before = outputs_there(deployment, campaign, {window.name for window in due}) if due else set()
    for window in due:
        say(f"{campaign}: closing {window.name}")
        with state.begin() as connection:
            closing.close(connection, campaign, window, epochs.campaigns, windows.grace, now, before)
        yield window.name
    with state.begin() as connection:
        closing.give_up(connection, campaign, windows.grace, now)
