"""Who may read the served pages: users of this machine, holders of a token, or whom a reverse proxy has logged in."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from hushcount.errors import UsageError
from pipelines.deployment.parts import LOOPBACK
from pipelines.deployment.settings import Deployment
from pipelines.handover.evaluator_address import read_secret_text

_TOKEN = re.compile(r"[!-~]{32,256}")
COOKIE = "hushcount"
_DAYS = 30


@dataclass(frozen=True)
class Login:
    """The rule for one deployment, of which nothing is in its `repr`.

    Attributes:
        hosts: the values of the header `Host` that are answered. Without this check a page of another site could point
            its own host name to this server, and read the answers.
        token: the secret; None: no token is asked for.
        user_header: the header in which the reverse proxy names the user, in lower case; None: no user is asked for.
        secure: whether browsers send the cookie over https only.
    """

    hosts: frozenset[str]
    token: bytes | None
    user_header: str | None
    secure: bool

    def __repr__(self) -> str:
        return "Login(...)"

    def admits(self, headers: Mapping[str, str]) -> bool:
        """Return whether a request with these headers (names in lower case) may read."""
        if self.user_header is not None:
            return bool(headers.get(self.user_header, "").strip())
        if self.token is None:
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(given.strip()):
            return True
        return hmac.compare_digest(_cookie_in(headers).encode(), self._mark.encode())

    def cookie(self, form: bytes) -> str | None:
        """Return the header Set-Cookie for a submitted login form; None: its token is wrong."""
        if self.token is None or not self._is_token(field_of(form, "token").strip()):
            return None
        secure = "; Secure" if self.secure else ""
        return f"{COOKIE}={self._mark}; Path=/; Max-Age={_DAYS * 86_400}; HttpOnly; SameSite=Strict{secure}"

    @property
    def _mark(self) -> str:
        """The value of the cookie, from which nobody learns the token."""
        return hmac.new(self.token or b"", b"hushcount dashboard cookie", hashlib.sha256).hexdigest()

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token or b"")


def login_of(deployment: Deployment, port: int) -> Login:
    """Return the rule that the deployment file states for a server on this port.

    Raises:
        UsageError: the token cannot be read, or is none of 32 to 256 visible ASCII characters.
    """
    own, token = deployment.file.dashboard, None
    if own.token is not None:
        token = read_secret_text(str(deployment.key_source(own.token)), "token of the dashboard")
        if not _TOKEN.fullmatch(token):
            raise UsageError(
                f"dashboard.token has {len(token)} characters, must be 32 to 256 visible ASCII characters: put random "
                "ones there, as of `openssl rand -hex 32`"
            )
    hosts = {f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host in LOOPBACK}
    if own.address is not None:
        hosts.add(urlsplit(own.address).netloc.removesuffix(":443"))
    header = None if own.user_header is None else own.user_header.lower()
    return Login(frozenset(hosts), None if token is None else token.encode(), header, secure=own.address is not None)


def field_of(query: bytes, name: str) -> str:
    """Return a field of a query or a form; empty: it is not there, or there are more than 4 fields."""
    try:
        return parse_qs(query.decode("utf-8", "replace"), max_num_fields=4).get(name, [""])[0]
    except ValueError:
        return ""


def _cookie_in(headers: Mapping[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value
