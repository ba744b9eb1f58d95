"""Read, write, list and delete files by path: local, gs:// or s3://.

A new file appears whole or not at all. Some functions also make a new file durable.
"""

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
"""Ending of the name of a job's hidden directory."""
TEMPORARY = ".tmp"
"""Ending of the name of a file that is being written; such a name begins with a dot."""


def is_remote(path: str) -> bool:
    """Return whether a path is in an object store, not in the local file system."""
    return _SCHEME.match(path) is not None


def _stores() -> ModuleType:
    from pipelines.files import stores

    return stores


def join(directory: str, *names: str) -> str:
    """Return the path of names below each other in a directory; a name may contain slashes."""
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
    """Return a listed path relative to the directory that was listed."""
    return path[len(directory.rstrip("/")) + 1 :]


def list_files(directory: str, suffix: str) -> list[tuple[str, int]]:
    """Return path and size of a directory's files that end in `suffix`, sorted; [] if the directory does not exist."""
    return sorted((path, size) for path, size, _ in _listed(directory, f"*{suffix}"))


def list_tree(directory: str, pattern: str) -> list[tuple[str, int]]:
    """Return path and size, sorted, of the files below a directory that match a pattern such as `*/*.json`.

    A star in the pattern does not match a slash. The list is empty if the directory does not exist.
    """
    return [(path, size) for path, size, _ in list_dated(directory, pattern)]


def list_dated(directory: str, pattern: str) -> list[tuple[str, int, float]]:
    """Return what `list_tree` returns, with each file's last write time by its store's clock, in seconds since 1970.

    The times come with the list of files, so no request for a single file is made.
    """
    depth = len(directory.rstrip("/").split("/")) + len(pattern.split("/"))
    # In some stores a star also matches a slash, so the number of slashes in the names is checked.
    return sorted(found for found in _listed(directory, pattern) if len(found[0].split("/")) == depth)


def list_from(directory: str, depth: int, first: Callable[[str], str]) -> Iterator[tuple[str, int, float]]:
    """Yield path, size and time, as `list_dated`, of all files below each folder at `depth` below a directory.

    `first` takes the relative path of a folder at `depth` and returns the first wanted name in the folder; names before
    that name may be left out.
    """
    yield from (_stores().listed_from if is_remote(directory) else disks.listed_from)(directory, depth, first)


def _listed(directory: str, pattern: str) -> Iterator[tuple[str, int, float]]:
    yield from (_stores().listed if is_remote(directory) else disks.listed)(directory, pattern)


def store_time(path: str) -> datetime | None:
    """Return the time by the clock of a path's store; None: the path is on a disk, or the store states no time.

    Raises:
        StorageError: the store cannot be reached.
    """
    if not is_remote(path):
        return None
    told: datetime | None = _stores().date_of(path)
    return told


def open_read(path: str) -> IO[bytes]:
    """Open a file to read its bytes as stored: no ending of a name causes decompression.

    Raises:
        OSError: the file is missing or may not be read, or a local path is not a regular file.
        StorageError: a store's client failed in some other way.
        UsageError: the file's store cannot be reached.
    """
    if not is_remote(path):
        return reading.open_regular(Path(path))
    with client(path):
        return cast(IO[bytes], _stores().opened(path))


def read_bytes(path: str, most: int = reading.RECORD_BYTES) -> bytes:
    """Return the content of a file; raises as `open_read`, and FormatError if it is longer than `most` bytes."""
    with open_read(path) as stream, client(path):
        return reading.take(stream, most, path)


def read_if_there(path: str, most: int = reading.RECORD_BYTES) -> bytes | None:
    """Return the content of a file, or None if the file does not exist; raises as `read_bytes`."""
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
    """Write a file under a temporary name and rename it when complete, so that a full disk leaves no half file."""
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
        # If the store is out of reach, the removal fails too; only the error of the write is raised.
        with suppress(Exception):
            if exists(temporary):
                remove(temporary)
        raise


def put_absent(path: str, data: bytes) -> bool:
    """Write a file in one step unless its name is taken; return whether this call wrote it.

    After the call the file is durable. If the answer of a store or of a network file system is lost, this call may have
    written the file although it returns False or raises. A caller can put an id into the file, and read the file to see
    who wrote it.

    Raises:
        UsageError: the file system has no hard links, or the store cannot refuse a name that is taken.
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
    """Make a local directory and its parents; a store has no directories.

    Raises:
        StorageError: the directory would be in the hidden directory of a stopped job. The hidden directory of a stopped
            job was deleted, and a worker of the job that still runs must not make it again.
    """
    if path and not is_remote(path) and not exists(path):
        hidden = [parent for parent in (Path(path), *Path(path).parents) if parent.name.endswith(PARTIAL)]
        if hidden and not hidden[0].is_dir():
            raise StorageError(f"{hidden[0]} is gone: the job was stopped")
        permissions.make_folder(path)


def read_json(path: str, most: int = reading.RECORD_BYTES) -> dict[str, Any]:
    """Read a JSON object that one of our jobs wrote; check it, because another party may have replaced the file.

    Raises:
        UsageError: the file is missing, longer than `most` bytes, or not a JSON object.
    """
    try:
        raw = read_bytes(path, most)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {cause(error)}") from None
    return reading.parse_object(raw, path)


def write_json(path: str, data: dict[str, Any], most: int = reading.RECORD_BYTES) -> None:
    """Write a JSON object that `read_json` can read with the same limit.

    Raises:
        StorageError: the file would be longer than `most` bytes; nothing is written.
    """
    raw = json_bytes(data)
    if len(raw) > most:
        raise StorageError(f"{path} would have {len(raw):,} bytes, must have at most {most:,}: not written")
    write_whole(path, [raw])


def json_bytes(data: dict[str, Any]) -> bytes:
    """Return the bytes that `write_json` writes for a JSON object."""
    return json.dumps(data, indent=2, ensure_ascii=False).encode() + b"\n"


def rename(source: str, target: str) -> None:
    """Rename a file in one step; a file that had the new name is replaced."""
    with client(target, "write", WriteError):
        if is_remote(target):
            _stores().reached(target).rename([source], [target])
        else:
            os.replace(source, target)


def remove(path: str) -> None:
    """Delete one file; a missing file is no error, because another process may have deleted it."""
    with client(path, "delete"):
        if is_remote(path):
            _stores().delete(path)
        else:
            Path(path).unlink(missing_ok=True)


def remove_directory(path: str) -> None:
    """Delete a directory and all in it; in a store, all objects below it. Raises as `remove`."""
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
    """Return the files below a local directory, or the objects below a directory of a store, sorted."""
    return sorted(file for file, _, _ in _listed(path, "**"))


def holds_objects(path: str) -> bool:
    """Return whether a store has objects below this directory."""
    return any(_stores().listed(path, "**", 1))


def write_durably(root: str, path: str, parts: Iterable[bytes]) -> None:
    """Write a file below `root` and return when it is durable; a local file is synced with its folders."""
    write_whole(path, parts)
    if not is_remote(path):
        between = [folder for folder in Path(path).parents if folder.is_relative_to(Path(root).parent)]
        for name in (Path(path), *between):
            sync(name)


def probe(folder: str) -> None:
    """Raise an error if a folder of the store cannot be reached, or is local and cannot be written."""
    if is_remote(folder):
        holds_objects(folder)
        return
    nearest = next(path for path in (Path(folder), *Path(folder).absolute().parents) if path.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
