"""Requests that Beam's file systems lack: put an object unless its name is taken, list from a name on, tell the time.

Each function makes one request, with the client and the options that Beam has for that store. To open an object that
may be missing also takes only one request here, where Beam makes three.
"""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import IO, Any

from apache_beam.io.filesystems import FileSystems

from hushcount.errors import UsageError
from pipelines.files.s3_clients import boto3_client_of

_TRIES = 4
_PAUSE = 0.2
_PAGE = 1000
Page = tuple[list[tuple[str, int, float]], bool]
"""Path, size and time of some objects, and whether more objects follow these."""


def put_to_s3(path: str, data: bytes) -> bool:
    """Put an object unless its name is taken; return whether this call put it; UsageError: the store cannot do that."""
    from apache_beam.io.aws.s3io import parse_s3_path
    from botocore.exceptions import ClientError

    bucket, key = parse_s3_path(path)
    client = boto3_client_of(FileSystems._pipeline_options)
    for left in reversed(range(_TRIES)):
        try:
            client.put_object(Bucket=bucket, Key=key, Body=data, IfNoneMatch="*")
            return True
        except ClientError as error:
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            if status == HTTPStatus.PRECONDITION_FAILED:
                return False
            if status == HTTPStatus.NOT_IMPLEMENTED:
                raise UsageError(f"{path}: this store cannot put an object unless its name is taken") from None
            # CONFLICT: another request for this name is under way. Try again, because the other request may still fail.
            if status != HTTPStatus.CONFLICT or not left:
                raise
        time.sleep(_PAUSE)
    raise AssertionError


def put_to_gcs(path: str, data: bytes) -> bool:
    """As `put_to_s3`."""
    from google.api_core.exceptions import PreconditionFailed

    client, bucket, name = _gcs(path)
    try:
        client.bucket(bucket).blob(name).upload_from_string(data, if_generation_match=0)
    except PreconditionFailed:
        return False
    return True


def open_in_s3(path: str) -> IO[bytes] | None:
    """Open an object; None: the object does not exist."""
    from apache_beam.io.aws.s3io import parse_s3_path

    bucket, key = parse_s3_path(path)
    client = boto3_client_of(FileSystems._pipeline_options)
    try:
        stream: IO[bytes] = client.get_object(Bucket=bucket, Key=key)["Body"]
    except client.exceptions.NoSuchKey:
        return None
    return stream


def open_in_gcs(path: str) -> IO[bytes] | None:
    """As `open_in_s3`."""
    from google.api_core.exceptions import NotFound

    client, bucket, name = _gcs(path)
    try:
        return io.BytesIO(client.bucket(bucket).blob(name).download_as_bytes())
    except NotFound:
        return None


def page_of_s3(prefix: str, after: str) -> Page:
    """Return the next objects, in order of name, that begin with a prefix and come after a name."""
    from apache_beam.io.aws.s3io import parse_s3_path

    bucket, key = parse_s3_path(prefix)
    client = boto3_client_of(FileSystems._pipeline_options)
    answer = client.list_objects_v2(Bucket=bucket, Prefix=key, StartAfter=parse_s3_path(after)[1])
    found = answer.get("Contents", ())
    page = [(f"s3://{bucket}/{one['Key']}", one["Size"], one["LastModified"].timestamp()) for one in found]
    return page, bool(answer["IsTruncated"])


def page_of_gcs(prefix: str, after: str) -> Page:
    """As `page_of_s3`."""
    client, bucket, name = _gcs(prefix)
    start = after.removeprefix(f"gs://{bucket}/")
    found = [*client.list_blobs(bucket, prefix=name, start_offset=start, max_results=_PAGE)]
    # The answer of this store includes the name at which the list starts, but `after` itself is not wanted.
    page = [(f"gs://{bucket}/{one.name}", one.size, one.updated.timestamp()) for one in found if one.name != start]
    return page, len(found) == _PAGE


def date_of_s3(path: str) -> datetime | None:
    """Return the date of a store's answer; None: the answer has no date."""
    from apache_beam.io.aws.s3io import parse_s3_path
    from botocore.exceptions import ClientError

    bucket, _ = parse_s3_path(path, object_optional=True)
    try:
        answer = boto3_client_of(FileSystems._pipeline_options).head_bucket(Bucket=bucket)
    except ClientError as error:
        # An answer that refuses the request has a date too.
        answer = error.response
    return _date_in(answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}), "date")


def date_of_gcs(path: str) -> datetime | None:
    """As `date_of_s3`."""
    client, bucket, _ = _gcs(path)
    answer = client._http.get(f"{client._connection.API_BASE_URL}/storage/v1/b/{bucket}", params={"fields": "id"})
    return _date_in(answer.headers, "Date")


def _gcs(path: str) -> tuple[Any, str, str]:
    from apache_beam.io.gcp.gcsio import GcsIO, parse_gcs_path

    bucket, name = parse_gcs_path(path, object_optional=True)
    return GcsIO(pipeline_options=FileSystems._pipeline_options).client, bucket, name


def _date_in(headers: Mapping[str, str], name: str) -> datetime | None:
    value = headers.get(name)
    return None if value is None else parsedate_to_datetime(value).astimezone(timezone.utc)
