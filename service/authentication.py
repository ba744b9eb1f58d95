"""Decides who may send, and tells clients apart for the contribution cap; each way of doing so is a small class."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from pathlib import Path

from hushcount.errors import UsageError
from hushcount.formats.client_files import read_private
from hushcount.formats.reading import RECORD_BYTES
from hushcount.senders import Authentication
from service.passes import Passes, no_pass
from service.refusals import UNAUTHORISED, Refused
from service.settings import ServicePart

_TOKEN = re.compile(rb"[\x21-\x7e]{16,256}")
_LINE = re.compile(r"([a-z0-9][a-z0-9._-]{0,63})\s+(blake2b|sha256):([0-9a-f]{64})")


@dataclass(frozen=True)
class Anyone:
    """Anyone who reaches the service may send.

    The contribution cap has no effect, because each report counts as a report of a new client.
    """

    way: Authentication = "none"
    header: bytes | None = None

    def client(self, value: bytes | None, passes: Passes | None, now: float) -> bytes | None:
        return None


@dataclass(frozen=True)
class BearerToken:
    """Apps with a token may send; all clients of an app share its token.

    The contribution cap has no effect, because clients cannot be told apart.

    Attributes:
        digests: for each token, name of the hash (blake2b or sha256), and its 256-bit digest.
    """

    digests: tuple[tuple[str, bytes], ...]
    way: Authentication = "bearer"
    header: bytes | None = b"authorization"

    def client(self, value: bytes | None, passes: Passes | None, now: float) -> bytes | None:
        self.require_shown(value)
        return None

    def require_shown(self, value: bytes | None) -> None:
        """Raise Refused unless the header has one of the tokens."""
        if not self.is_shown(value):
            raise _unauthorised("Send the token in the header Authorization: Bearer TOKEN.", b"Bearer")

    def is_shown(self, value: bytes | None) -> bool:
        """Return whether the header has one of the tokens."""
        scheme, _, token = (value or b"").partition(b" ")
        shown = {"blake2b": hashlib.blake2b(token, digest_size=32).digest(), "sha256": hashlib.sha256(token).digest()}
        # The token is compared with every digest, in constant time, so the time does not show how close a guess is.
        matches = [hmac.compare_digest(shown[name], digest) for name, digest in self.digests]
        return scheme.lower() == b"bearer" and _TOKEN.fullmatch(token) is not None and any(matches)


@dataclass(frozen=True)
class ClientToken:
    """Each client sends its own secret token; the contribution cap counts reports by a keyed hash of this token."""

    way: Authentication = "client-token"
    header: bytes | None = b"client-token"

    def client(self, value: bytes | None, passes: Passes | None, now: float) -> bytes | None:
        if value is None or not _TOKEN.fullmatch(value):
            raise _unauthorised(
                "Send this client's own random token in the header Client-Token: 16 to 256 visible ASCII characters, "
                "the same ones with every report.",
                b"Client-Token",
            )
        return value


@dataclass(frozen=True)
class PrivacyPass:
    """Each client shows a pass, which an issuer signed; its nonce is the client's token for the contribution cap."""

    way: Authentication = "privacy-pass"
    header: bytes | None = b"authorization"

    def client(self, value: bytes | None, passes: Passes | None, now: float) -> bytes | None:
        if value is None or passes is None:
            raise no_pass()
        return passes.redeemed(value, now)


Authenticator = Anyone | BearerToken | ClientToken | PrivacyPass
"""A way to authorise a request. `way` is the name of this way in settings and manifests. `header` is the name, in lower
case, of the header with the token, and `client` takes the value of this header, the passes of the campaign file, and
the time in seconds since 1970. `client` returns the client's own token, or None if clients have no tokens of their own;
or it raises Refused."""


def authenticator(settings: ServicePart, directory: Path) -> Authenticator:
    """Return the way of authentication that the settings name; paths in the settings are relative to the directory.

    Raises:
        UsageError: the file of tokens is missing, invalid or open to others.
    """
    if settings.authentication == "client-token":
        return ClientToken()
    if settings.authentication == "privacy-pass":
        return PrivacyPass()
    if settings.authentication == "bearer":
        return BearerToken(read_digests(directory / (settings.tokens or "")))
    return Anyone()


def bearer(tokens: str | None, directory: Path) -> BearerToken | None:
    """Return a check for the tokens in a file of the directory, or None without a file; raises as `authenticator`."""
    return None if tokens is None else BearerToken(read_digests(directory / tokens))


def read_digests(path: Path) -> tuple[tuple[str, bytes], ...]:
    """Read digests of tokens from a private file: each line is `APP blake2b:HEX`, `APP sha256:HEX` or a # comment."""
    raw = read_private(path, "tokens", RECORD_BYTES)
    if raw is None:
        raise UsageError(f"cannot read tokens file {path}: No such file or directory")
    try:
        lines = raw.decode().splitlines()
    except UnicodeDecodeError:
        raise UsageError(f"cannot read tokens file {path}: not UTF-8") from None
    digests = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise UsageError(f"line {number} of tokens file {path} must be APP sha256:HEX or APP blake2b:HEX")
        digests.append((match[2], bytes.fromhex(match[3])))
    if not digests:
        raise UsageError(f"tokens file {path} holds no digest: add a line APP sha256:HEX for each app")
    return tuple(digests)


def _unauthorised(detail: str, scheme: bytes) -> Refused:
    return Refused(UNAUTHORISED, detail, ((b"www-authenticate", scheme),))
