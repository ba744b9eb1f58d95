"""What a campaign's charges come to, what remains of its limit, and whether one more release fits."""

from __future__ import annotations

import math
import os
import socket
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hushcount.privacy.composition import Composed, Loss, basic, compose, grown, room_for
from pipelines.ledger.file import LedgerError
from pipelines.ledger.own_time import FAR
from pipelines.ledger.records import Charge, Limit, Unit, stamp

_LONGEST_RUN = timedelta(days=1) + FAR
"""A day, and what a clock may be ahead."""


class OverLimit(LedgerError):
    """The release would pass the campaign's limit: nothing was released and nothing was charged."""


@dataclass(frozen=True)
class Balance:
    """A campaign's account in the present period.

    Attributes:
        limit: what was set, or None.
        spent: all charges of the period together, at the limit's delta; basic composition without a limit.
        releases: how many charges that are.
        per: of whom that is: one client, or, where the cap bound nobody in any of them, one report in each release.
        remaining: what more releases of the present campaign file may add to the plain sums, and are certain to be
            admitted, beside reservations; None without a limit. Where charges compose numerically dearer ones may fit.
        renews: when the next period begins, or None.
    """

    limit: Limit | None
    spent: Composed
    releases: int
    per: Unit
    remaining: Loss | None
    renews: str | None

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON data; null is an epsilon that no bound states at the limit's delta."""
        limit, left, spent = self.limit, self.remaining, self.spent
        terms = ("epsilon", "delta", "renew_days", "since", "composition")
        return {
            "limit": None if limit is None else {name: getattr(limit, name) for name in terms},
            "spent": {
                "epsilon": spent.epsilon if math.isfinite(spent.epsilon) else None,
                "delta": spent.delta,
                "composition": spent.bound,
                "releases": self.releases,
                "per": self.per,
            },
            "remaining": None if left is None else {"epsilon": left.epsilon, "delta": left.delta},
            "renews": self.renews,
        }


def balance(limit: Limit | None, charges: Iterable[Charge], now: datetime) -> Balance:
    """Return a campaign's account.

    Args:
        limit: the campaign's, or None.
        charges: the campaign's; reservations among them do not count.
        now: the ledger's time, which decides the period.
    """
    committed = [charge for charge in charges if charge.state == "committed"]
    counting = _counting(limit, committed, now)
    spending = losses(counting, committed)
    per: Unit = "report" if any(charge.per == "report" for charge in counting) else "client"
    if limit is None:
        return Balance(None, compose(spending), len(counting), per, None, None)
    spent = _spent(limit, counting, committed)
    left = room_for(spending, Loss(limit.epsilon, limit.delta))
    renews = limit.period(now)[1]
    return Balance(limit, spent, len(counting), per, left, None if renews is None else stamp(renews))


def losses(counting: Iterable[Charge], known: Iterable[Charge]) -> list[Loss]:
    """Return the losses of charges, those of an epoch whose clients repeat their answers as one.

    Equal answers link the batches of such an epoch, so that shuffling gains something in the only batch of it, and
    nothing as soon as there are two: then they come to the sum of their local epsilons, the epoch's at most.

    Args:
        counting: the charges.
        known: all there are, those of earlier periods too, to which batches of the same epoch are linked.
    """
    linked: dict[str, list[Charge]] = defaultdict(list)
    for charge in known:
        if charge.epoch_epsilon is not None:
            linked[charge.fingerprint].append(charge)
    result, epochs = [], defaultdict(list)
    for charge in counting:
        if charge.epoch_epsilon is None or charge.local is None or len(linked[charge.fingerprint]) < 2:
            result.append(charge.loss)
        else:
            epochs[charge.fingerprint, charge.epoch_epsilon].append(Loss(charge.local, 0.0))
    joined = (min(basic(batches).epsilon, most) for (_, most), batches in epochs.items())
    return [*result, *(Loss(epsilon, 0.0) for epsilon in joined)]


