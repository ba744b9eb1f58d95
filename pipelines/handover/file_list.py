"""List files with their lengths and digests, as a summary has them, and check a file against its length and digest."""

from __future__ import annotations

from collections.abc import Iterable

from hushcount.errors import UsageError
from pipelines.files import storage
from pipelines.files.storage_errors import cause
from pipelines.outputs.summary import ListedFile


def listed_as(path: str) -> ListedFile:
    """Return a file's name, length and digest, as in a summary; raises UsageError if the file cannot be read."""
    try:
        return ListedFile(path.rpartition("/")[2], *storage.digest_of(path))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {cause(error)}") from None


def fault_of(path: str, expected_bytes: int, digest: str) -> str | None:
    """Return how a file differs from the length and digest that it was written with; None: it does not differ.

    Raises:
        UsageError: the file cannot be read now, so its content is unknown.
    """
    now = listed_as(path)
    if now.bytes != expected_bytes:
        return f"has {now.bytes} bytes, was written with {expected_bytes}"
    return None if now.digest == digest else "fails its digest"


def listed_files(directory: str, folders: Iterable[str]) -> dict[str, tuple[ListedFile, ...]]:
    """Return the files in these folders of a job's output, by folder, with lengths and digests."""
    return {
        folder: tuple(listed_as(path) for path, _ in all_files(storage.join(directory, folder))) for folder in folders
    }


def all_files(directory: str) -> list[tuple[str, int]]:
    """Return path and size of all files of a directory, with any name."""
    # In a store, an object whose name ends in a slash may stand for the directory; this object is no file.
    return [(path, size) for path, size in storage.list_files(directory, "") if not path.endswith("/")]
