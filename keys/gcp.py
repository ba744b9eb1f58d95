"""Calls of Google's services by their libraries, over REST; credentials are those that Google's libraries find."""

from __future__ import annotations

from itertools import count
from typing import Any
from urllib.parse import urlsplit

from hushcount.errors import HushcountError
from keys import cloud

_LOGGERS = ("google.auth", "google.cloud.kms_v1", "google.cloud.secretmanager_v1")


def ask(service: str, variable: str, kind: Any, method: str, request: dict[str, Any]) -> Any:
    """Return the answer of a service.

    Args:
        service: what an error calls it.
        variable: environment variable that may hold another address of it.
        kind: the library's class of clients.
        method: what to call.
        request: its fields.

    Raises:
        UsageError: the address is not safe.
        HushcountError: there are no credentials, or the service refuses or gives no valid answer.
    """
    from google.api_core.exceptions import GoogleAPICallError, ServerError, TooManyRequests
    from google.api_core.retry import Retry
    from google.auth.exceptions import GoogleAuthError
    from requests import exceptions as requests_exceptions

    cloud.silence(*_LOGGERS)
    address = cloud.address_in(variable)
    where = urlsplit(address).netloc if address else kind.DEFAULT_ENDPOINT
    attempts = count(1)

    def is_worth_another(error: Exception) -> bool:
        unheard = (requests_exceptions.ConnectionError, requests_exceptions.Timeout)
        temporary = isinstance(error, (ServerError, TooManyRequests, *unheard))
        return temporary and next(attempts) < cloud.ATTEMPTS

    failed: HushcountError
    try:
        client = kind(transport="rest", client_options={"api_endpoint": address} if address else None)
        # A redirect would send the secret to whom it names.
        client.transport._session.max_redirects = 0
        retry = Retry(predicate=is_worth_another, initial=0.2, maximum=1.0)
        return getattr(client, method)(request=request, retry=retry, timeout=cloud.SECONDS)
    except GoogleAuthError as error:
        failed = HushcountError(
            f"no credentials for {service}: {cloud.reason(error)}; run where a service account is attached, or run "
            "gcloud auth application-default login"
        )
    except GoogleAPICallError as error:
        failed = cloud.refusal(service, where, int(error.code), _status_in(error.response))
    except Exception as error:
        failed = cloud.failure(service, where, error)
    # Outside of the handlers, so that the library's error, which holds request and answer, does not go with it.
    raise failed


def checksum(data: bytes) -> int:
    """Return the CRC32C by which Google's services and their callers find damage."""
    import google_crc32c

    return int(google_crc32c.value(data))


def intact(service: str, answer: Any, field: str) -> bytes:
    """Return the bytes in a field of an answer.

    Raises:
        HushcountError: there are none, or they do not match the CRC32C that came with them; they are not repeated.
    """
    data = bytes(getattr(answer, field))
    if not data:
        raise HushcountError(f"{service} answered without {field}")
    if getattr(answer, f"{field}_crc32c") != checksum(data):
        raise HushcountError(f"{service} answered with a {field} that does not match its CRC32C: try again")
    return data


def _status_in(answer: Any) -> object:
    """Return the word for an error in an answer, such as PERMISSION_DENIED, or None."""
    try:
        return answer.json()["error"]["status"]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