def files_of(charges: Iterable[Charge]) -> set[str]:
    """Return the fingerprints of the campaign files of charges."""
    return {charge.fingerprint for charge in charges}


def counted(limit: Limit, charges: Iterable[Charge], now: datetime) -> list[Charge]:
    """Return the charges of the present period, without reservations."""
    return _counting(limit, [charge for charge in charges if charge.state == "committed"], now)


def _spent(limit: Limit, counting: list[Charge], known: Iterable[Charge]) -> Composed:
    """Return what charges come to at the limit's delta; nothing comes to nothing."""
    if not counting:
        return Composed(0.0, 0.0, "basic")
    # A clock that is set back joins periods, and with them files.
    adaptive = limit.composition == "basic" or len(files_of(counting)) > 1
    return compose(losses(counting, known), limit.delta, adaptive=adaptive)


def require_room(limit: Limit | None, charges: Iterable[Charge], wanted: Charge, most: Loss, now: datetime) -> None:
    """Check that one more release fits into the limit, beside all charges and the reservations of living runs.

    Args:
        limit: the campaign's, or None: then all fits.
        charges: the campaign's, without the release itself.
        wanted: the release.
        most: what it may come to at most, for the message.
        now: the ledger's time, which decides the period.

    Raises:
        OverLimit: it does not fit.
    """
    if limit is None:
        return
    listed = list(charges)
    committed = [charge for charge in listed if charge.state == "committed"]
    living = [charge for charge in listed if not is_stale(charge, now)]
    _require_one_file(limit, _counting(limit, living, now), wanted, now)
    # What is reserved may come to nothing, and a batch linked to it is another loss without it.
    if all(_fits(limit, others, wanted, now) for others in (committed, living)):
        return
    counting = _counting(limit, living, now)
    cost = grown(losses(counting, living), losses([*counting, wanted], [*living, wanted]))
    account = balance(limit, listed, now)
    reserved = basic(charge.loss for charge in counting if charge.state == "reserved")
    held = f" and ({reserved.epsilon:.6g}, {reserved.delta:.6g}) reserved by runs under way" if reserved.epsilon else ""
    left = account.remaining or Loss(0.0, 0.0)
    least = "at least " if limit.composition == "numerical" else ""
    raise OverLimit(
        f"the limit of campaign {limit.campaign} is ({limit.epsilon:.6g}, {limit.delta:.6g}), spent are "
        f"({account.spent.epsilon:.6g}, {account.spent.delta:.6g}){held}, this release would cost "
        f"({cost.epsilon:.6g}, {cost.delta:.6g}), at most ({most.epsilon:.6g}, {most.delta:.6g}), and "
        f"{least}({left.epsilon:.6g}, {left.delta:.6g}) remain: nothing was released or charged; {_renewal(limit, now)}"
    )


def _require_one_file(limit: Limit, counting: list[Charge], wanted: Charge, now: datetime) -> None:
    """Refuse a second campaign file in a period whose charges compose numerically: it may follow from results."""
    if limit.composition == "numerical" and not files_of(counting) <= {wanted.fingerprint}:
        raise OverLimit(
            f"the limit of campaign {limit.campaign} was set with --fixed-parameters, which allows one campaign file a "
            f"period, and this is another one than that of earlier releases: nothing was released or charged; "
            f"{_renewal(limit, now)}; or set the limit without --fixed-parameters"
        )


def _fits(limit: Limit, others: list[Charge], wanted: Charge, now: datetime) -> bool:
    known = [*others, wanted]
    return _spent(limit, [*_counting(limit, others, now), wanted], known).epsilon <= limit.epsilon


def _renewal(limit: Limit, now: datetime) -> str:
    renews = limit.period(now)[1]
    return "it does not renew" if renews is None else f"it renews on {stamp(renews)}"


def is_stale(charge: Charge, now: datetime) -> bool:
    """Return whether a reservation's run has ended without saying so: its process is gone, or it is days ago."""
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
