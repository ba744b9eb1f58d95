"""Files through Beam's FileSystems, so that a path may be local, gs:// or s3://; each appears whole or not at all."""

from __future__ import annotations

import glob
import hashlib
import json
import posixpath
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileMetadata, FileSystem
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from hushcount.errors import HushcountError, UsageError
from hushcount.formats import reading
from pipelines.files import permissions
from pipelines.files.storage_errors import StorageError, WriteError, cause, client, line, silent_clients

_PIECE_BYTES = 1 << 20
_EXTRAS = {"gs": "gcp", "s3": "aws"}
"""What of Beam each store needs to be installed with."""
_S3_CLIENT = "boto3"
PARTIAL = ".partial"
"""How the name of a job's hidden directory ends."""
TEMPORARY = ".tmp"
"""How the name of a file ends that is being written; it begins with a dot."""


def require_reachable(path: str) -> None:
    """Refuse a path of a store that is unknown, or whose client is not installed.

    Raises:
        UsageError: it is one; the sentence says what to install or to give.
    """
    scheme = FileSystems.get_scheme(path)
    if scheme is None:
        return
    # Beam's file systems of stores refuse to work before they are told options. A job's come with its engine, and stay.
    if FileSystems._pipeline_options is None:
        FileSystems.set_options(PipelineOptions([]))
    known = scheme in {system.scheme() for system in FileSystem.get_all_subclasses()}
    # Beam knows s3:// also where its client is missing.
    if known and (scheme != "s3" or find_spec(_S3_CLIENT)):
        return
    if scheme in _EXTRAS:
        raise UsageError(f"{path}: what {scheme}:// needs is missing: pip install 'apache-beam[{_EXTRAS[scheme]}]'")
    stores = " or ".join(f"{store}://..." for store in _EXTRAS)
    raise UsageError(f"{path}: no store has paths with {scheme}://, must be a plain local path, {stores}")


@contextmanager
def _asked(path: str) -> Iterator[None]:
    """Make a sentence of whatever a store's client raises where it is only asked what is there."""
    require_reachable(path)
    try:
        with silent_clients() if is_remote(path) else nullcontext():
            yield
    except HushcountError:
        raise
    except BeamIOError as error:
        raise StorageError(f"cannot reach {path}: {cause(error)}") from error
    except OSError:
        raise
    except Exception as error:
        raise StorageError(f"cannot reach {path}: {line(error)}") from error


def join(directory: str, *names: str) -> str:
    """Return the path of a name in a directory."""
    with _asked(directory):
        return FileSystems.join(directory, *names)


def is_remote(path: str) -> bool:
    """Return whether a path is in another file system than the local one."""
    return FileSystems.get_scheme(path) is not None


def exists(path: str) -> bool:
    """Return whether a file or local directory exists."""
    with _asked(path):
        return bool(FileSystems.exists(path))


def require_directory(directory: str, name: str = "input") -> None:
    """Refuse what is no directory; a store has none, and there it passes.

    Raises:
        UsageError: the path does not exist, or is of something else.
    """
    if not is_remote(directory) and not Path(directory).is_dir():
        wrong = "is no directory" if Path(directory).exists() else "does not exist"
        raise UsageError(f"{name} directory {directory} {wrong}")


def relative(path: str, directory: str) -> str:
    """Return a path below a directory, as it was listed, without the directory."""
    return path[len(directory.rstrip("/")) + 1 :]


def list_files(directory: str, suffix: str) -> list[tuple[str, int]]:
    """Return path and size of a directory's files of that ending, sorted; none if there is no such directory."""
    return sorted((file.path, file.size_in_bytes) for file in _listed(directory, f"*{suffix}"))


def modified(path: str) -> float:
    """Return when a file was written last, in seconds since 1970, by the clock of its store.

    Raises:
        StorageError: it is missing, or the store cannot be reached.
    """
    with _asked(path):
        return float(FileSystems.last_updated(path))


def list_tree(directory: str, pattern: str) -> list[tuple[str, int]]:
    """Return path and size of the files under a directory whose paths there match a pattern such as `*/*.json`, sorted.

    A star matches within one name; none if there is no such directory.
    """
    depth = len(directory.rstrip("/").split("/")) + len(pattern.split("/"))
    found = ((file.path, file.size_in_bytes) for file in _listed(directory, pattern))
    # What a star matches differs from file system to file system.
    return sorted((path, size) for path, size in found if len(path.split("/")) == depth)


