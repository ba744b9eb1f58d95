"""How senders are told apart, which decides of whom a guarantee speaks: of one client, or only of one report.

The contribution cap counts by what a client shows. Where clients show nothing of their own, each report counts as
another client's: the cap binds nobody, and one client may send a value as often as it takes to reveal it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from hushcount.errors import UsageError

Authentication = Literal["none", "bearer", "client-token"]
"""What a collector asks of a request, from the weakest: nothing, a token of the app, a secret of the client."""
WEAKEST: Authentication = "none"
KEY = "authentication"
"""Where a summary says it."""


def weakest(ways: Iterable[Authentication]) -> Authentication:
    """Return the weakest of the ways in which a batch was collected; of none, the weakest that there is."""
    return min(ways, key=get_args(Authentication).index, default=WEAKEST)


def tells_clients_apart(way: Authentication) -> bool:
    """Return whether the cap binds a client."""
    return way == "client-token"


def told_in(summary: Mapping[str, Any]) -> Authentication:
    """Return how a summary says that senders were told apart; the weakest where it says nothing or something else."""
    way = summary.get(KEY)
    return way if way in get_args(Authentication) else WEAKEST  # type: ignore[return-value]


def require_told_apart(way: Authentication, uncapped: bool) -> None:
    """Refuse discovery where any one client can reveal a value, unless that is wanted.

    Args:
        way: how the senders of the input were told apart.
        uncapped: whether the operator says that discovery without a cap is wanted.

    Raises:
        UsageError: it is not.
    """
    if not tells_clients_apart(way) and not uncapped:
        raise UsageError(
            f"senders were told apart by authentication {way!r}, must be 'client-token' for discovery: any one client "
            "could reveal a value by sending it again and again; collect with client-token (hushcount encode "
            "--clients), or give --uncapped, in a deployment file uncapped_discovery = true, if that is wanted"
        )
