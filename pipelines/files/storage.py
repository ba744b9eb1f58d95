"""Files by path: local, gs:// or s3://; each appears whole or not at all, and durably where that is asked."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import posixpath
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import IO, Any, cast

from hushcount.errors import UsageError
from hushcount.formats import reading
from hushcount.formats.whole_files import sync
from pipelines.files import disks, permissions
from pipelines.files.storage_errors import StorageError, WriteError, cause, client

_PIECE_BYTES = 1 << 20
_SCHEME = re.compile(r"[a-zA-Z][-a-zA-Z0-9+.]*://")
PARTIAL = ".partial"
"""How the name of a job's hidden directory ends."""
TEMPORARY = ".tmp"
"""How the name of a file ends that is being written; it begins with a dot."""


def is_remote(path: str) -> bool:
    """Return whether a path is in an object store, not in the local file system."""
    return _SCHEME.match(path) is not None


def _stores() -> ModuleType:
    from pipelines.files import stores

    return stores


def join(directory: str, *names: str) -> str:
    """Return the path of a name in a directory; a name may have slashes."""
    if not is_remote(directory):
        return posixpath.join(directory, *names)
    with _stores().asked(directory) as systems:
        return str(systems.join(directory, *names))


def exists(path: str) -> bool:
    """Return whether a file or local directory exists."""
    if not is_remote(path):
        return os.path.exists(path)
    with _stores().asked(path) as systems:
        return bool(systems.exists(path))


def require_directory(directory: str, name: str = "input") -> None:
    """Raise UsageError if a local path is not a directory; a store has no directories."""
    if not is_remote(directory) and not Path(directory).is_dir():
        wrong = "is not a directory" if Path(directory).exists() else "does not exist"
        raise UsageError(f"{name} directory {directory} {wrong}")


def relative(path: str, directory: str) -> str:
    """Return a path below a directory, as it was listed, without the directory."""
    return path[len(directory.rstrip("/")) + 1 :]


def list_files(directory: str, suffix: str) -> list[tuple[str, int]]:
    """Return path and size of a directory's files of that ending, sorted; none if there is no such directory."""
    return sorted((path, size) for path, size, _ in _listed(directory, f"*{suffix}"))


def list_tree(directory: str, pattern: str) -> list[tuple[str, int]]:
    """Return path and size of the files below a directory whose paths there match a pattern such as `*/*.json`, sorted.

    A star matches within one name; without such a directory there are none.
    """
    return [(path, size) for path, size, _ in list_dated(directory, pattern)]


def list_dated(directory: str, pattern: str) -> list[tuple[str, int, float]]:
    """Return what `list_tree` does, and when each file was written last, in seconds since 1970, by its store's clock.

    No file is asked for: all of this stands in the listing.
    """
    depth = len(directory.rstrip("/").split("/")) + len(pattern.split("/"))
    # What a star matches differs from store to store.
    return sorted(found for found in _listed(directory, pattern) if len(found[0].split("/")) == depth)


def list_from(directory: str, depth: int, first: Callable[[str], str]) -> Iterator[tuple[str, int, float]]:
    """Yield all files below the folders so deep below a directory, as `list_dated`, but for early names in these.

    `first` returns the first name that is wanted in a folder, by its path; earlier ones may be yielded all the same.
    """
    yield from (_stores().listed_from if is_remote(directory) else disks.listed_from)(directory, depth, first)


def _listed(directory: str, pattern: str) -> Iterator[tuple[str, int, float]]:
    yield from (_stores().listed if is_remote(directory) else disks.listed)(directory, pattern)


def store_time(path: str) -> datetime | None:
    """Return the present by the clock of the store that a path is in; None: a disk, which has this machine's clock.

    Raises:
        StorageError: the store cannot be reached.
    """
    if not is_remote(path):
        return None
    told: datetime | None = _stores().date_of(path)
    return told


def open_read(path: str) -> IO[bytes]:
    """Open a file as it is, without decompressing by its name.

    Raises:
        OSError: it is missing, may not be read, or is local and not a regular file.
        StorageError: a store's client failed in some other way.
        UsageError: its store cannot be reached.
    """
    if not is_remote(path):
        return reading.open_regular(Path(path))
    with client(path):
        return cast(IO[bytes], _stores().opened(path))


def read_bytes(path: str, most: int = reading.RECORD_BYTES) -> bytes:
    """Return what is in a file; raises as `open_read`, and FormatError if it is longer than `most` bytes."""
    with open_read(path) as stream, client(path):
        return reading.take(stream, most, path)


def read_if_there(path: str, most: int = reading.RECORD_BYTES) -> bytes | None:
    """Return what is in a file, or None if there is none; raises as `read_bytes`."""
    try:
        if not is_remote(path):
            return read_bytes(path, most)
        with client(path):
            stream: IO[bytes] | None = _stores().opened_if_there(path)
            if stream is None:
                return None
            with stream:
                return reading.take(stream, most, path)
    except FileNotFoundError:
        return None


def digest_of(path: str) -> tuple[int, str]:
    """Return the length of a file and the BLAKE2b-256 of its bytes, in hexadecimal digits; raises as `open_read`."""
    digest, size = hashlib.blake2b(digest_size=32), 0
    with open_read(path) as stream:
        for piece in _pieces(path, stream):
            digest.update(piece)
            size += len(piece)
    return size, digest.hexdigest()


