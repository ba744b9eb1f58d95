"""What the key services have in common: limits, addresses, silent libraries, and errors of one sentence."""

from __future__ import annotations

import ipaddress
import logging
import os
import re
from urllib.parse import urlsplit

from hushcount.errors import HushcountError, UsageError

SECONDS = 10.0
"""How long one attempt waits for an answer."""
ATTEMPTS = 3
"""How often a busy service is asked."""


def missing_library(service: str, extra: str) -> UsageError:
    """Return the error for a service whose library is not installed."""
    return UsageError(f"the library of {service} is not installed: pip install 'hushcount-server[{extra}]'")


def address_in(variable: str) -> str | None:
    """Return the address of a service that an environment variable holds, or None if it is not set.

    Raises:
        UsageError: secrets must not be sent to it; see `require_safe`.
    """
    url = os.environ.get(variable) or None
    if url is not None:
        require_safe(url, variable)
    return url


def require_safe(url: str, name: str) -> None:
    """Refuse an address to which a secret would travel unencrypted.

    Args:
        url: must be https://host, or http:// of this machine.
        name: what the error calls it.

    Raises:
        UsageError: it is another address.
    """
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.scheme in ("https", "http") and parts.port != 0
    except ValueError:
        usable = False
    if not usable or "@" in url:
        # Not repeated: it may hold a password before the @.
        raise UsageError(f"{name} is not a valid address, must be https://host, with :port if need be")
    if parts.scheme == "http" and not _is_loopback(str(parts.hostname)):
        raise UsageError(f"{name} is {url!r}, must be https://: http:// is allowed on this machine only")


def silence(*libraries: str) -> None:
    """Keep libraries from logging anything but errors: at DEBUG they log what they send, keys and credentials."""
    for name in list(logging.root.manager.loggerDict):
        if f"{name}.".startswith(tuple(f"{library}." for library in libraries)):
            logging.getLogger(name).setLevel(logging.ERROR)


def refusal(service: str, where: str, status: int, code: object) -> HushcountError:
    """Return the error for a service that refused; its message is not repeated, it may hold what was asked.

    Args:
        service: what the error calls it.
        where: its host.
        status: of HTTP.
        code: the service's word for the reason; repeated if it is a plain word.
    """
    word = f" {code}" if isinstance(code, str) and re.fullmatch(r"[A-Za-z_]{1,64}", code) else ""
    return HushcountError(f"{service} at {where} answered {status}{word}")


def failure(service: str, where: str, error: BaseException) -> HushcountError:
    """Return the error for a service without a valid answer; what its library says is not repeated, only the reason."""
    return HushcountError(f"{service} at {where} gave no valid answer: {reason(error)}")


def reason(error: BaseException) -> str:
    """Return the system's reason for a library's error, or its type where there is none."""
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
