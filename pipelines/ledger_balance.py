"""What a campaign's charges come to, what remains of its limit, and whether one more release fits."""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from hushcount.privacy.composition import Composed, Loss, basic, compose
from pipelines.ledger_file import LedgerError
from pipelines.ledger_records import Charge, Limit, stamp

_LONGEST_RUN = timedelta(days=1)


class OverLimit(LedgerError):
    """The release would pass the campaign's limit: nothing was released and nothing was charged."""


@dataclass(frozen=True)
class Balance:
    """A campaign's account in the present period.

    Attributes:
        limit: what was set, or None.
        spent: all charges of the period together, at the limit's delta; basic composition without a limit.
        releases: how many charges that are.
        remaining: how much more epsilon and delta there is, or None without a limit; no release can cost more.
        renews: when the next period begins, or None.
    """

    limit: Limit | None
    spent: Composed
    releases: int
    remaining: Loss | None
    renews: str | None

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON data; null is an epsilon that no bound states at the limit's delta."""
        limit, left, spent = self.limit, self.remaining, self.spent
        terms = ("epsilon", "delta", "renew_days", "since")
        return {
            "limit": None if limit is None else {name: getattr(limit, name) for name in terms},
            "spent": {
                "epsilon": spent.epsilon if math.isfinite(spent.epsilon) else None,
                "delta": spent.delta,
                "composition": spent.bound,
                "releases": self.releases,
            },
            "remaining": None if left is None else {"epsilon": left.epsilon, "delta": left.delta},
            "renews": self.renews,
        }


def balance(limit: Limit | None, charges: Iterable[Charge], now: datetime) -> Balance:
    """Return a campaign's account.

    Args:
        limit: the campaign's, or None.
        charges: the campaign's; reservations among them do not count.
        now: decides the period.
    """
    losses = [charge.loss for charge in _counting(limit, charges, now) if charge.state == "committed"]
    if limit is None:
        return Balance(None, compose(losses), len(losses), None, None)
    spent = compose(losses, limit.delta)
    left = Loss(max(0.0, _less(limit.epsilon, spent.epsilon)), max(0.0, _less(limit.delta, basic(losses).delta)))
    renews = limit.period(now)[1]
    return Balance(limit, spent, len(losses), left, None if renews is None else stamp(renews))


def require_room(limit: Limit | None, charges: Iterable[Charge], cost: Loss, most: Loss, now: datetime) -> None:
    """Check that one more release fits into the limit, beside all charges and the reservations of living runs.

    Args:
        limit: the campaign's, or None: then all fits.
        charges: the campaign's, without the release itself.
        cost: what the release costs.
        most: what it may come to at most, for the message.
        now: decides the period.

    Raises:
        OverLimit: it does not fit.
    """
    if limit is None:
        return
    listed = list(charges)
    counting = [charge for charge in _counting(limit, listed, now) if not is_stale(charge, now)]
    if compose([*(charge.loss for charge in counting), cost], limit.delta).epsilon <= limit.epsilon:
        return
    account = balance(limit, listed, now)
    reserved = basic(charge.loss for charge in counting if charge.state == "reserved")
    held = f" and ({reserved.epsilon:.6g}, {reserved.delta:.6g}) reserved by runs under way" if reserved.epsilon else ""
    left = account.remaining or Loss(0.0, 0.0)
    renewal = f"it renews on {account.renews}" if account.renews else "it does not renew"
    raise OverLimit(
        f"the limit of campaign {limit.campaign} is ({limit.epsilon:.6g}, {limit.delta:.6g}), spent are "
        f"({account.spent.epsilon:.6g}, {account.spent.delta:.6g}){held}, this release would cost "
        f"({cost.epsilon:.6g}, {cost.delta:.6g}), at most ({most.epsilon:.6g}, {most.delta:.6g}), and "
        f"({left.epsilon:.6g}, {left.delta:.6g}) remain: nothing was released or charged; {renewal}"
    )


def is_stale(charge: Charge, now: datetime) -> bool:
    """Return whether a reservation's run has ended without saying so: its process is gone, or a day has passed."""
    if charge.state == "committed":
        return False
    if now - datetime.fromisoformat(charge.reserved_at) > _LONGEST_RUN:
        return True
    return charge.host == socket.gethostname() and not _is_alive(charge.pid)


def _counting(limit: Limit | None, charges: Iterable[Charge], now: datetime) -> list[Charge]:
    """Return the charges and reservations of the present period."""
    if limit is None or limit.renew_days is None:
        # Without renewal a limit covers what was charged before it was set as well.
        return list(charges)
    begin = limit.period(now)[0]
    return [
        charge
        for charge in charges
        if charge.committed_at is None or datetime.fromisoformat(charge.committed_at) >= begin
    ]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _less(left: float, right: float) -> float:
    return float(Decimal(repr(left)) - Decimal(repr(right)))
