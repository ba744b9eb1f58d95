"""Google Secret Manager by google-cloud-secret-manager: read one version of a secret."""

from __future__ import annotations

import re
from contextlib import suppress

from hushcount.errors import HushcountError, UsageError
from keys import cloud, gcp

SCHEME = "gcp-secret:"
_WORD = r"[A-Za-z0-9_.:-]{1,255}"
_NAME = re.compile(rf"projects/{_WORD}/secrets/{_WORD}/versions/(?:[1-9][0-9]{{0,9}}|latest)")
_ENDPOINT = "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER"
_SERVICE = "Google Secret Manager"


def secret_name(source: str) -> str:
    """Return the name in gcp-secret://NAME, from which a path may have lost a slash.

    Raises:
        UsageError: it is not the name of a secret's version.
    """
    name = source.removeprefix(SCHEME).lstrip("/")
    if not _NAME.fullmatch(name):
        raise UsageError(f"keys are {source!r}, must be gcp-secret://projects/P/secrets/S/versions/V")
    return name


def read_secret(name: str) -> str:
    """Return a secret's version as text.

    Args:
        name: projects/P/secrets/S/versions/V.

    Raises:
        UsageError: the library is missing.
        HushcountError: there are no credentials, the service refuses or gives no valid answer, or the secret is damaged
            or not text; it is never repeated.
    """
    try:
        from google.cloud.secretmanager_v1 import SecretManagerServiceClient
    except ImportError:
        raise cloud.missing_library(_SERVICE, "gcp") from None
    answer = gcp.ask(_SERVICE, _ENDPOINT, SecretManagerServiceClient, "access_secret_version", {"name": name})
    data = gcp.intact(_SERVICE, answer.payload, "data")
    # The decoder's error holds the secret, so that it must not go with ours.
    with suppress(UnicodeDecodeError):
        return data.decode()
    raise HushcountError(f"{_SERVICE} answered without text in the secret's payload")
