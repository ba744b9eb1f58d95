"""Google's KMS and Secret Manager through Google's libraries, over REST; these libraries find the credentials."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from importlib import import_module
from itertools import count
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from hushcount.errors import HushcountError, UsageError
from keys import cloud

KMS_SCHEME = "gcp-kms://"
SECRET_SCHEME = "gcp-secret:"  # noqa: S105  # no password
_WORD = r"[A-Za-z0-9_.:-]{1,128}"
_KEY_NAME = re.compile(rf"projects/{_WORD}/locations/{_WORD}/keyRings/{_WORD}/cryptoKeys/{_WORD}")
_LONG_WORD = r"[A-Za-z0-9_.:-]{1,255}"
_SECRET_NAME = re.compile(rf"projects/{_LONG_WORD}/secrets/{_LONG_WORD}/versions/(?:[1-9][0-9]{{0,9}}|latest)")
_LOGGERS = ("google.auth", "google.cloud.kms_v1", "google.cloud.secretmanager_v1")


class _Service(NamedTuple):
    """A Google service: its name in errors, the variable that may set another address, and the client class."""

    name: str
    variable: str
    module: str
    client: str

    def client_class(self) -> Any:
        try:
            return getattr(import_module(self.module), self.client)
        except ImportError:
            raise cloud.missing_library(self.name, "gcp") from None


_KMS = _Service(
    "Google Cloud KMS",
    "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS",
    "google.cloud.kms_v1",
    "KeyManagementServiceClient",
)
_SECRETS = _Service(
    "Google Secret Manager",
    "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER",
    "google.cloud.secretmanager_v1",
    "SecretManagerServiceClient",
)


def encrypt(name: str, plain: bytes, context: dict[str, str]) -> bytes:
    """Encrypt up to 64 KiB with the key of this resource name; decrypting needs the same context."""
    answer = _crypt(name, "encrypt", "plaintext", plain, context)
    if not (answer.verified_plaintext_crc32c and answer.verified_additional_authenticated_data_crc32c):
        raise HushcountError(f"{_KMS.name} did not confirm the CRC32C of what it encrypted: try again")
    if not answer.name.startswith(f"{name}/cryptoKeyVersions/"):
        raise HushcountError(f"{_KMS.name} encrypted with another key than {name}")
    return _intact(_KMS, answer, "ciphertext")


def decrypt(name: str, wrapped: bytes, context: dict[str, str]) -> bytes:
    """Return what `encrypt` encrypted with the same key and context."""
    return _intact(_KMS, _crypt(name, "decrypt", "ciphertext", wrapped, context), "plaintext")


def secret_name(source: str) -> str:
    """Return the resource name in gcp-secret://NAME, also if a command's path option removed one of the slashes."""
    name = source.removeprefix(SECRET_SCHEME).lstrip("/")
    if not _SECRET_NAME.fullmatch(name):
        raise UsageError(f"keys are {source!r}, must be gcp-secret://projects/P/secrets/S/versions/V")
    return name


def read_secret(name: str) -> str:
    """Return the text that a version of a secret holds."""
    answer = _ask(_SECRETS, _SECRETS.client_class(), "access_secret_version", {"name": name})
    data = _intact(_SECRETS, answer.payload, "data")
    # UnicodeDecodeError holds the secret, so the error that is raised below must not carry it as its context.
    with suppress(UnicodeDecodeError):
        return data.decode()
    raise HushcountError(f"{_SECRETS.name} answered without text in the secret's payload")


def _crypt(name: str, method: str, field: str, value: bytes, context: dict[str, str]) -> Any:
    if not _KEY_NAME.fullmatch(name):
        raise UsageError(f"key of Google Cloud KMS is {name!r}, must be projects/P/locations/L/keyRings/R/cryptoKeys/K")
    client_class = _KMS.client_class()
    authenticated = json.dumps(context, sort_keys=True, separators=(",", ":")).encode()
    request = {
        "name": name,
        field: value,
        f"{field}_crc32c": _checksum(value),
        "additional_authenticated_data": authenticated,
        "additional_authenticated_data_crc32c": _checksum(authenticated),
    }
    return _ask(_KMS, client_class, method, request)


def _ask(service: _Service, client_class: Any, method: str, request: dict[str, Any]) -> Any:
    from google.api_core.exceptions import GoogleAPICallError, ServerError, TooManyRequests
    from google.api_core.retry import Retry
    from google.auth.exceptions import GoogleAuthError
    from requests import exceptions as requests_exceptions

    cloud.silence(*_LOGGERS)
    address = cloud.address_in(service.variable)
    host = urlsplit(address).netloc if address else client_class.DEFAULT_ENDPOINT
    attempts = count(1)

    def is_worth_another(error: Exception) -> bool:
        unheard = (requests_exceptions.ConnectionError, requests_exceptions.Timeout)
        temporary = isinstance(error, (ServerError, TooManyRequests, *unheard))
        return temporary and next(attempts) < cloud.ATTEMPTS

    failed: HushcountError
    try:
        client = client_class(transport="rest", client_options={"api_endpoint": address} if address else None)
        # Following a redirect would send the secret to another host.
        client.transport._session.max_redirects = 0
        retry = Retry(predicate=is_worth_another, initial=0.2, maximum=1.0)
        return getattr(client, method)(request=request, retry=retry, timeout=cloud.SECONDS)
    except GoogleAuthError as error:
        failed = HushcountError(
            f"no credentials for {service.name}: {cloud.reason(error)}; run where a service account is attached, or "
            "run gcloud auth application-default login"
        )
    except GoogleAPICallError as error:
        failed = cloud.refusal(service.name, host, int(error.code), _status_in(error.response))
    except Exception as error:
        failed = cloud.failure(service.name, host, error)
    # The error is raised outside the handlers, so that it does not carry the library's exception, which holds the
    # request and the answer.
    raise failed


def _checksum(data: bytes) -> int:
    import google_crc32c

    return int(google_crc32c.value(data))


def _intact(service: _Service, answer: Any, field: str) -> bytes:
    """Return a field of a service's answer, after checking it against the CRC32C in the same answer."""
    data = bytes(getattr(answer, field))
    if not data:
        raise HushcountError(f"{service.name} answered without {field}")
    if getattr(answer, f"{field}_crc32c") != _checksum(data):
        raise HushcountError(f"{service.name} answered with a {field} that does not match its CRC32C: try again")
    return data


def _status_in(answer: Any) -> object:
    """Return the name of an error in a service's answer, such as PERMISSION_DENIED, or None."""
    try:
        return answer.json()["error"]["status"]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