def write_whole(path: str, parts: Iterable[bytes | memoryview]) -> None:
    """Write a file under a temporary name and rename it when it is complete; a full disk leaves no half file."""
    directory, name = posixpath.split(path)
    make_directory(directory)
    temporary = join(directory, f".{name}.{uuid.uuid4().hex}{TEMPORARY}")
    try:
        with client(path, "write", WriteError):
            with _stores().created(temporary) if is_remote(path) else permissions.new_file(temporary) as stream:
                for part in parts:
                    stream.write(part)
            rename(temporary, path)
    except BaseException:
        # A store that is away fails here again; the first failure is what counts.
        with suppress(Exception):
            if exists(temporary):
                remove(temporary)
        raise


def put_absent(path: str, data: bytes) -> bool:
    """Write a file unless its name is taken, in one step; return whether this call wrote it. It is durable then.

    If the answer of a store is lost, or a network file system's, the file may be this call's though False is returned,
    or an exception raised: who puts an id into it can read whose it is.

    Raises:
        UsageError: the file system has no hard links, or the store no such request.
        StorageError: the store failed.
        OSError: the file system failed.
    """
    if is_remote(path):
        return bool(_stores().put_absent(path, data))
    return disks.put_absent(path, data)


def copy(source: str, target: str) -> None:
    """Copy one file from or to a store; raises as `open_read`."""
    with open_read(source) as stream:
        write_whole(target, _pieces(source, stream))


def _pieces(path: str, stream: IO[bytes]) -> Iterator[bytes]:
    with client(path):
        while piece := stream.read(_PIECE_BYTES):
            yield piece


def make_directory(path: str) -> None:
    """Make a directory with its parents where the file system has directories.

    Raises:
        StorageError: it lies in the hidden directory of a job that was stopped, which is gone: a worker that still runs
            must not make it again.
    """
    if path and not is_remote(path) and not exists(path):
        hidden = [parent for parent in (Path(path), *Path(path).parents) if parent.name.endswith(PARTIAL)]
        if hidden and not hidden[0].is_dir():
            raise StorageError(f"{hidden[0]} is gone: the job was stopped")
        permissions.make_folder(path)


def read_json(path: str, most: int = reading.RECORD_BYTES) -> dict[str, Any]:
    """Read a JSON object that one of our jobs wrote, or another party put in its place.

    Raises:
        UsageError: missing, longer than `most` bytes, or not a JSON object.
    """
    try:
        raw = read_bytes(path, most)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {cause(error)}") from None
    return reading.parse_object(raw, path)


def write_json(path: str, data: dict[str, Any], most: int = reading.RECORD_BYTES) -> None:
    """Write a JSON object, which `read_json` with the same limit can read.

    Raises:
        StorageError: it would be longer than `most` bytes; nothing is written.
    """
    raw = json_bytes(data)
    if len(raw) > most:
        raise StorageError(f"{path} would have {len(raw):,} bytes, must have at most {most:,}: not written")
    write_whole(path, [raw])


def json_bytes(data: dict[str, Any]) -> bytes:
    """Return a JSON object as `write_json` writes it."""
    return json.dumps(data, indent=2, ensure_ascii=False).encode() + b"\n"


def rename(source: str, target: str) -> None:
    """Rename a file in one step; a file that had the new name is replaced."""
    with client(target, "write", WriteError):
        if is_remote(target):
            _stores().reached(target).rename([source], [target])
        else:
            os.replace(source, target)


def remove(path: str) -> None:
    """Delete one file; one that is gone is no failure, as in a store: another process may delete the same."""
    with client(path, "delete"):
        if is_remote(path):
            _stores().delete(path)
        else:
            Path(path).unlink(missing_ok=True)


def remove_directory(path: str) -> None:
    """Delete a directory and all in it; in a store, all objects whose names begin with it. Raises as `remove`."""
    if is_remote(path):
        if holds_objects(path):
            with client(path, "delete"):
                _stores().delete(path.rstrip("/") + "/")
    elif exists(path):
        disks.remove_tree(path)


def remove_empty(path: str) -> None:
    """Delete a local directory if nothing is in it; a store has no directories."""
    if not is_remote(path):
        with suppress(OSError):
            os.rmdir(path)


def list_objects(path: str) -> list[str]:
    """Return the files below a local directory, or the objects of a store whose names begin with it, sorted."""
    return sorted(file for file, _, _ in _listed(path, "**"))


def holds_objects(path: str) -> bool:
    """Return whether a store has objects whose names begin with this directory."""
    return any(_stores().listed(path, "**", 1))


def write_durably(root: str, path: str, parts: Iterable[bytes]) -> None:
    """Write a file under a root and return when it is durable: a store answers then, a local disk needs syncs."""
    write_whole(path, parts)
    if not is_remote(path):
        between = [folder for folder in Path(path).parents if folder.is_relative_to(Path(root).parent)]
        for name in (Path(path), *between):
            sync(name)


def probe(folder: str) -> None:
    """Raise if a folder of the store cannot be reached or, if it is local, cannot be written."""
    if is_remote(folder):
        holds_objects(folder)
        return
    nearest = next(path for path in (Path(folder), *Path(folder).absolute().parents) if path.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
