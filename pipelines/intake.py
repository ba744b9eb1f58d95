"""From what collectors left in the store to batches: manifests are registered, windows closed when they are due."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from datetime import datetime

from sqlalchemy import Engine as Database

from hushcount.collection import folder_name
from hushcount.errors import FormatError, HushcountError
from hushcount.manifests import SUFFIX, Manifest, read_manifest
from pipelines import batches, storage
from pipelines.batch_file import fault_of
from pipelines.deployment import Deployment
from pipelines.epochs import Epochs


def new_manifests(
    deployment: Deployment, campaign: str, known: Container[str]
) -> Iterator[tuple[str, Manifest | HushcountError | OSError]]:
    """Yield the manifests that are not known, by their path in the folder of segments; or what is wrong with one.

    Raises:
        UsageError: the folder cannot be listed.
    """
    root = deployment.folder("segments")
    found = storage.list_tree(storage.join(root, campaign), f"*/*/*{SUFFIX}")
    for path, _ in found:
        relative = path[len(root.rstrip("/")) + 1 :]
        if relative not in known:
            try:
                yield relative, _read(path, relative)
            except (HushcountError, OSError) as error:
                yield relative, error


def _read(path: str, relative: str) -> Manifest:
    with storage.open_read(path) as stream:
        manifest = read_manifest(stream.read(), path)
    # CAMPAIGN/EPOCH-FINGERPRINT/WINDOW/COLLECTOR.manifest.json
    where = f"{manifest.campaign}/{folder_name(manifest.epoch, manifest.fingerprint)}/{manifest.window}"
    if relative != f"{where}/{manifest.collector}{SUFFIX}":
        raise FormatError(f"{path} is the manifest of {where} by {manifest.collector}: it lies in the wrong place")
    return manifest


def register_new(state: Database, deployment: Deployment, campaign: str) -> list[str]:
    """Enter the manifests that came since the last run; return a sentence for each that cannot be read yet."""
    problems = []
    with state.begin() as connection:
        known = batches.known_manifests(connection, campaign)
    for relative, manifest in new_manifests(deployment, campaign, known):
        if isinstance(manifest, Manifest):
            with state.begin() as connection:
                batches.register(connection, relative, manifest)
        else:
            problems.append(f"{relative}: {storage.cause(manifest)}")
    return problems


def take_back_restored(state: Database, deployment: Deployment, campaign: str) -> None:
    """Let segments that were put aside wait again if they are what their manifests say by now."""
    with state.begin() as connection:
        aside = batches.quarantined(connection, campaign)
    for segment, _ in aside:
        path = storage.join(deployment.folder("segments"), *segment.path.split("/"))
        if storage.exists(path) and fault_of(path, segment.bytes, segment.digest) is None:
            with state.begin() as connection:
                batches.let_wait(connection, segment.path)


def close_due(
    state: Database, deployment: Deployment, epochs: Epochs, now: datetime, say: Callable[[str], None]
) -> list[str]:
    """Close the windows that are due, oldest first; return their names."""
    windows = deployment.windows
    files = {key: campaign for key, (_, campaign) in epochs.files.items()}
    with state.begin() as connection:
        due = batches.due_windows(connection, epochs.campaign, windows.patience, deployment.file.collectors, now)
    for window in due:
        say(f"{epochs.campaign}: closing {window.name}")
        with state.begin() as connection:
            batches.close(connection, epochs.campaign, window, files, windows.grace, now)
    with state.begin() as connection:
        batches.give_up(connection, epochs.campaign, windows.grace, now)
    return [window.name for window in due]
