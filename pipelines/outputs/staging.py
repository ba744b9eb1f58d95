"""Output directories that appear whole or not at all, and are overwritten only on request (docs/adr/0003)."""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hushcount.errors import HushcountError, UsageError
from pipelines.files import permissions, storage
from pipelines.files.storage_errors import StorageError, WriteError, line, silent_clients
from pipelines.outputs.summary import RUN_FOLDER, HopSummary

if TYPE_CHECKING:
    from keys.directories import KeyReference

SUMMARY = "summary.json"
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@dataclass(frozen=True)
class Writer:
    """The writer of an output.

    Attributes:
        private: whether no other party reads the directory. A private directory is written in place, and is complete
            once its summary exists.
        batch: name of the batch; empty: the last part of the output's path.
        folder: name of the folder that a job elsewhere has written, for an output in a store; None: a new folder.
    """

    private: bool = False
    batch: str = ""
    folder: str | None = None

    def new_folder(self) -> str:
        """Return the name of a folder that no other writer has."""
        return self.folder or new_folder()


BY_HAND = Writer()


def new_folder() -> str:
    """Return a random name, which no folder had before."""
    return secrets.token_hex(8)


@dataclass(frozen=True)
class Output:
    """Where a result goes.

    Attributes:
        out: output directory.
        overwrite: whether a result there may be replaced.
        writer: the writer of the result.
        signer: key that signs the files for the next party; None: unsigned.
    """

    out: str
    overwrite: bool = False
    writer: Writer = BY_HAND
    signer: KeyReference | None = None


@contextmanager
def staged(out: str, overwrite: bool, writer: Writer = BY_HAND) -> Iterator[str]:
    """Yield a directory to write to; it becomes `out` if the block ends without an exception, and is deleted otherwise.

    The block calls `write_summary` last. Local: the directory is hidden, beside `out`, readable by its owner only, and
    renamed at the end. With `overwrite` the two are exchanged in one step, so that `out` is always the whole old or the
    whole new result. Stores cannot rename a directory: there the directory is a folder of this writer in `out`. At the
    end its summary, which names the folder, is moved to `out` in one step. So a second writer does no harm.

    Raises:
        UsageError: `out` holds a result and `overwrite` is false, or it holds other files.
    """
    require_free(out, overwrite)
    if writer.private:
        storage.make_directory(out)
        yield out
        return
    if storage.is_remote(out):
        replaced, directory = _replaced(out), storage.join(out, writer.new_folder())
        try:
            with silent_clients():
                yield directory
                _mark(directory, out)
                for path in replaced:
                    storage.remove(path)
        except BaseException as error:
            # If the store is out of reach, the files stay, but without a summary in `out`. If the summary was moved and
            # only the store's answer was lost, the files that it names must stay.
            with suppress(Exception), silent_clients():
                if named_folder(out) != directory.rpartition("/")[2]:
                    storage.remove_directory(directory)
            clear = isinstance(error, HushcountError | OSError) and not isinstance(error, WriteError)
            if isinstance(error, Exception) and not clear:
                # Exceptions of stores' clients have no common class.
                raise StorageError(
                    f"writing to {out} failed and nothing was released; the input is untouched: {line(error)}"
                ) from error
            raise
        return
    target = Path(out).resolve()
    partial = target.parent / f".{target.name}.{new_folder()}{storage.PARTIAL}"
    try:
        # Inside the outer `try`: a process that is told to end right after the mkdir still removes the directory.
        try:
            permissions.make_folder(target.parent)
            partial.mkdir(mode=0o700)
        except OSError as error:
            raise UsageError(f"cannot write to {target.parent}: {error.strerror}") from None
        made = partial if writer.folder is None else partial / writer.folder
        made.mkdir(mode=0o700, exist_ok=True)
        yield str(made)
        if made != partial:
            _mark(str(made), str(partial))
        # Nobody else may read the directory until it is complete.
        permissions.share_as_parent(partial)
        _put(partial, target, overwrite)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_summary(directory: str, summary: HopSummary) -> HopSummary:
    """Write the summary into a directory of `staged`, and return the summary as written."""
    summary = placed(directory, summary)
    storage.write_json(storage.join(directory, SUMMARY), summary.data())
    return summary


