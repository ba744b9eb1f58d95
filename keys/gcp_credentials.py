"""Who asks Google's services: an access token of the environment, or of the machine's service account."""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import urlsplit

from hushcount.errors import HushcountError, UsageError
from keys.rest import call, plain_word

_TOKEN = "GOOGLE_OAUTH_ACCESS_TOKEN"  # noqa: S105  # the variable's name
_METADATA = "GCE_METADATA_HOST"
_TOKEN_PATH = "/computeMetadata/v1/instance/service-accounts/default/token"  # noqa: S105  # a path


def access_token(service: str) -> str:
    """Return an access token: that of the environment, or of the machine's service account.

    Args:
        service: which service it is for, for the messages.

    Raises:
        UsageError: the metadata server's address is none.
        HushcountError: there are no credentials.
    """
    given = os.environ.get(_TOKEN)
    if given:
        return _checked(given.strip(), service)
    host = os.environ.get(_METADATA) or "metadata.google.internal"
    if not re.fullmatch(r"[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?", host):
        raise UsageError(f"{_METADATA} is {host!r}, must be a host, with :port if need be")
    # It speaks plain HTTP, inside the machine's own network.
    address = urlsplit(f"http://{host}")
    try:
        data = call("the metadata server", address, _TOKEN_PATH, {"Metadata-Flavor": "Google"}, None)
    except HushcountError as error:
        raise HushcountError(
            f"no credentials for {service}: {error}; run where a service account is attached, or set {_TOKEN} "
            "to what gcloud auth print-access-token prints"
        ) from None
    return _checked(data.get("access_token"), service)


def _checked(token: Any, service: str) -> str:
    if not plain_word(token):
        raise HushcountError(f"the access token for {service} is none: it must be printable ASCII without spaces")
    return str(token)
