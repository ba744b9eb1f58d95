"""Object stores (gs://, s3://) through Beam's FileSystems.

Import this module only for a path in a store, because Beam's import takes 1 s.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib.util import find_spec
from typing import IO, Any

from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileSystem
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from hushcount.errors import UsageError
from pipelines.files.s3_clients import share
from pipelines.files.storage_errors import StorageError, WriteError, cause, client, silent_clients
from pipelines.files.store_requests import (
    date_of_gcs,
    date_of_s3,
    open_in_gcs,
    open_in_s3,
    page_of_gcs,
    page_of_s3,
    put_to_gcs,
    put_to_s3,
)

_EXTRAS = {"gs": "gcp", "s3": "aws"}
"""The pip extra of apache-beam that each store needs."""
_S3_CLIENT = "boto3"


def reached(path: str) -> Any:
    """Return Beam's file systems, after a check that they can reach this path.

    Raises:
        UsageError: the store is unknown, or its client is not installed; the message says what to install.
    """
    scheme = FileSystems.get_scheme(path)
    # Beam's file systems of stores need options before their first use. Do not replace options that a job's engine has
    # set.
    if FileSystems._pipeline_options is None:
        FileSystems.set_options(PipelineOptions([]))
    known = scheme in {system.scheme() for system in FileSystem.get_all_subclasses()}
    # Check the client too, because Beam accepts s3:// paths even if the client for them is not installed.
    if known and (scheme != "s3" or find_spec(_S3_CLIENT)):
        if scheme == "s3":
            share()
        return FileSystems
    if scheme in _EXTRAS:
        raise UsageError(f"{path}: the client of {scheme}:// is missing: pip install 'apache-beam[{_EXTRAS[scheme]}]'")
    stores = " or ".join(f"{store}://..." for store in _EXTRAS)
    raise UsageError(f"{path}: no store has paths with {scheme}://, must be a plain local path, {stores}")


@contextmanager
def asked(path: str) -> Iterator[Any]:
    """Yield Beam's file systems for a query; turn any exception of a store's client into one sentence."""
    systems = reached(path)
    try:
        with silent_clients(), client(path, "reach"):
            yield systems
    except BeamIOError as error:
        raise StorageError(f"cannot reach {path}: {cause(error)}") from error


def listed(directory: str, pattern: str, most: int | None = None) -> Iterator[tuple[str, int, float]]:
    """Yield at most `most` objects below a directory that match a pattern.

    Each object comes with its size and its last write time by the store's clock, in seconds since 1970.
    """
    with asked(directory) as systems:
        path = systems.join(glob.escape(directory), pattern)
        try:
            matches = systems.match([path], limits=None if most is None else [most])
        except BeamIOError as error:
            raise UsageError(f"cannot list {directory}: {cause(error)}") from None
    for match in matches:
        yield from ((file.path, file.size_in_bytes, file.last_updated_in_seconds) for file in match.metadata_list)


def listed_from(directory: str, depth: int, first: Callable[[str], str]) -> Iterator[tuple[str, int, float]]:
    """As `storage.list_from`; after each page of the list, the next request skips the names that are not wanted."""
    prefix = f"{directory.rstrip('/')}/"
    pages = PAGES.get(FileSystems.get_scheme(directory))
    with asked(directory):
        if pages is None:
            yield from listed(directory, "**")
            return
        after, more = prefix + first("") if depth == 0 else prefix, True
        while more:
            page, more = pages(prefix, after)
            yield from page
            after = page[-1][0] if page else after
            names = after[len(prefix) :].split("/")
            if len(names) > depth and (wanted := first("/".join(names[:depth]))) > names[depth]:
                after = prefix + "/".join([*names[:depth], wanted])


def opened(path: str) -> IO[bytes]:
    """Open an object to read its bytes as stored: no ending of a name causes decompression."""
    stream: IO[bytes] = reached(path).open(path, compression_type=CompressionTypes.UNCOMPRESSED)
    return stream


def created(path: str) -> IO[bytes]:
    """Open a new object to write to."""
    stream: IO[bytes] = reached(path).create(path, "application/octet-stream", CompressionTypes.UNCOMPRESSED)
    return stream


def delete(path: str) -> None:
    """Delete an object; if the path ends in a slash, delete all objects below it."""
    # Escape the path, because Beam treats it as a pattern.
    reached(path).delete([path if path.endswith("/") else glob.escape(path)])


PUTS: dict[str, Callable[[str, bytes], bool]] = {"s3": put_to_s3, "gs": put_to_gcs}
"""For each kind of store, the function that puts an object unless its name is taken, as `put_to_s3`."""
READS: dict[str, Callable[[str], IO[bytes] | None]] = {"s3": open_in_s3, "gs": open_in_gcs}
"""For each kind of store, the function that opens an object that may be missing."""
PAGES: dict[str, Callable[[str, str], tuple[list[tuple[str, int, float]], bool]]] = {
    "s3": page_of_s3,
    "gs": page_of_gcs,
}
"""For each kind of store, the function that lists the next objects after a name, as `page_of_s3`."""
DATES: dict[str, Callable[[str], datetime | None]] = {"s3": date_of_s3, "gs": date_of_gcs}
"""For each kind of store, the function that returns the store's time."""


def put_absent(path: str, data: bytes) -> bool:
    """Put an object in one request unless its name is taken, as the store decides; return whether this call put it.

    Raises:
        UsageError: the store cannot refuse a name that is taken.
        WriteError: the store failed, or its answer is lost.
    """
    scheme = FileSystems.get_scheme(path)
    reached(path)
    if scheme not in PUTS:
        raise UsageError(f"{path}: a log needs a store that refuses to replace an object, must be gs:// or s3://")
    try:
        with client(path, "write", WriteError):
            return PUTS[scheme](path, data)
    except OSError as error:
        # Some clients raise an OSError if the store's answer is lost, so the object may have been written.
        raise WriteError(f"cannot write {path}: {cause(error)}") from error


def opened_if_there(path: str) -> IO[bytes] | None:
    """Open an object to read its bytes as stored, in one request if possible; None: the object does not exist."""
    scheme = FileSystems.get_scheme(path)
    reached(path)
    if scheme in READS:
        return READS[scheme](path)
    return opened(path) if reached(path).exists(path) else None


def date_of(path: str) -> datetime | None:
    """Return the time by the clock of a path's store; None: this kind of store does not tell the time.

    Raises:
        StorageError: the store cannot be reached.
    """
    with asked(path):
        told = DATES.get(FileSystems.get_scheme(path))
        return None if told is None else told(path)
