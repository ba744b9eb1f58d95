"""The data set in a store: a file for each result, written after its analysis, and made again if it is missing.

A file is written whole under the name of its batch, so that no result is in two files, and a run that is killed
anywhere leaves at most a file to make. The newest is written first, and the oldest only if all others could be: so the
version of the oldest stands for all, and a run reads that one alone.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq

from hushcount.collection.epochs import folder_name
from hushcount.collection.windows import Window, window_start
from hushcount.errors import HushcountError, UsageError
from hushcount.formats.reading import TABLE_BYTES
from hushcount.results import FOLDER, VERSION, file_name, version_of
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.exports.table import Result, file_bytes
from pipelines.files import storage
from pipelines.files.storage_errors import StorageError, told
from pipelines.handover.names import Batch
from pipelines.log.fold import Fold
from pipelines.log.outputs import outputs
from pipelines.outputs.staging import SUMMARY


def write(result: Result, root: str) -> str | None:
    """Write the file of a result into the data set at `root`, and return its path; None: the result has no tally.

    Raises:
        UsageError: as `Result.table`.
        StorageError: it cannot be written; what was there is still there.
    """
    table = result.table()
    path = storage.join(root, result.file_name)
    if table is None:
        return None
    data = file_bytes(table)
    try:
        storage.write_whole(path, [data])
    except (StorageError, OSError):
        # Another run that wrote it has taken this one's temporary file for that of a killed run.
        if storage.read_if_there(path, TABLE_BYTES) != data:
            raise
    # What a killed run had written of it.
    folder, name = posixpath.split(path)
    for left in storage.list_files(folder, storage.TEMPORARY):
        if left[0].rpartition("/")[2].startswith(f".{name}."):
            storage.remove(left[0])
    return path


def exported(deployment: Deployment) -> set[str]:
    """Return the paths of the files of the data set, of all campaigns."""
    return {path for path, _ in storage.list_tree(deployment.folder(FOLDER), "campaign=*/window=*/*.parquet")}


def keep_up(
    fold: Fold,
    deployment: Deployment,
    epochs: Epochs,
    before: Collection[Batch],
    there: Container[str],
    say: Callable[[str], None],
) -> list[str]:
    """Write the files that the data set lacks or has in an older version; return a sentence for each that it cannot.

    Args:
        before: batches that were analyzed before this run; the files of the others are written in any case.
        there: paths of the files of the data set, as `exported` returns them.
        say: is told each batch before its file is written.
    """
    paths = {batch: _path(deployment, batch) for batch in sorted(fold.analyzed, reverse=True)}
    oldest = min((path for path in paths.values() if path in there), default=None)
    current = oldest is not None and _version(oldest) >= VERSION
    missing = [
        batch
        for batch, path in paths.items()
        if (batch not in before or path not in there or not (current or _version(path) >= VERSION))
        # Another run is about to publish it, and then writes its file; or the run has said that it is gone.
        and storage.exists(deployment.folder("results", batch.campaign, batch.name, SUMMARY))
    ]

    def ready(batch: Batch) -> None:
        say(f"{batch.campaign}/{batch.name}: {FOLDER}")

    _, faults = _written(deployment, epochs, missing[:-1], fold.known_windows, ready)
    return faults or _written(deployment, epochs, missing[-1:], fold.known_windows, ready)[1]


def export(
    deployment: Deployment, epochs: Epochs, windows: Mapping[str, Window], ready: Callable[[Batch], None]
) -> tuple[list[str], list[str]]:
    """Write the file of every result of a campaign; return their paths, and a sentence for each that it cannot write.

    Args:
        windows: known windows by name; another is as long as the deployment's are now.
        ready: is told each batch before its file is written.
    """
    batches = [batch for batch, _ in outputs(deployment, "results", epochs.campaign)]
    return _written(deployment, epochs, sorted(batches, reverse=True), windows, ready)


def _written(
    deployment: Deployment,
    epochs: Epochs,
    batches: Iterable[Batch],
    windows: Mapping[str, Window],
    ready: Callable[[Batch], None],
) -> tuple[list[str], list[str]]:
    root = deployment.folder(FOLDER)
    paths, faults = [], []
    for batch in batches:
        ready(batch)
        try:
            paths.append(write(_result(deployment, epochs, batch, windows), root))
        except (HushcountError, OSError, pa.ArrowException) as error:
            faults.append(f"{batch.campaign}/{batch.name}: its {FOLDER} were not written: {told(error)}")
    return [path for path in paths if path is not None], faults


def _path(deployment: Deployment, batch: Batch) -> str:
    return deployment.folder(FOLDER, file_name(batch.campaign, batch.window, folder_name(*batch.file)))


def _result(deployment: Deployment, epochs: Epochs, batch: Batch, windows: Mapping[str, Window]) -> Result:
    campaign = epochs.campaigns.get(batch.file)
    if campaign is None:
        raise UsageError(f"its campaign file is not among those of {epochs.directory}: put it back")
    known = windows.get(batch.window)
    ends: datetime = window_start(batch.window) + deployment.windows.length if known is None else known.end
    directory = deployment.folder("results", batch.campaign, batch.name)
    return Result(directory, campaign, batch.window, ends, batch.name)


def _version(path: str) -> int:
    """Return the version of a file; 0 if it cannot be read as one, so that it is written again."""
    try:
        with storage.open_read(path) as stream:
            return version_of(pq.read_schema(stream).metadata, path)
    except (pa.ArrowException, OSError, HushcountError):
        return 0
