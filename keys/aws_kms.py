"""AWS KMS by its JSON interface, requests signed with Signature Version 4: Encrypt and Decrypt with a symmetric key."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any
from urllib.parse import SplitResult

from hushcount.errors import UsageError
from keys.rest import bytes_in, call, endpoint, plain_word

SCHEME = "aws-kms://"
_SERVICE = "AWS KMS"
_ARN = re.compile(r"arn:(aws(?:-[a-z-]+)?):kms:([a-z0-9-]{1,32}):[0-9]{12}:(?:key|alias)/[A-Za-z0-9/_-]{1,256}")
_ENDPOINT = "AWS_ENDPOINT_URL_KMS"


@dataclass(frozen=True)
class Credentials:
    """Who asks.

    Attributes:
        access_key_id: names the secret.
        secret_access_key: signs; never shown.
        session_token: goes with temporary ones; never shown.
    """

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


def encrypt(name: str, plain: bytes, context: dict[str, str]) -> bytes:
    """Return what Encrypt makes of up to 4096 bytes.

    Args:
        name: arn:aws:kms:REGION:ACCOUNT:key/ID, or alias/NAME in the place of the key.
        plain: the bytes.
        context: the encryption context, authenticated with them.

    Raises:
        UsageError: the name is no key's, or there are no credentials.
        HushcountError: the service refuses or does not answer.
    """
    return _ask(name, "Encrypt", "Plaintext", plain, context, "CiphertextBlob")


def decrypt(name: str, wrapped: bytes, context: dict[str, str]) -> bytes:
    """Return what was encrypted with that key in that context; see `encrypt`."""
    return _ask(name, "Decrypt", "CiphertextBlob", wrapped, context, "Plaintext")


def _ask(name: str, verb: str, given: str, value: bytes, context: dict[str, str], wanted: str) -> bytes:
    match = _ARN.fullmatch(name)
    if match is None:
        raise UsageError(f"key of AWS KMS is {name!r}, must be arn:aws:kms:REGION:ACCOUNT:key/ID")
    domain = "amazonaws.com.cn" if match[1] == "aws-cn" else "amazonaws.com"
    address = endpoint(os.environ.get(_ENDPOINT) or f"https://kms.{match[2]}.{domain}", _ENDPOINT)
    body = {"KeyId": name, given: base64.b64encode(value).decode(), "EncryptionContext": context}
    raw = json.dumps(body).encode()
    headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": f"TrentService.{verb}"}
    signed = sign_request(_credentials(), address, "/", match[2], "kms", headers, raw, datetime.now(timezone.utc))
    return bytes_in(_SERVICE, call(_SERVICE, address, "/", signed, raw), wanted)


def sign_request(
    credentials: Credentials,
    address: SplitResult,
    path: str,
    region: str,
    service: str,
    headers: dict[str, str],
    body: bytes,
    at: datetime,
) -> dict[str, str]:
    """Return the headers of a POST with its signature (AWS Signature Version 4), every one of them signed."""
    stamp = at.strftime("%Y%m%dT%H%M%SZ")
    all_headers = {**headers, "Host": address.netloc, "X-Amz-Date": stamp}
    if credentials.session_token is not None:
        all_headers["X-Amz-Security-Token"] = credentials.session_token
    lowered = {name.lower(): value.strip() for name, value in all_headers.items()}
    names = ";".join(sorted(lowered))
    lines = "".join(f"{name}:{lowered[name]}\n" for name in sorted(lowered))
    request = f"POST\n{address.path.rstrip('/')}{path}\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{credentials.secret_access_key}".encode()
    for step in scope.split("/"):
        key = hmac.digest(key, step.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    given = f"Credential={credentials.access_key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**all_headers, "Authorization": f"AWS4-HMAC-SHA256 {given}"}


def _credentials() -> Credentials:
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    values: list[Any] = [os.environ.get(name) for name in names]
    missing = [name for name, value in zip(names, values, strict=True) if not value]
    if missing:
        raise UsageError(
            f"{' and '.join(missing)} not set: AWS KMS needs credentials in the environment, as "
            "aws configure export-credentials --format env prints them"
        )
    token = os.environ.get("AWS_SESSION_TOKEN") or None
    if not all(plain_word(value) for value in (*values, *([] if token is None else [token]))):
        raise UsageError(
            "a credential of AWS KMS in the environment is none: it must be printable ASCII without spaces"
        )
    return Credentials(values[0], values[1], token)
