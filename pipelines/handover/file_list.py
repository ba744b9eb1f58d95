"""The files of an output as its summary lists them, each with its length and digest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hushcount.formats.models import FileName, Hex32, Part
from hushcount.formats.reading import validated
from hushcount.wire.places import MOST_PLACES
from pipelines.files import storage
from pipelines.handover.batch_file import digest_of
from pipelines.outputs.summary import Summary


class _ListedFile(Part):
    name: FileName
    bytes: int = Field(ge=0, le=1 << 62)
    digest: Hex32


_Folder = Annotated[tuple[_ListedFile, ...], Field(max_length=4 * MOST_PLACES)]
"""A hop writes one file for each place at most."""


class _FileList(BaseModel):
    """Of a summary, the files that it lists; the rest is read as any summary."""

    model_config = ConfigDict(frozen=True)
    files: dict[str, _Folder] = Field(default={}, max_length=8)

    @model_validator(mode="after")
    def _check(self) -> _FileList:
        for listed in self.files.values():
            if len({file.name for file in listed}) < len(listed):
                raise ValueError("files names a file twice in one folder")
        return self


def files_of(summary: Summary, folder: str, path: str) -> dict[str, tuple[int, str]] | None:
    """Return bytes and digest of each file of a folder, by name; None: the summary lists no such folder.

    Args:
        summary: of an output.
        folder: of it.
        path: of the summary, for the error.

    Raises:
        UsageError: what it lists cannot be.
    """
    files = validated(_FileList, summary, path).files
    return {file.name: (file.bytes, file.digest) for file in files[folder]} if folder in files else None


def listed_files(directory: str, folders: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Return name, bytes and digest of every file of a job's output, by its folder."""
    listed: dict[str, list[dict[str, Any]]] = {}
    for folder in folders:
        listed[folder] = []
        for path, _ in all_files(storage.join(directory, folder)):
            size, digest = digest_of(path)
            listed[folder].append({"name": path.rpartition("/")[2], "bytes": size, "digest": digest})
    return listed


def all_files(directory: str) -> list[tuple[str, int]]:
    """Return path and size of all files of a directory, whatever their names are."""
    # A store may have an object in a directory's place.
    return [(path, size) for path, size in storage.list_files(directory, "") if not path.endswith("/")]
