"""How senders are told apart, and how many times each sender gets the cap; guarantees depend on both.

Without client tokens, each report counts as the report of another client, so the cap limits nobody, and one client may
send a value often enough to reveal it. Each window of each collector hashes tokens under a new key. So a client gets
the cap once for each key with which tokens of a batch were hashed. Getting the cap once is called an allotment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard, get_args

from hushcount.errors import UsageError

Authentication = Literal["none", "bearer", "client-token", "privacy-pass"]
"""What a collector demands of a request, the weakest demand first: nothing, the app's token, a token that the client
made, a token that an issuer signed.
"""
WAYS: tuple[Authentication, ...] = get_args(Authentication)
WEAKEST: Authentication = "none"
KEY, ALLOTMENTS = "authentication", "allotments"
"""Keys of a summary under which the summary states the senders."""
MOST_ALLOTMENTS = 1 << 16
"""A number of allotments that no keep rule or amplification allows; with more allotments, clients count as not told
apart.
"""


@dataclass(frozen=True)
class Senders:
    """How the senders of a batch were told apart, and how many times (at least 1) each gets the cap of a stream."""

    way: Authentication = WEAKEST
    reports: int = 1
    discovery: int = 1

    @property
    def told_apart(self) -> bool:
        """Whether senders were told apart by client tokens, so that the cap limits each client."""
        return tells_clients_apart(self.way)

    def allotments(self, stream: Literal["reports", "discovery"]) -> int:
        return self.reports if stream == "reports" else self.discovery

    def data(self) -> dict[str, Any]:
        """Return the fields by which a summary states how senders were told apart."""
        return {KEY: self.way, ALLOTMENTS: {"reports": self.reports, "discovery": self.discovery}}


UNBOUND = Senders()
"""Senders about whom nothing is known, so that the cap limits nobody."""


def weakest(ways: Iterable[Authentication]) -> Authentication:
    """Return the weakest way in `ways`; if `ways` is empty, return the weakest way that exists."""
    return min(ways, key=WAYS.index, default=WEAKEST)


def as_way(said: object) -> Authentication:
    """Return the way with this name; the weakest way if no way has this name."""
    return next((way for way in WAYS if way == said), WEAKEST)


def tells_clients_apart(way: Authentication) -> bool:
    """Return whether the cap limits each client if senders were told apart in this way."""
    return WAYS.index(way) >= WAYS.index("client-token")


def counted(way: Authentication, reports: object, discovery: object) -> Senders:
    """Return senders with the given allotments of each stream; UNBOUND if a number that a party states is invalid."""
    if _is_count(reports) and _is_count(discovery):
        return Senders(way, reports, discovery)
    return UNBOUND


def _is_count(said: object) -> TypeGuard[int]:
    # isinstance is not used, because a bool is an int too.
    return type(said) is int and 1 <= said <= MOST_ALLOTMENTS


def recapped(senders: Senders, before: object, cap: int) -> Senders:
    """Return the senders of reports that were forwarded under the cap `before`, with allotments converted to `cap`.

    UNBOUND if `before`, which may come from another party, is not a valid count.
    """
    if not _is_count(before):
        return UNBOUND
    reports, discovery = (-(-before * times // cap) for times in (senders.reports, senders.discovery))
    return counted(senders.way, reports, discovery)


def told_in(summary: Mapping[str, Any]) -> Senders:
    """Return the senders that a summary states; UNBOUND if the summary lacks a part of this statement."""
    times = summary.get(ALLOTMENTS)
    if not isinstance(times, Mapping):
        return UNBOUND
    return counted(as_way(summary.get(KEY)), times.get("reports"), times.get("discovery"))


def require_told_apart(senders: Senders, uncapped: bool) -> None:
    """Raise UsageError if a single client could reveal a value, unless the operator permits discovery without a cap."""
    if not senders.told_apart and not uncapped:
        raise UsageError(
            f"senders were told apart by authentication {senders.way!r}, must be 'client-token' or 'privacy-pass' for "
            "discovery, because otherwise a single client could reveal a value by sending it repeatedly: collect with "
            "client-token (hushcount job encode --clients), or allow this with --uncapped (uncapped_discovery = true "
            "in a deployment file)"
        )
