"""Google Cloud KMS by its REST interface, version 1: encrypt and decrypt with a symmetric key."""

from __future__ import annotations

import base64
import json
import os
import re
from typing import Any
from urllib.parse import quote, urlsplit

from hushcount.errors import HushcountError, UsageError
from keys.rest import call, endpoint, plain_word

SCHEME = "gcp-kms://"
_WORD = r"[A-Za-z0-9_.:-]{1,128}"
_NAME = re.compile(rf"projects/{_WORD}/locations/{_WORD}/keyRings/{_WORD}/cryptoKeys/{_WORD}")
_ENDPOINT = "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS"
_TOKEN = "GOOGLE_OAUTH_ACCESS_TOKEN"  # noqa: S105  # the variable's name
_METADATA = "GCE_METADATA_HOST"
_TOKEN_PATH = "/computeMetadata/v1/instance/service-accounts/default/token"  # noqa: S105  # a path


def encrypt(name: str, plain: bytes, context: dict[str, str]) -> bytes:
    """Return what `projects.locations.keyRings.cryptoKeys.encrypt` makes of a few bytes.

    Args:
        name: projects/P/locations/L/keyRings/R/cryptoKeys/K.
        plain: up to 64 KiB.
        context: authenticated with them.

    Raises:
        UsageError: the name is no key's, or there are no credentials.
        HushcountError: the service refuses or does not answer.
    """
    return _ask(name, "encrypt", "plaintext", plain, context, "ciphertext")


def decrypt(name: str, wrapped: bytes, context: dict[str, str]) -> bytes:
    """Return what was encrypted in that context; see `encrypt`."""
    return _ask(name, "decrypt", "ciphertext", wrapped, context, "plaintext")


def _ask(name: str, verb: str, given: str, value: bytes, context: dict[str, str], wanted: str) -> bytes:
    if not _NAME.fullmatch(name):
        raise UsageError(f"key of Google Cloud KMS is {name!r}, must be projects/P/locations/L/keyRings/R/cryptoKeys/K")
    address = endpoint(os.environ.get(_ENDPOINT) or "https://cloudkms.googleapis.com", _ENDPOINT)
    authenticated = json.dumps(context, sort_keys=True, separators=(",", ":")).encode()
    body = {given: _text(value), "additionalAuthenticatedData": _text(authenticated)}
    headers = {"Authorization": f"Bearer {_token()}", "Content-Type": "application/json"}
    data = call("Google Cloud KMS", address, f"/v1/{quote(name)}:{verb}", headers, json.dumps(body).encode())
    return _bytes(data, wanted)


def _token() -> str:
    """Return an access token: that of the environment, or of the machine's service account."""
    given = os.environ.get(_TOKEN)
    if given:
        return _checked(given.strip())
    host = os.environ.get(_METADATA) or "metadata.google.internal"
    if not re.fullmatch(r"[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?", host):
        raise UsageError(f"{_METADATA} is {host!r}, must be a host, with :port if need be")
    # It speaks plain HTTP, inside the machine's own network.
    address = urlsplit(f"http://{host}")
    try:
        data = call("the metadata server", address, _TOKEN_PATH, {"Metadata-Flavor": "Google"}, None)
    except HushcountError as error:
        raise HushcountError(
            f"no credentials for Google Cloud KMS: {error}; run where a service account is attached, or set {_TOKEN} "
            "to what gcloud auth print-access-token prints"
        ) from None
    return _checked(data.get("access_token"))


def _checked(token: Any) -> str:
    if not plain_word(token):
        raise HushcountError("the access token for Google Cloud KMS is none: it must be printable ASCII without spaces")
    return str(token)


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _bytes(data: dict[str, Any], field: str) -> bytes:
    try:
        return base64.b64decode(data[field], validate=True)
    except (KeyError, TypeError, ValueError):
        raise HushcountError(f"Google Cloud KMS answered without {field}") from None
