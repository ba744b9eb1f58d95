"""Google Cloud KMS by its REST interface, version 1: encrypt and decrypt with a symmetric key."""

from __future__ import annotations

import base64
import json
import os
import re
from urllib.parse import quote

from hushcount.errors import UsageError
from keys.gcp_credentials import access_token
from keys.rest import bytes_in, call, endpoint

SCHEME = "gcp-kms://"
_WORD = r"[A-Za-z0-9_.:-]{1,128}"
_NAME = re.compile(rf"projects/{_WORD}/locations/{_WORD}/keyRings/{_WORD}/cryptoKeys/{_WORD}")
_ENDPOINT = "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS"
_SERVICE = "Google Cloud KMS"


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
    headers = {"Authorization": f"Bearer {access_token(_SERVICE)}", "Content-Type": "application/json"}
    data = call(_SERVICE, address, f"/v1/{quote(name)}:{verb}", headers, json.dumps(body).encode())
    return bytes_in(_SERVICE, data, wanted)


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
