"""From what collectors left in the store to batches: manifests are registered, windows closed when they are due."""

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
from pipelines.handover.batch_file import fault_of
from pipelines.handover.manifest_files import placed_manifest


def new_manifests(
    deployment: Deployment, campaign: str, known: Container[str]
) -> Iterator[tuple[str, Manifest | Exception]]:
    """Yield the manifests that are not known, by their path in the folder of segments; or what is wrong with one.

    Raises:
        UsageError: the folder cannot be listed.
    """
    root = deployment.folder("segments")
    found = storage.list_tree(storage.join(root, campaign), f"*/*/*{SUFFIX}")
    for path, _ in found:
        relative = storage.relative(path, root)
        if relative not in known:
            try:
                yield relative, _read(path, relative)
            except Exception as error:
                yield relative, error


def _read(path: str, relative: str) -> Manifest:
    # CAMPAIGN/EPOCH-FINGERPRINT/WINDOW/COLLECTOR-ID.manifest.json
    return placed_manifest(storage.read_bytes(path, LISTING_BYTES), path, relative.rpartition("/")[0])


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
    """Let segments that were put aside wait again if they are what their manifests say by now.

    After the grace period nothing takes them any more, and they are not looked at. Returned is a sentence for each that
    cannot be read.
    """
    with state.begin() as connection:
        aside = rows.quarantined(connection, campaign)
        windows = rows.known_windows(connection, campaign)
    problems = []
    for segment, _ in aside:
        path = storage.join(deployment.folder("segments"), *segment.path.split("/"))
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
    """Close the windows that are due, oldest first; yield the name of each when it is closed, and go on."""
    windows = deployment.windows
    with state.begin() as connection:
        due = closing.due_windows(connection, epochs.campaign, windows.patience, deployment.file.collectors, now)
    before = outputs_there(deployment, epochs.campaign, {window.name for window in due}) if due else set()
    for window in due:
        say(f"{epochs.campaign}: closing {window.name}")
        with state.begin() as connection:
            closing.close(connection, epochs.campaign, window, epochs.campaigns, windows.grace, now, before)
        yield window.name
    with state.begin() as connection:
        closing.give_up(connection, epochs.campaign, windows.grace, now)
