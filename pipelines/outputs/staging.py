"""Output directories that appear whole or not at all, and are never overwritten unasked (docs/adr/0003)."""

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
    """Who writes an output.

    Attributes:
        private: whether nobody else reads the directory: it is written in place, and whoever finds its summary finds
            all of it.
        batch: name of the batch; empty: the last name of the output.
        folder: in an output in a store: name of the folder that a job elsewhere has written; None: a new one.
    """

    private: bool = False
    batch: str = ""
    folder: str | None = None

    def new_folder(self) -> str:
        """Return the name of a folder that no other writer has."""
        return self.folder or new_folder()


BY_HAND = Writer()


def new_folder() -> str:
    """Return a name that no folder had before."""
    return secrets.token_hex(8)


@dataclass(frozen=True)
class Output:
    """Where a result goes.

    Attributes:
        out: output directory.
        overwrite: whether a result there may be replaced.
        writer: who writes it.
        signer: key that signs what the next party reads; None: unsigned.
    """

    out: str
    overwrite: bool = False
    writer: Writer = BY_HAND
    signer: KeyReference | None = None


@contextmanager
def staged(out: str, overwrite: bool, writer: Writer = BY_HAND) -> Iterator[str]:
    """Yield a directory to write to; it becomes `out` if the block ends without an exception, and is deleted otherwise.

    The block calls `write_summary` last. Local: a hidden directory beside `out`, for its owner only, renamed at the
    end; with `overwrite` the two are exchanged in one step, so that at every moment `out` is the old result or the new
    one. Remote stores cannot rename a directory: there it is a folder of this writer in `out`, and its summary, which
    names the folder, is moved to `out` at the end and in one piece. So a second writer does no harm.

    Raises:
        UsageError: `out` holds something: a result without `overwrite`, or no result of ours at all.
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
            # In a store that cannot be reached files are left without a mark. If the mark was written and only the
            # answer was lost, the files that it names must stay.
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
        # Whoever is told to end as soon as it is there removes it too.
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
        # Nobody else may look into it until it is complete.
        permissions.share_as_parent(partial)
        _put(partial, target, overwrite)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_summary(directory: str, summary: HopSummary) -> HopSummary:
    """Write the summary into a directory of `staged`, and return it as written."""
    summary = placed(directory, summary)
    storage.write_json(storage.join(directory, SUMMARY), summary.data())
    return summary


def placed(directory: str, summary: HopSummary) -> HopSummary:
    """Return a summary that names the folder of the run, if the directory is one."""
    name = directory.rpartition("/")[2]
    return replace(summary, folder=name) if re.fullmatch(RUN_FOLDER, name) else summary


def named_folder(out: str) -> str | None:
    """Return the folder that the summary of an output names; None: there is no summary, or it names none."""
    mark = storage.join(out, SUMMARY)
    named = storage.read_json(mark).get("folder") if storage.exists(mark) else None
    return named if isinstance(named, str) and re.fullmatch(RUN_FOLDER, named) else None


def _mark(directory: str, out: str) -> None:
    """Move the summary of a folder to its output, in one piece: from now on it is complete."""
    storage.rename(storage.join(directory, SUMMARY), storage.join(out, SUMMARY))


def _replaced(out: str) -> list[str]:
    """Return the objects of the present result in a store, without its summary."""
    mark = storage.join(out, SUMMARY)
    if not storage.exists(mark):
        return []
    named = named_folder(out)
    return [path for path in storage.list_objects(out) if path != mark and _folder_of(path, out) == named]


def _folder_of(path: str, out: str) -> str | None:
    """Return the folder of a run that has an object of an output, or None."""
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
        inputs: files and directories that the job reads; `out` may not be one of them or contain one.

    Raises:
        UsageError: it is a file, a result without `overwrite`, or a directory of other files, or it contains an input.
    """
    for source in inputs:
        if source is not None and _meet(out, str(source)):
            raise UsageError(f"output directory {out} is or holds the input {source}: give another")
    marked = storage.exists(storage.join(out, SUMMARY))
    if marked and not overwrite:
        raise UsageError(f"output directory {out} already holds a result: give another, or --overwrite to replace it")
    if marked:
        hop = storage.read_json(storage.join(out, SUMMARY)).get("hop")
        if hops and hop not in hops:
            raise UsageError(f"output directory {out} holds a result of hushcount job {hop}: give another directory")
        return
    if storage.is_remote(out):
        if storage.list_objects(out):
            raise UsageError(
                f"output directory {out} holds objects that are no complete result: see that no job still writes "
                "there, then remove them"
            )
        return
    path = Path(out)
    if path.is_dir() and any(path.iterdir()):
        raise UsageError(f"output directory {out} holds files that are no result of ours: give another directory")
    if path.exists() and not path.is_dir():
        raise UsageError(f"output directory {out} is a file: give another name")


def _meet(out: str, source: str) -> bool:
    """Return whether an output is an input or contains it: to replace the output would destroy the input."""
    if storage.is_remote(out) or storage.is_remote(source):
        return (source.rstrip("/") + "/").startswith(out.rstrip("/") + "/")
    return Path(source).resolve().is_relative_to(Path(out).resolve())


def _put(partial: Path, target: Path, overwrite: bool) -> None:
    """Rename `partial` to `target`; UsageError if something appeared there while the job ran.

    A replaced result is left under the name of `partial`.
    """
    require_free(str(target), overwrite)
    if overwrite and target.exists() and any(target.iterdir()):
        if not _exchange(partial, target):
            # No exchange on this system: for the moment between two renames there is no target.
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
        # Fails, as a whole, if another process has put anything into the target since the look at it.
        os.rename(partial, target)
    except OSError as error:
        raise UsageError(f"output directory {target} was taken while the job ran: {error.strerror}") from None


def _exchange(left: Path, right: Path) -> bool:
    """Exchange two directories in one step (Linux renameat2); False where the system cannot."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(left), _AT_FDCWD, os.fsencode(right), _RENAME_EXCHANGE) == 0)
