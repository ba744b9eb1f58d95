"""Copies of outputs at a recipient's: one folder of a batch with its summary, whole and as it was made, or none."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from hushcount.errors import FormatError, HushcountError, UsageError
from hushcount.wire.blocks import Kind
from pipelines.files import storage
from pipelines.files.block_files import SUFFIX, find_files, total_records
from pipelines.handover.file_list import all_files
from pipelines.outputs.counts import SEALED
from pipelines.outputs.received_summary import folder_of, read_summary
from pipelines.outputs.staging import SUMMARY
from pipelines.outputs.summary import HopSummary

_KINDS: dict[str, Kind] = {"reports": SEALED["reports"], "discovery": SEALED["discovery"], "bins": Kind.RELEASED}
_SIGNATURE = f"{SUMMARY}.sig"


@dataclass(frozen=True)
class _Made:
    """What is to be handed on.

    Attributes:
        path: of its summary.
        files: the directory in which its files lie.
        summary: as it was read.
    """

    path: str
    files: str
    summary: HopSummary


def copy_output(source: str, folder: str, target: str) -> None:
    """Copy a folder and then the summary, which marks the copy as complete.

    A batch that does not have the stream is handed on as its summary alone: it says that there is nothing to wait for.
    What an earlier try left is deleted first: it may have had other files.
    """
    made = _read(source)
    wanted = _wanted(made, folder)
    _require_whole(made, folder, wanted)
    delete_copy(target)
    # The copy has the folder of a run too: it is in what was signed.
    here, there = made.files, folder_of(target, made.summary)
    for name, (_, digest) in wanted.items():
        path, copy = storage.join(here, folder, name), storage.join(there, folder, name)
        storage.copy(path, copy)
        if not storage.exists(copy) or _digest(copy) != (digest or _digest(path)):
            raise HushcountError(f"{copy} is not what {path} was when it was written: it was not handed on; restore it")
    if storage.exists(storage.join(here, _SIGNATURE)):
        storage.copy(storage.join(here, _SIGNATURE), storage.join(there, _SIGNATURE))
    storage.copy(made.path, storage.join(target, SUMMARY))


def is_as_made(source: str, folder: str, target: str) -> bool:
    """Return whether a copy is what was handed on: its summary, names and lengths, and what was changed since.

    The summary was written last: a file that is newer than it was written by somebody else, and is read.
    """
    if _bytes(storage.join(source, SUMMARY)) != _bytes(storage.join(target, SUMMARY)):
        return False
    made = _read(source)
    here, there = made.files, folder_of(target, made.summary)
    if _bytes(storage.join(here, _SIGNATURE)) != _bytes(storage.join(there, _SIGNATURE)):
        return False
    wanted, beside = _wanted(made, folder), storage.join(there, folder)
    ((_, _, marked),) = storage.list_dated(target, SUMMARY)
    written = {path: moment for path, _, moment in storage.list_dated(beside, "*")}
    held = {path.rpartition("/")[2]: (path, size) for path, size in all_files(beside)}
    if {name: size for name, (_, size) in held.items()} != {name: size for name, (size, _) in wanted.items()}:
        return False
    newer = [name for name, (path, _) in held.items() if written.get(path, inf) > marked]
    return all(
        _digest(held[name][0]) == (wanted[name][1] or _digest(storage.join(here, folder, name))) for name in newer
    )


def _digest(path: str) -> str:
    return storage.digest_of(path)[1]


def _bytes(path: str) -> bytes | None:
    """Return what is in a small file, or None: it is missing, or nobody of ours wrote one of that length."""
    try:
        return storage.read_bytes(path) if storage.exists(path) else None
    except FormatError:
        return None


def _read(source: str) -> _Made:
    path = storage.join(source, SUMMARY)
    summary = read_summary(path)
    return _Made(path, folder_of(source, summary), summary)


def _wanted(made: _Made, folder: str) -> dict[str, tuple[int, str | None]]:
    """Return bytes and digest of each file that is to be handed on, by name.

    As the summary lists them; where it lists none, as they are, without a digest.
    """
    listed = (made.summary.files or {}).get(folder)
    if listed is not None:
        return {file.name: (file.bytes, file.digest) for file in listed}
    return {name: (size, None) for name, size in _held(made, folder).items()}


def _held(made: _Made, folder: str) -> dict[str, int]:
    listed = storage.list_files(storage.join(made.files, folder), SUFFIX)
    return {path.rpartition("/")[2]: size for path, size in listed}


def _require_whole(made: _Made, folder: str, wanted: dict[str, tuple[int, str | None]]) -> None:
    """Check that a batch has the records that its summary counts, in the files that it lists.

    Raises:
        HushcountError: it has not.
        UsageError: the summary counts no such thing.
    """
    directory = storage.join(made.files, folder)
    records = _records(made.summary, folder, made.path)
    held = total_records(find_files(directory, _KINDS[folder]))
    if held != records:
        raise HushcountError(
            f"the files of {directory} hold {held} records, the batch's summary says {records}: it was not handed on; "
            "restore what is missing, or delete what was added"
        )
    if _held(made, folder) != {name: size for name, (size, _) in wanted.items()}:
        raise HushcountError(f"the files of {directory} are not those that {made.path} lists: restore them")


def _records(summary: HopSummary, folder: str, path: str) -> int:
    """Return how many records of a folder a summary counts; 0 if the batch has no such stream."""
    if folder != "bins":
        return summary.accepted_of(folder)
    if summary.released is None:
        raise UsageError(f"{path} does not say how many bins were released: restore it")
    return summary.released


def delete_copy(directory: str) -> None:
    """Delete a copy, also half of one."""
    # Its mark first: nobody must find half of a batch. The reports last: by them the next call finds what is left.
    for name in (SUMMARY, _SIGNATURE):
        if storage.exists(storage.join(directory, name)):
            storage.remove(storage.join(directory, name))
    storage.remove_directory(directory)