def _listed(directory: str, pattern: str, limits: list[int] | None = None) -> list[FileMetadata]:
    """Return what Beam knows of the files under a directory whose paths there match a pattern."""
    with _asked(directory):
        try:
            matches = FileSystems.match([join(glob.escape(directory), pattern)], limits=limits)
        except BeamIOError as error:
            raise UsageError(f"cannot list {directory}: {cause(error)}") from None
    return [file for match in matches for file in match.metadata_list]


def open_read(path: str) -> IO[bytes]:
    """Open a file as it is, without decompressing by its name.

    Raises:
        OSError: it is missing, may not be read, or is a local one and no regular file.
        StorageError: a store's client failed, in a way that has no kind.
        UsageError: it is in no store that can be reached.
    """
    require_reachable(path)
    if not is_remote(path):
        return reading.open_regular(Path(path))
    with client(path):
        stream: IO[bytes] = FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)
    return stream


def read_bytes(path: str, most: int = reading.RECORD_BYTES) -> bytes:
    """Return what is in a file; raises as `open_read`, and FormatError where it is longer than so many bytes."""
    with open_read(path) as stream, client(path):
        return reading.take(stream, most, path)


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
            if not is_remote(path):
                permissions.make_file(temporary)
            with FileSystems.create(temporary, "application/octet-stream", CompressionTypes.UNCOMPRESSED) as stream:
                for part in parts:
                    stream.write(part)
            FileSystems.rename([temporary], [path])
    except BaseException:
        # A store that is away fails here again; what failed first is what counts.
        with suppress(Exception):
            if exists(temporary):
                remove(temporary)
        raise


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
        UsageError: missing, longer than so many bytes, or not a JSON object.
    """
    try:
        raw = read_bytes(path, most)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {cause(error)}") from None
    return reading.parse_object(raw, path)


def write_json(path: str, data: dict[str, Any], most: int = reading.RECORD_BYTES) -> None:
    """Write a JSON object, which `read_json` with the same limit can read.

    Raises:
        StorageError: it would be longer than so many bytes; nothing is written.
    """
    raw = json_bytes(data)
    if len(raw) > most:
        raise StorageError(f"{path} would have {len(raw):,} bytes, it can be read with at most {most:,}: not written")
    write_whole(path, [raw])


def json_bytes(data: dict[str, Any]) -> bytes:
    """Return a JSON object as `write_json` writes it."""
    return json.dumps(data, indent=2, ensure_ascii=False).encode() + b"\n"


def rename(source: str, target: str) -> None:
    """Give a file another name, in one piece; what had that name is replaced."""
    with client(target, "write", WriteError):
        if is_remote(target):
            FileSystems.rename([source], [target])
        else:
            Path(source).replace(target)


def remove(path: str) -> None:
    """Delete one file."""
    # Beam takes what it is to delete for a pattern.
    with client(path, "delete"):
        FileSystems.delete([glob.escape(path)])


def remove_directory(path: str) -> None:
    """Delete a directory and all in it; in a store, all objects whose names begin with it."""
    if is_remote(path):
        if holds_objects(path):
            with client(path, "delete"):
                FileSystems.delete([path.rstrip("/") + "/"])
    elif exists(path):
        shutil.rmtree(path)


def remove_empty(path: str) -> None:
    """Delete a local directory if nothing is in it; a store has none."""
    if not is_remote(path):
        with suppress(OSError):
            Path(path).rmdir()


def list_objects(path: str) -> list[str]:
    """Return the files of a local directory, or the objects whose names begin with it in a store, sorted."""
    return sorted(file.path for file in _listed(path, "**"))


def list_hidden(path: str) -> list[str]:
    """Return the objects of a store that lie in hidden directories of this one, sorted."""
    return sorted(file.path for file in _listed(path, ".*/**"))


def holds_objects(path: str) -> bool:
    """Return whether a store has objects whose names begin with this directory."""
    return bool(_listed(path, "**", limits=[1]))
