"""Calls of a key service's REST interface: JSON over HTTPS, no redirects, no proxies, bodies in no message."""

from __future__ import annotations

import base64
import http.client
import ipaddress
import re
import time
from typing import Any
from urllib.parse import SplitResult, urlsplit

from hushcount.errors import FormatError, HushcountError, UsageError
from hushcount.formats.reading import parse_object

_TIMEOUT = 10.0
_PAUSES = (0.2, 1.0)
"""Seconds before it is tried again."""
_TEMPORARY = (429, 500, 502, 503, 504)
_LONGEST = 1 << 20


def endpoint(url: str, variable: str) -> SplitResult:
    """Return the parts of a service's address.

    Args:
        url: https://host[:port][/path], or http:// of this machine.
        variable: the environment variable that it may have come from, for the message.

    Raises:
        UsageError: it is no such address.
    """
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.scheme in ("https", "http") and parts.port != 0
    except ValueError:
        usable = False
    if not usable or "@" in url:
        # Not repeated: who puts a password before an @ does not want to read it in a log.
        raise UsageError(f"{variable} is no address, must be https://host, with :port if need be")
    if parts.scheme == "http" and not _is_loopback(str(parts.hostname)):
        raise UsageError(f"{variable} is {url!r}, must be https://: http:// is for this machine alone")
    return parts


def plain_word(text: object) -> bool:
    """Return whether a credential is printable ASCII without spaces: what is not would be quoted in an exception."""
    return isinstance(text, str) and re.fullmatch(r"[\x21-\x7e]{1,16384}", text) is not None


def call(service: str, address: SplitResult, path: str, headers: dict[str, str], body: bytes | None) -> dict[str, Any]:
    """Post a body, or get where it is None, and return the JSON object of the answer.

    Args:
        service: what a message calls it.
        address: of `endpoint`; its path comes before `path`.
        path: what is asked.
        headers: with the credentials; they are in no message.
        body: JSON.

    Raises:
        HushcountError: no answer, another status than 200, or no JSON object; of the answer only the status and the
            error's code are repeated.
    """
    for pause in (*_PAUSES, None):
        try:
            status, answer = _once(address, path, headers, body)
        except (OSError, http.client.HTTPException) as error:
            if pause is None:
                reason = getattr(error, "strerror", None) or type(error).__name__
                raise HushcountError(f"{service} at {address.netloc} does not answer: {reason}") from None
        else:
            if status not in _TEMPORARY or pause is None:
                break
        time.sleep(pause)
    try:
        data = parse_object(answer, service)
    except FormatError:
        data = None
    if status != 200 or data is None:
        raise HushcountError(f"{service} at {address.netloc} answered {status}{_code(data)}")
    return data


def bytes_in(service: str, data: dict[str, Any], field: str) -> bytes:
    """Return the bytes that a field of an answer holds in base64.

    Raises:
        HushcountError: it is not there or holds none; it is not repeated.
    """
    try:
        return base64.b64decode(data[field], validate=True)
    except (KeyError, TypeError, ValueError):
        raise HushcountError(f"{service} answered without {field}") from None


def _once(address: SplitResult, path: str, headers: dict[str, str], body: bytes | None) -> tuple[int, bytes]:
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(str(address.hostname), address.port, timeout=_TIMEOUT)
    try:
        connection.request("GET" if body is None else "POST", address.path.rstrip("/") + path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read(_LONGEST)
    finally:
        connection.close()


def _code(data: Any) -> str:
    """Return the error's code in an answer, as Google's and Amazon's have it, if it is a plain word."""
    if not isinstance(data, dict):
        return ""
    error = data.get("error")
    code = error.get("status") if isinstance(error, dict) else data.get("__type")
    word = str(code).rpartition("#")[2]
    return f" {word}" if code and re.fullmatch(r"[A-Za-z_]{1,64}", word) else ""


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
