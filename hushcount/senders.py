"""How senders are told apart, and how often each gets the cap: of whom a guarantee speaks, and of how many reports.

The contribution cap counts by what a client shows. Where clients show nothing of their own, each report counts as
another client's: the cap binds nobody, and one client may send a value as often as it takes to reveal it. Where they
show a token, its hash is keyed anew for each window of each collector, so that a client gets the cap once for each key
behind a batch: an allotment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard, get_args

from hushcount.errors import UsageError

Authentication = Literal["none", "bearer", "client-token"]
"""What a collector asks of a request, from the weakest: nothing, a token of the app, a secret of the client."""
WAYS: tuple[Authentication, ...] = get_args(Authentication)
WEAKEST: Authentication = "none"
KEY, ALLOTMENTS = "authentication", "allotments"
"""Where a summary says both."""
MOST_ALLOTMENTS = 1 << 16
"""More than any rule or gain by shuffling allows; a batch of more is as one whose clients nobody tells apart."""


@dataclass(frozen=True)
class Senders:
    """Whose reports a batch holds.

    Attributes:
        way: by which they were told apart.
        reports: how many times a client gets the cap of frequency reports, at least 1.
        discovery: the same of discovery reports.
    """

    way: Authentication = WEAKEST
    reports: int = 1
    discovery: int = 1

    @property
    def told_apart(self) -> bool:
        """Whether the cap binds a client."""
        return tells_clients_apart(self.way)

    def allotments(self, stream: Literal["reports", "discovery"]) -> int:
        """Return how many times a client gets the cap of a stream."""
        return self.reports if stream == "reports" else self.discovery

    def data(self) -> dict[str, Any]:
        """Return it as it stands in summaries."""
        return {KEY: self.way, ALLOTMENTS: {"reports": self.reports, "discovery": self.discovery}}


UNBOUND = Senders()
"""Senders of whom nothing is known, so that the cap binds none."""


def weakest(ways: Iterable[Authentication]) -> Authentication:
    """Return the weakest of the ways in which a batch was collected; of none, the weakest that there is."""
    return min(ways, key=WAYS.index, default=WEAKEST)


def as_way(said: object) -> Authentication:
    """Return the way that is said; the weakest where nothing or something else is."""
    return next((way for way in WAYS if way == said), WEAKEST)


def tells_clients_apart(way: Authentication) -> bool:
    """Return whether the cap binds a client."""
    return way == "client-token"


def counted(way: Authentication, reports: object, discovery: object) -> Senders:
    """Return senders of so many allotments of each stream; where these cannot be, of the weakest way: nothing binds.

    Args:
        way: by which they were told apart.
        reports: allotments of frequency reports, from whoever says so.
        discovery: of discovery reports.
    """
    if _is_count(reports) and _is_count(discovery):
        return Senders(way, reports, discovery)
    return UNBOUND


def _is_count(said: object) -> TypeGuard[int]:
    # A bool is an int to Python, and no number to us.
    return type(said) is int and 1 <= said <= MOST_ALLOTMENTS


def recapped(senders: Senders, before: object, cap: int) -> Senders:
    """Return the senders of reports that were forwarded under another cap, in allotments of this one.

    Args:
        senders: as they were forwarded.
        before: the cap under which they were, from whoever says so; where it is none, nothing binds a client.
        cap: of the campaign that they are read by now.
    """
    if not _is_count(before):
        return UNBOUND
    reports, discovery = (-(-before * times // cap) for times in (senders.reports, senders.discovery))
    return counted(senders.way, reports, discovery)


def told_in(summary: Mapping[str, Any]) -> Senders:
    """Return whose reports a summary says that there are; UNBOUND where it does not say all of it."""
    times = summary.get(ALLOTMENTS)
    if not isinstance(times, Mapping):
        return UNBOUND
    return counted(as_way(summary.get(KEY)), times.get("reports"), times.get("discovery"))


def require_told_apart(senders: Senders, uncapped: bool) -> None:
    """Refuse discovery where any one client can reveal a value, unless that is wanted.

    Args:
        senders: of the input.
        uncapped: whether the operator says that discovery without a cap is wanted.

    Raises:
        UsageError: it is not.
    """
    if not senders.told_apart and not uncapped:
        raise UsageError(
            f"senders were told apart by authentication {senders.way!r}, must be 'client-token' for discovery: any one "
            "client could reveal a value by sending it again and again; collect with client-token (hushcount encode "
            "--clients), or give --uncapped, in a deployment file uncapped_discovery = true, if that is wanted"
        )
