"""The files of an output as its summary lists them, each with its length and digest."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.files import storage
from pipelines.handover.batch_file import digest_of
from pipelines.outputs.summary import HopSummary, ListedFile


def files_of(summary: HopSummary, folder: str) -> dict[str, tuple[int, str]]:
    """Return bytes and digest of each file of a folder that a summary lists, by name; of another none."""
    return {file.name: (file.bytes, file.digest) for file in (summary.files or {}).get(folder, ())}


def listed_files(directory: str, folders: Iterable[str]) -> dict[str, tuple[ListedFile, ...]]:
    """Return name, bytes and digest of every file of a job's output, by its folder."""
    paths = {folder: [path for path, _ in all_files(storage.join(directory, folder))] for folder in folders}
    return {
        folder: tuple(ListedFile(path.rpartition("/")[2], *digest_of(path)) for path in found)
        for folder, found in paths.items()
    }


def all_files(directory: str) -> list[tuple[str, int]]:
    """Return path and size of all files of a directory, whatever their names are."""
    # A store may have an object in a directory's place.
    return [(path, size) for path, size in storage.list_files(directory, "") if not path.endswith("/")]
