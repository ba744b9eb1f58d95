"""Google Cloud KMS by google-cloud-kms: encrypt and decrypt with a symmetric key."""

from __future__ import annotations

import json
import re
from typing import Any

from hushcount.errors import HushcountError, UsageError
from keys import cloud, gcp

SCHEME = "gcp-kms://"
_WORD = r"[A-Za-z0-9_.:-]{1,128}"
_NAME = re.compile(rf"projects/{_WORD}/locations/{_WORD}/keyRings/{_WORD}/cryptoKeys/{_WORD}")
_ENDPOINT = "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS"
_SERVICE = "Google Cloud KMS"


def encrypt(name: str, plain: bytes, context: dict[str, str]) -> bytes:
    """Return up to 64 KiB, encrypted.

    Args:
        name: projects/P/locations/L/keyRings/R/cryptoKeys/K.
        plain: the bytes.
        context: authenticated with them.

    Raises:
        UsageError: the name is not a key's, or the library is missing.
        HushcountError: there are no credentials, the service refuses or gives no valid answer, or something was
            damaged on the way or encrypted by another key.
    """
    answer = _ask(name, "encrypt", "plaintext", plain, context)
    if not (answer.verified_plaintext_crc32c and answer.verified_additional_authenticated_data_crc32c):
        raise HushcountError(f"{_SERVICE} did not confirm the CRC32C of what it encrypted: try again")
    if not answer.name.startswith(f"{name}/cryptoKeyVersions/"):
        raise HushcountError(f"{_SERVICE} encrypted with another key than {name}")
    return gcp.intact(_SERVICE, answer, "ciphertext")


def decrypt(name: str, wrapped: bytes, context: dict[str, str]) -> bytes:
    """Return what was encrypted in that context; see `encrypt`."""
    return gcp.intact(_SERVICE, _ask(name, "decrypt", "ciphertext", wrapped, context), "plaintext")


def _ask(name: str, method: str, field: str, value: bytes, context: dict[str, str]) -> Any:
    if not _NAME.fullmatch(name):
        raise UsageError(f"key of Google Cloud KMS is {name!r}, must be projects/P/locations/L/keyRings/R/cryptoKeys/K")
    try:
        from google.cloud.kms_v1 import KeyManagementServiceClient
    except ImportError:
        raise cloud.missing_library(_SERVICE, "gcp") from None
    authenticated = json.dumps(context, sort_keys=True, separators=(",", ":")).encode()
    request = {
        "name": name,
        field: value,
        f"{field}_crc32c": gcp.checksum(value),
        "additional_authenticated_data": authenticated,
        "additional_authenticated_data_crc32c": gcp.checksum(authenticated),
    }
    return gcp.ask(_SERVICE, _ENDPOINT, KeyManagementServiceClient, method, request)
