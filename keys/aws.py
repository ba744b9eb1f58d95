"""AWS KMS through boto3: encrypt and decrypt with a symmetric key."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from hushcount.errors import HushcountError, UsageError
from keys import cloud

KMS_SCHEME = "aws-kms://"
_SERVICE = "AWS KMS"
_ARN = re.compile(r"arn:aws(?:-[a-z-]+)?:kms:([a-z0-9-]{1,32}):[0-9]{12}:(?:key|alias)/[A-Za-z0-9/_-]{1,256}")


def encrypt(name: str, plain: bytes, context: dict[str, str]) -> bytes:
    """Encrypt up to 4096 bytes with the key of this ARN; `decrypt` needs the same context."""
    return _ask(name, "encrypt", "CiphertextBlob", Plaintext=plain, EncryptionContext=context)


def decrypt(name: str, wrapped: bytes, context: dict[str, str]) -> bytes:
    """Return what `encrypt` encrypted with the same key and context."""
    return _ask(name, "decrypt", "Plaintext", CiphertextBlob=wrapped, EncryptionContext=context)


def _ask(name: str, method: str, wanted: str, **fields: Any) -> bytes:
    match = _ARN.fullmatch(name)
    if match is None:
        raise UsageError(f"key of AWS KMS is {name!r}, must be arn:aws:kms:REGION:ACCOUNT:key/ID")
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import ClientError, NoCredentialsError, PartialCredentialsError
    except ImportError:
        raise cloud.missing_library(_SERVICE, "aws") from None
    cloud.silence("boto3", "botocore")
    cloud.address_in("AWS_ENDPOINT_URL_KMS")
    limits = Config(
        connect_timeout=cloud.SECONDS,
        read_timeout=cloud.SECONDS,
        retries={"mode": "standard", "total_max_attempts": cloud.ATTEMPTS},
    )
    host = match[1]
    failed: HushcountError
    try:
        client = boto3.session.Session().client("kms", region_name=match[1], config=limits)
        # The AWS configuration file, too, may set the address of AWS KMS.
        cloud.require_safe(client.meta.endpoint_url, "the endpoint URL of AWS KMS")
        host = urlsplit(client.meta.endpoint_url).netloc
        value = getattr(client, method)(KeyId=name, **fields).get(wanted)
        if isinstance(value, bytes) and value:
            return value
        failed = HushcountError(f"{_SERVICE} at {host} answered without {wanted}")
    except UsageError:
        raise
    except (NoCredentialsError, PartialCredentialsError) as error:
        # These two exceptions name the missing variable, and show no secret.
        failed = UsageError(f"no credentials for {_SERVICE}: {error}; set them, or run on a machine with a role")
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        failed = cloud.refusal(_SERVICE, host, status, error.response["Error"].get("Code"))
    except Exception as error:
        failed = cloud.failure(_SERVICE, host, error)
    # The error is raised outside the handlers, so that it does not carry the library's exception, which holds the
    # request and the answer.
    raise failed
