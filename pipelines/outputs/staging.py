"""Output directories that appear whole or not at all, and are never overwritten unasked (docs/adr/0003)."""

from __future__ import annotations

import ctypes
import glob
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from hushcount.errors import HushcountError, UsageError
from pipelines.files import permissions, storage
from pipelines.files.storage_errors import StorageError, WriteError, line, silent_clients
from pipelines.outputs.summary import RUN_FOLDER, HopSummary

SUMMARY = "summary.json"
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def _nobody_else() -> None:
    """Where somebody works by hand there is no lock that could be lost."""


def _unique(token: int) -> str:
    return f"{token:010d}-{secrets.token_hex(8)}"


@dataclass(frozen=True)
class Writer:
    """Who writes an output.

    Attributes:
        token: of a run (docs/adr/0024); 0: somebody by hand.
        prove: raises LostLock if another run has taken over.
        folder: name of the folder in the output, where it is not a new one: of a job that has run elsewhere.
    """

    token: int = 0
    prove: Callable[[], None] = _nobody_else
    folder: str | None = None

    def new_folder(self) -> str:
        """Return the name of a folder that no other writer has."""
        return self.folder or _unique(self.token)


BY_HAND = Writer()


@contextmanager
def staged(out: str, overwrite: bool, writer: Writer = BY_HAND) -> Iterator[str]:
    """Yield a directory to write to, and put it in the place of `out` if the block ends without an exception.

    The block writes a summary.json with `write_summary`, last. Local: a hidden directory beside `out`, renamed at the
    end; with `overwrite` the two are exchanged in one step, so that at every moment `out` is the old result or the new
    one; only its owner may read it. Remote stores cannot rename a directory: there it is a folder of this writer in
    `out`, and its summary, which names the folder, is moved to `out` at the end and in one piece. So a second writer
    does no harm. What a failing block wrote is deleted, and with `overwrite` what is replaced, once it is.

    Raises:
        UsageError: `out` holds something: a result without `overwrite`, or no result of ours at all.
        LostLock: another run has taken over.
    """
    require_free(out, overwrite, writer=writer)
    if storage.is_remote(out):
        replaced, directory = _replaced(out), storage.join(out, writer.new_folder())
        try:
            with silent_clients():
                yield directory
                writer.prove()
                _mark(directory, out)
                for path in replaced:
                    storage.remove(path)
        except BaseException as error:
            # A store that is away cannot be tidied either; what is left in it carries no mark. Unless the mark was
            # written and only the answer lost: then it must keep what it names.
            with suppress(Exception), silent_clients():
                if named_folder(out) != directory.rpartition("/")[2]:
                    storage.remove_directory(directory)
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
        permissions.make_folder(target.parent)
        partial = target.parent / f".{target.name}.{_unique(writer.token)}{storage.PARTIAL}"
        partial.mkdir(mode=0o700)
    except OSError as error:
        raise UsageError(f"cannot write to {target.parent}: {error.strerror}") from None
    try:
        made = partial if writer.folder is None else partial / writer.folder
        made.mkdir(mode=0o700, exist_ok=True)
        yield str(made)
        if made != partial:
            _mark(str(made), str(partial))
        writer.prove()
        # Not before all of it is there: until then nobody else looks into it.
        permissions.share_as_parent(partial)
        _put(partial, target, overwrite)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_summary(directory: str, summary: HopSummary) -> HopSummary:
    """Write the summary of what lies in a directory of `staged`, and return it as written."""
    summary = placed(directory, summary)
    storage.write_json(storage.join(directory, SUMMARY), summary.data())
    return summary


def placed(directory: str, summary: HopSummary) -> HopSummary:
    """Return a summary that names the folder of the run, if the directory is one."""
    name = directory.rpartition("/")[2]
    return replace(summary, folder=name) if re.fullmatch(RUN_FOLDER, name) else summary


def named_folder(out: str) -> str | None:
    """Return the folder that the mark of an output names; None: there is no mark, or its files lie beside it."""
    mark = storage.join(out, SUMMARY)
    named = storage.read_json(mark).get("folder") if storage.exists(mark) else None
    return named if isinstance(named, str) and re.fullmatch(RUN_FOLDER, named) else None


def _mark(directory: str, out: str) -> None:
    """Move the summary of a folder to its output, in one piece: from now on it is complete."""
    storage.rename(storage.join(directory, SUMMARY), storage.join(out, SUMMARY))


def _replaced(out: str) -> list[str]:
    """Return the objects of the result in a store that is to be replaced, without its mark."""
    if not storage.exists(storage.join(out, SUMMARY)):
        return []
    named, mark = named_folder(out), storage.join(out, SUMMARY)
    return [path for path in storage.list_objects(out) if path != mark and _folder_of(path, out) == named]


def _folder_of(path: str, out: str) -> str | None:
    """Return the folder of a run in which an object of an output lies; None: in none."""
    name = storage.relative(path, out).partition("/")[0]
    return name if re.fullmatch(RUN_FOLDER, name) else None


def folders_of_runs(out: str) -> list[str]:
    """Return the folders of runs that an output in a store has, also of those that came to no summary."""
    if not storage.is_remote(out):
        return []
    names = {_folder_of(path, out) for path in storage.list_objects(out)}
    return [storage.join(out, name) for name in sorted(name for name in names if name is not None)]


def _token(folder: str) -> int:
    """Return the token in the name of a folder of a run."""
    return int(folder.partition("-")[0])


def sweep(out: str, writer: Writer) -> None:
    """Remove what killed jobs left of an output.

    In a store, the folders of runs with a smaller token that came to no summary: who has one may be about to make it
    the mark, having proved its lock before this run took it.
    """
    if storage.is_remote(out):
        paths = storage.list_objects(out)
        # After the listing: a summary that is not where it was listed is the mark by now.
        keep = {named_folder(out), *(_folder_of(path, out) for path in paths if path.endswith(f"/{SUMMARY}"))}
        for folder in {_folder_of(path, out) for path in paths} - keep:
            if folder is not None and _token(folder) < writer.token:
                storage.remove_directory(storage.join(out, folder))
        return
    target = Path(out)
    for partial in target.parent.glob(f".{glob.escape(target.name)}.*{storage.PARTIAL}"):
        name = partial.name[len(target.name) + 2 : -len(storage.PARTIAL)]
        # What a later run makes is left to it.
        if re.fullmatch(RUN_FOLDER, name) is None or _token(name) <= writer.token:
            shutil.rmtree(partial)


def require_free(
    out: str,
    overwrite: bool,
    hops: tuple[str, ...] = (),
    inputs: tuple[str | Path, ...] = (),
    writer: Writer = BY_HAND,
) -> None:
    """Check before any work that `out` may be written.

    Args:
        out: output directory.
        overwrite: whether a result there may be replaced.
        hops: whose results may be replaced; empty: those of any.
        inputs: files and directories that the job reads; `out` may not be one of them or hold one.
        writer: who is to write; a run may find folders of other runs in a store, which it does not touch.

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
        if any(not writer.token or _folder_of(path, out) is None for path in storage.list_objects(out)):
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
