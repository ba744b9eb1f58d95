"""What all key services share: time limits, address checks, silenced loggers, and errors of one sentence.

No error repeats the message of a library or a service, because that message may hold the request, and so a secret.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import re
from urllib.parse import urlsplit

from hushcount.errors import HushcountError, UsageError

SECONDS = 10.0
"""The longest time, in seconds, that one request waits for an answer."""
ATTEMPTS = 3
"""The most times that a request is sent to a busy service, including the first time."""


def missing_library(service: str, extra: str) -> UsageError:
    """Return the error that the library of a service is not installed."""
    return UsageError(f"the library of {service} is not installed: pip install 'hushcount-server[{extra}]'")


def address_in(variable: str) -> str | None:
    """Return the service address in an environment variable, checked by `require_safe`; None if it is not set."""
    url = os.environ.get(variable) or None
    if url is not None:
        require_safe(url, variable)
    return url


def require_safe(url: str, name: str) -> None:
    """Raise UsageError unless an address is https://, or http:// on this machine, so that no secret is sent openly."""
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.scheme in ("https", "http") and parts.port != 0
    except ValueError:
        usable = False
    if not usable or "@" in url:
        # The error does not repeat the address, because the address may hold a password before the @.
        raise UsageError(f"{name} is not a valid address, must be https://host or https://host:port")
    if parts.scheme == "http" and not _is_loopback(str(parts.hostname)):
        raise UsageError(f"{name} is {url!r}, must begin with https://: http:// is allowed for this machine only")


def silence(*libraries: str) -> None:
    """Keep libraries from logging below ERROR: at DEBUG they log requests, with keys and credentials."""
    for name in list(logging.root.manager.loggerDict):
        if f"{name}.".startswith(tuple(f"{library}." for library in libraries)):
            logging.getLogger(name).setLevel(logging.ERROR)


def refusal(service: str, host: str, status: int, code: object) -> HushcountError:
    """Return the error for an HTTP refusal; it repeats the service's error code if that code is one plain word."""
    word = f" {code}" if isinstance(code, str) and re.fullmatch(r"[A-Za-z_]{1,64}", code) else ""
    return HushcountError(f"{service} at {host} answered {status}{word}")


def failure(service: str, host: str, error: BaseException) -> HushcountError:
    """Return the error for a service that gave no valid answer."""
    return HushcountError(f"{service} at {host} gave no valid answer: {reason(error)}")


def reason(error: BaseException) -> str:
    """Return the operating system's text on a library's exception, or the exception's type if there is no such text."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return str(cause.strerror)
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
