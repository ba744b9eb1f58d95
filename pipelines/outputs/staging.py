"""Make output directories appear whole or not at all, and overwrite them only on request (docs/adr/0003)."""

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
        private: whether no other party reads the output. The files of a private output are written directly to `out`,
            and the output is complete once its summary exists.
        batch: name of the batch; empty: the last part of the output's path is the name.
        folder: name of the folder in `out`, in which a job elsewhere has written the files; None: a new name, if one is
            needed.
    """

    private: bool = False
    batch: str = ""
    folder: str | None = None

    def new_folder(self) -> str:
        """Return the name of the writer's folder, which no other writer uses."""
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
        overwrite: whether a result in `out` may be replaced.
        writer: the writer of the result.
        signer: key that signs the files for the next party; None: unsigned.
    """

    out: str
    overwrite: bool = False
    writer: Writer = BY_HAND
    signer: KeyReference | None = None


@contextmanager
def staged(out: str, overwrite: bool, writer: Writer = BY_HAND) -> Iterator[str]:
    """Yield a directory to write to, which becomes `out` if the block ends without an exception, and else is deleted.

    The block must call `write_summary` last. If `out` is local, the directory is a hidden one beside `out`, readable by
    its owner only, and is renamed to `out` at the end. With `overwrite`, the directory and `out` are exchanged in one
    step, so that `out` is always the whole old or the whole new result. Stores cannot rename a directory. If `out` is
    in a store, the directory is a folder in `out`, which only this writer uses. At the end the folder's summary, which
    names the folder, is moved to `out` in one step. Because each writer has a folder of its own, a second writer at the
    same time does no harm.

    Raises:
        UsageError: `out` holds a result and `overwrite` is false, or `out` holds other files.
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
            # Remove the folder unless the summary in `out` names the folder. If it does, the summary was moved, and
            # only the store's answer was lost. If the store is out of reach, the folder cannot be removed, but `out`
            # has no summary that names it.
            with suppress(Exception), silent_clients():
                if named_folder(out) != directory.rpartition("/")[2]:
                    storage.remove_directory(directory)
            clear = isinstance(error, HushcountError | OSError) and not isinstance(error, WriteError)
            if isinstance(error, Exception) and not clear:
                # Every other exception becomes a StorageError, because the exceptions of stores' clients have no common
                # class.
                raise StorageError(
                    f"writing to {out} failed and nothing was released; the input is untouched: {line(error)}"
                ) from error
            raise
        return
    target = Path(out).resolve()
    partial = target.parent / f".{target.name}.{new_folder()}{storage.PARTIAL}"
    try:
        # The mkdir is inside the outer `try`, so that a process which is told to end right after it still removes the
        # directory.
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
        # Set the mode only now, because nobody else may read the directory until it is complete.
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
    """Return the summary; if the directory is the folder of a run, add the folder's name to the summary."""
    name = directory.rpartition("/")[2]
    return replace(summary, folder=name) if re.fullmatch(RUN_FOLDER, name) else summary


def named_folder(out: str) -> str | None:
    """Return the folder that an output's summary names; None: there is no summary, or it names no folder."""
    mark = storage.join(out, SUMMARY)
    named = storage.read_json(mark).get("folder") if storage.exists(mark) else None
    return named if isinstance(named, str) and re.fullmatch(RUN_FOLDER, named) else None


def _mark(directory: str, out: str) -> None:
    """Move the summary from its folder to the output `out` in one step; after this the output is complete."""
    storage.rename(storage.join(directory, SUMMARY), storage.join(out, SUMMARY))


def _replaced(out: str) -> list[str]:
    """Return the objects of the present result in a store, without the object of its summary."""
    mark = storage.join(out, SUMMARY)
    if not storage.exists(mark):
        return []
    named = named_folder(out)
    return [path for path in storage.list_objects(out) if path != mark and _folder_of(path, out) == named]


def _folder_of(path: str, out: str) -> str | None:
    """Return the folder of a run in which an object of an output lies; None: the object is in no such folder."""
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
        overwrite: whether a result in `out` may be replaced.
        hops: hops whose results may be replaced; empty: the results of all hops.
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
    """Return whether an output is or contains an input, because to replace the output would destroy the input."""
    if storage.is_remote(out) or storage.is_remote(source):
        return (source.rstrip("/") + "/").startswith(out.rstrip("/") + "/")
    return Path(source).resolve().is_relative_to(Path(out).resolve())


def _put(partial: Path, target: Path, overwrite: bool) -> None:
    """Rename `partial` to `target`; raises UsageError if another process put files there while the job ran.

    If `partial` and `target` were exchanged, the old result has the name `partial` afterwards.
    """
    require_free(str(target), overwrite)
    if overwrite and target.exists() and any(target.iterdir()):
        if not _exchange(partial, target):
            # This system cannot exchange directories, so there is no target for a short time between two renames.
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
        # If another process has put anything into the target since the check, the rename fails and changes nothing.
        os.rename(partial, target)
    except OSError as error:
        raise UsageError(f"output directory {target} was taken while the job ran: {error.strerror}") from None


def _exchange(left: Path, right: Path) -> bool:
    """Exchange two directories in one step (Linux renameat2); return False if the system cannot do this."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(left), _AT_FDCWD, os.fsencode(right), _RENAME_EXCHANGE) == 0)