def placed(directory: str, summary: HopSummary) -> HopSummary:
    """Return the summary; if the directory is the folder of a run, the summary names it."""
    name = directory.rpartition("/")[2]
    return replace(summary, folder=name) if re.fullmatch(RUN_FOLDER, name) else summary


def named_folder(out: str) -> str | None:
    """Return the folder that an output's summary names; None: there is no summary, or it names no folder."""
    mark = storage.join(out, SUMMARY)
    named = storage.read_json(mark).get("folder") if storage.exists(mark) else None
    return named if isinstance(named, str) and re.fullmatch(RUN_FOLDER, named) else None


def _mark(directory: str, out: str) -> None:
    """Move the summary of a folder to its output in one step; the output is then complete."""
    storage.rename(storage.join(directory, SUMMARY), storage.join(out, SUMMARY))


def _replaced(out: str) -> list[str]:
    """Return the objects of the present result in a store, without its summary."""
    mark = storage.join(out, SUMMARY)
    if not storage.exists(mark):
        return []
    named = named_folder(out)
    return [path for path in storage.list_objects(out) if path != mark and _folder_of(path, out) == named]


def _folder_of(path: str, out: str) -> str | None:
    """Return the folder of a run that an object of an output lies in, or None."""
    name = storage.relative(path, out).partition("/")[0]
    return name if re.fullmatch(RUN_FOLDER, name) else None


def require_free(
    out: str,
    overwrite: bool,
    hops: tuple[str, ...] = (),
    inputs: Iterable[str | Path | None] = (),
) -> None:
    """Check before any work that `out` may be written.

    Args:
        out: output directory.
        overwrite: whether a result there may be replaced.
        hops: hops with results that may be replaced; empty: all.
        inputs: files and directories that the job reads; `out` must neither be nor contain an input.

    Raises:
        UsageError: `out` is a file, contains an input, holds a result and `overwrite` is false, or holds other files.
    """
    for source in inputs:
        if source is not None and _meet(out, str(source)):
            raise UsageError(f"output directory {out} is or contains the input {source}: give another directory")
    marked = storage.exists(storage.join(out, SUMMARY))
    if marked and not overwrite:
        raise UsageError(
            f"output directory {out} already holds a result: give another directory, or --overwrite to replace it"
        )
    if marked:
        hop = storage.read_json(storage.join(out, SUMMARY)).get("hop")
        if hops and hop not in hops:
            raise UsageError(f"output directory {out} holds a result of hushcount job {hop}: give another directory")
        return
    if storage.is_remote(out):
        if storage.list_objects(out):
            raise UsageError(
                f"output directory {out} holds objects without a complete result: check that no job still writes "
                "there, then remove the objects"
            )
        return
    path = Path(out)
    if path.is_dir() and any(path.iterdir()):
        raise UsageError(f"output directory {out} holds files that are not a result of a job: give another directory")
    if path.exists() and not path.is_dir():
        raise UsageError(f"output directory {out} is a file: give another name")


def _meet(out: str, source: str) -> bool:
    """Return whether an output is or contains an input: a replaced output would destroy the input."""
    if storage.is_remote(out) or storage.is_remote(source):
        return (source.rstrip("/") + "/").startswith(out.rstrip("/") + "/")
    return Path(source).resolve().is_relative_to(Path(out).resolve())


def _put(partial: Path, target: Path, overwrite: bool) -> None:
    """Rename `partial` to `target`; raises UsageError if another process put files there while the job ran.

    If the two were exchanged, the old result is left under the name of `partial`.
    """
    require_free(str(target), overwrite)
    if overwrite and target.exists() and any(target.iterdir()):
        if not _exchange(partial, target):
            # This system cannot exchange directories: between the two renames there is briefly no target.
            aside = partial.with_suffix(".old")
            os.rename(target, aside)
            try:
                os.rename(partial, target)
            except OSError:
                os.rename(aside, target)
                raise
            shutil.rmtree(aside)
        return
    try:
        # The rename fails, and changes nothing, if another process has put anything into the target since the check.
        os.rename(partial, target)
    except OSError as error:
        raise UsageError(f"output directory {target} was taken while the job ran: {error.strerror}") from None


def _exchange(left: Path, right: Path) -> bool:
    """Exchange two directories in one step (Linux renameat2); return False if the system cannot."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(left), _AT_FDCWD, os.fsencode(right), _RENAME_EXCHANGE) == 0)
