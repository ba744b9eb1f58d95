"""Google Secret Manager by its REST interface, version 1: read one version of a secret."""

from __future__ import annotations

import base64
import os
import re
from urllib.parse import quote

from hushcount.errors import HushcountError, UsageError
from keys.gcp_credentials import access_token
from keys.rest import call, endpoint

SCHEME = "gcp-secret:"
_WORD = r"[A-Za-z0-9_.:-]{1,255}"
_NAME = re.compile(rf"projects/{_WORD}/secrets/{_WORD}/versions/(?:[1-9][0-9]{{0,9}}|latest)")
_ENDPOINT = "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER"
_SERVICE = "Google Secret Manager"


def secret_name(source: str) -> str:
    """Return the name in gcp-secret://NAME, from which a path may have lost a slash.

    Raises:
        UsageError: it is no name of a secret's version.
    """
    name = source.removeprefix(SCHEME).lstrip("/")
    if not _NAME.fullmatch(name):
        raise UsageError(f"keys are {source!r}, must be gcp-secret://projects/P/secrets/S/versions/V")
    return name


def read_secret(name: str) -> str:
    """Return what `projects.secrets.versions.access` gives, as text.

    Args:
        name: projects/P/secrets/S/versions/V.

    Raises:
        UsageError: there are no credentials.
        HushcountError: the service refuses or does not answer, or the secret is no text; it is never repeated.
    """
    address = endpoint(os.environ.get(_ENDPOINT) or "https://secretmanager.googleapis.com", _ENDPOINT)
    headers = {"Authorization": f"Bearer {access_token(_SERVICE)}"}
    data = call(_SERVICE, address, f"/v1/{quote(name)}:access", headers, None)
    payload = data.get("payload")
    try:
        return base64.b64decode(payload["data"], validate=True).decode()  # type: ignore[index]  # checked by failing
    except (KeyError, TypeError, ValueError):
        raise HushcountError(f"{_SERVICE} answered without text in the secret's payload") from None
