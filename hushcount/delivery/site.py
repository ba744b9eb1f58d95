"""The address of a collector or an evaluator, and how to reach it."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from hushcount.errors import UsageError

_MOST_SECONDS = 600.0


@dataclass(frozen=True)
class Site:
    """One collector or one evaluator.

    Args:
        address: the address, as in https://collector.example.com, perhaps with a port and a path. Plain http is
            permitted only if the address is this machine.
        name: the collector's name in the campaign file, if the campaign has several collectors. Tokens are derived by
            this name and not by the address, so a new address does not change the client's token.
        plain: whether to permit plain http to other machines too. Anyone on the network path then sees the client token
            and can alter answers, but reports are sealed and cannot be read.
        environment_proxies: whether to use the proxy that environment variables name (HTTPS_PROXY, NO_PROXY).
        app_token: the token of the app, for collectors that demand such a token (`authentication = "bearer"`).
        context: TLS context with the certificates to trust; by default the certificates that the system trusts.
        seconds: how long one exchange may take from the first byte sent to the last byte received, and also how long
            each attempt to connect may take.
    """

    address: str
    name: str | None = None
    plain: bool = False
    environment_proxies: bool = False
    app_token: str | None = field(default=None, repr=False)
    context: ssl.SSLContext | None = field(default=None, repr=False, compare=False)
    seconds: float = 30.0

    def __post_init__(self) -> None:
        parts = self._parts()
        if parts.scheme == "http" and not self.plain and not _is_here(self.host):
            raise UsageError(
                f"site is {self.address}, must begin with https://: reports travel by TLS; Site(address, plain=True) "
                "permits plain http"
            )
        if not 0.0 < self.seconds <= _MOST_SECONDS:
            raise UsageError(f"seconds is {self.seconds}, must be above 0 and at most {_MOST_SECONDS:g}")

    @property
    def by_tls(self) -> bool:
        return self._parts().scheme == "https"

    @property
    def host(self) -> str:
        """Name or IP address of the machine."""
        return self._parts().hostname or ""

    @property
    def port(self) -> int:
        return self._parts().port or (443 if self.by_tls else 80)

    @property
    def path(self) -> str:
        """The prefix of all paths of the collector's HTTP interface; usually empty."""
        return self._parts().path.rstrip("/")

    def _parts(self) -> SplitResult:
        try:
            parts = urlsplit(self.address)
            named = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            named = False
        # User names, queries and control characters are refused, because they would become parts of requests.
        if not named or not self.address.isascii() or not self.address.isprintable() or set(self.address) & set("@?# "):
            raise UsageError("site must be an address such as https://collector.example.com, without user name, ? or #")
        return parts


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
