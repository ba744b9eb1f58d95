"""Object stores (gs://, s3://) through Beam's FileSystems; only a path with a scheme imports Beam, which takes 1 s."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import IO, Any

from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileSystem
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from hushcount.errors import UsageError
from pipelines.files.s3_clients import boto3_client_of, share
from pipelines.files.storage_errors import StorageError, cause, client, silent_clients

_EXTRAS = {"gs": "gcp", "s3": "aws"}
"""The extra of apache-beam that each store needs."""
_S3_CLIENT = "boto3"


def reached(path: str) -> Any:
    """Return Beam's file systems, which can reach a path.

    Raises:
        UsageError: the store is unknown, or its client is not installed; the sentence says what to install or to give.
    """
    scheme = FileSystems.get_scheme(path)
    # Beam's file systems of stores refuse to work before they are told options. A job's come with its engine, and stay.
    if FileSystems._pipeline_options is None:
        FileSystems.set_options(PipelineOptions([]))
    known = scheme in {system.scheme() for system in FileSystem.get_all_subclasses()}
    # Beam knows s3:// also where its client is missing.
    if known and (scheme != "s3" or find_spec(_S3_CLIENT)):
        if scheme == "s3":
            share()
        return FileSystems
    if scheme in _EXTRAS:
        raise UsageError(f"{path}: what {scheme}:// needs is missing: pip install 'apache-beam[{_EXTRAS[scheme]}]'")
    stores = " or ".join(f"{store}://..." for store in _EXTRAS)
    raise UsageError(f"{path}: no store has paths with {scheme}://, must be a plain local path, {stores}")


@contextmanager
def asked(path: str) -> Iterator[Any]:
    """Yield Beam's file systems to ask what is there; turn any exception of a store's client into one sentence."""
    systems = reached(path)
    try:
        with silent_clients(), client(path, "reach"):
            yield systems
    except BeamIOError as error:
        raise StorageError(f"cannot reach {path}: {cause(error)}") from error


def listed(directory: str, pattern: str, most: int | None = None) -> Iterator[tuple[str, int]]:
    """Yield path and size of the objects below a directory whose names there match a pattern, `most` at most."""
    with asked(directory) as systems:
        path = systems.join(glob.escape(directory), pattern)
        try:
            matches = systems.match([path], limits=None if most is None else [most])
        except BeamIOError as error:
            raise UsageError(f"cannot list {directory}: {cause(error)}") from None
    for match in matches:
        yield from ((file.path, file.size_in_bytes) for file in match.metadata_list)


def opened(path: str) -> IO[bytes]:
    """Open an object as it is, without decompressing it by its name."""
    stream: IO[bytes] = reached(path).open(path, compression_type=CompressionTypes.UNCOMPRESSED)
    return stream


def created(path: str) -> IO[bytes]:
    """Open a new object to write to."""
    stream: IO[bytes] = reached(path).create(path, "application/octet-stream", CompressionTypes.UNCOMPRESSED)
    return stream


def delete(path: str) -> None:
    """Delete an object, or all below a directory that ends in a slash."""
    # Beam takes the path for a pattern.
    reached(path).delete([path if path.endswith("/") else glob.escape(path)])


def put_absent(path: str, data: bytes) -> bool:
    """Put an object in one request unless its name is taken, as the store decides; return whether this call put it.

    Raises:
        UsageError: the store cannot do that.
    """
    scheme = FileSystems.get_scheme(path)
    reached(path)
    if scheme not in PUTS:
        raise UsageError(f"{path}: a log needs a store that refuses to replace an object, must be gs:// or s3://")
    return PUTS[scheme](path, data)


def _put_to_s3(path: str, data: bytes) -> bool:
    from apache_beam.io.aws.s3io import parse_s3_path
    from botocore.exceptions import ClientError

    bucket, key = parse_s3_path(path)
    try:
        boto3_client_of(FileSystems._pipeline_options).put_object(Bucket=bucket, Key=key, Body=data, IfNoneMatch="*")
    except ClientError as error:
        if error.response["Error"]["Code"] in ("PreconditionFailed", "ConditionalRequestConflict"):
            return False
        raise
    return True


def _put_to_gcs(path: str, data: bytes) -> bool:
    from apache_beam.io.gcp.gcsio import GcsIO, parse_gcs_path
    from google.api_core.exceptions import PreconditionFailed

    bucket, name = parse_gcs_path(path)
    blob = GcsIO(pipeline_options=FileSystems._pipeline_options).client.bucket(bucket).blob(name)
    try:
        blob.upload_from_string(data, if_generation_match=0)
    except PreconditionFailed:
        return False
    return True


PUTS: dict[str, Callable[[str, bytes], bool]] = {"s3": _put_to_s3, "gs": _put_to_gcs}
"""How each kind of store puts an object unless its name is taken."""
