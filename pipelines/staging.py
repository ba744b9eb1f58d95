"""Output directories that appear whole or not at all, and are never overwritten unasked (docs/adr/0003)."""

from __future__ import annotations

import ctypes
import glob
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hushcount.errors import HushcountError, UsageError
from pipelines import modes, storage
from pipelines.store_errors import StorageError, WriteError, line, silent_clients

SUMMARY = "summary.json"
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@contextmanager
def staged(out: str, overwrite: bool) -> Iterator[str]:
    """Yield a directory to write to, and put it in the place of `out` if the block ends without an exception.

    Local: a hidden directory beside `out`, renamed at the end; with `overwrite` the two are exchanged in one step, so
    that at every moment `out` is the old result or the new one; only its owner may read it. Remote stores cannot rename
    a directory: there the files are written in place and `summary.json`, which the block writes last, marks the result
    as complete; what a failing block wrote is deleted, and with `overwrite` so is the old result before the block
    begins, its mark first.

    Raises:
        UsageError: `out` holds something: a result without `overwrite`, or no result of ours at all.
    """
    require_free(out, overwrite)
    if storage.is_remote(out):
        if storage.exists(storage.join(out, SUMMARY)):
            storage.remove(storage.join(out, SUMMARY))
        storage.remove_directory(out)
        try:
            with silent_clients():
                yield out
        except BaseException as error:
            # A store that is away cannot be tidied either; what is left in it carries no mark.
            with suppress(Exception), silent_clients():
                storage.remove_directory(out)
            told = isinstance(error, HushcountError | OSError) and not isinstance(error, WriteError)
            if isinstance(error, Exception) and not told:
                # What clients of stores raise when they lose their connection has no kind in common.
                raise StorageError(
                    f"writing to {out} failed and nothing was released; the input is untouched: {line(error)}"
                ) from error
            raise
        return
    target = Path(out).resolve()
    try:
        modes.make_folder(target.parent)
        partial = target.parent / f".{target.name}.{uuid.uuid4().hex}{storage.PARTIAL}"
        partial.mkdir(mode=0o700)
    except OSError as error:
        raise UsageError(f"cannot write to {target.parent}: {error.strerror}") from None
    try:
        yield str(partial)
        # Not before all of it is there: until then nobody else looks into it.
        modes.share_as_parent(partial)
        _put(partial, target, overwrite)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def sweep(out: str) -> None:
    """Remove what killed jobs left of an output that has no result and that no job writes now."""
    if storage.is_remote(out):
        storage.remove_directory(out)
        return
    target = Path(out)
    for partial in target.parent.glob(f".{glob.escape(target.name)}.*{storage.PARTIAL}"):
        shutil.rmtree(partial)


def require_free(out: str, overwrite: bool, hops: tuple[str, ...] = (), inputs: tuple[str | Path, ...] = ()) -> None:
    """Check before any work that `out` may be written.

    Args:
        out: output directory.
        overwrite: whether a result there may be replaced.
        hops: whose results may be replaced; empty: those of any.
        inputs: files and directories that the job reads; `out` may not be one of them or hold one.

    Raises:
        UsageError: it is a file, holds a result and `overwrite` is not given, holds other things, or meets an input.
    """
    for source in inputs:
        if _meet(out, str(source)):
            raise UsageError(f"output directory {out} is or holds the input {source}: give another")
    marked = storage.exists(storage.join(out, SUMMARY))
    if marked and not overwrite:
        raise UsageError(f"output directory {out} already holds a result: give another, or --overwrite to replace it")
    if marked:
        hop = storage.read_json(storage.join(out, SUMMARY)).get("hop")
        if hops and hop not in hops:
            raise UsageError(f"output directory {out} holds a result of hushcount {hop}: give another directory")
        return
    if storage.is_remote(out):
        if storage.holds_objects(out):
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
    """Return whether an output is an input or holds it, so that to replace the one would destroy the other."""
    if storage.is_remote(out) or storage.is_remote(source):
        return (source.rstrip("/") + "/").startswith(out.rstrip("/") + "/")
    return Path(source).resolve().is_relative_to(Path(out).resolve())


def _put(partial: Path, target: Path, overwrite: bool) -> None:
    """Make `target` what `partial` is; a result that it replaces is left under the name of `partial`.

    Raises:
        UsageError: something appeared at `target` while the job ran; it is left as it is.
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
        # Fails, as a whole, if the target has come to hold anything since it was looked at.
        os.rename(partial, target)
    except OSError as error:
        raise UsageError(f"output directory {target} was taken while the job ran: {error.strerror}") from None


def _exchange(left: Path, right: Path) -> bool:
    """Exchange two directories in one step (Linux renameat2); False where the system cannot."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(left), _AT_FDCWD, os.fsencode(right), _RENAME_EXCHANGE) == 0)
