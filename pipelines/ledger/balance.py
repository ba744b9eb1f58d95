"""The total of a campaign's charges, what remains of its limit, and whether one more release fits into the limit."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from hushcount.privacy.composition import Composed, Loss, basic, compose, grown, room_for
from hushcount.privacy.joint import Part, smaller
from pipelines.ledger.charges import Charge, Limit, stamp
from pipelines.ledger.file import LedgerError
from pipelines.outputs.account import Account, Spent, Terms, Unit


class OverLimit(LedgerError):
    """The release would exceed the campaign's limit, so nothing was released and nothing was charged."""


def balance(limit: Limit | None, charges: Iterable[Charge], now: datetime) -> Account:
    """Return a campaign's account, without reservations; `now` is the ledger's time and selects the present period."""
    known = committed(charges)
    counting = counted(limit, known, now)
    total = spent(limit, counting, known)
    per: Unit = "report" if any(charge.per == "report" for charge in counting) else "client"
    epsilon = total.epsilon if math.isfinite(total.epsilon) else None
    so_far = Spent(epsilon, total.delta, total.bound, len(counting), per)
    if limit is None:
        return Account(None, so_far, None, None)
    terms = Terms(limit.epsilon, limit.delta, limit.renew_days, limit.since, limit.composition)
    left, renews = room_for(losses(counting, known), Loss(limit.epsilon, limit.delta)), limit.period(now)[1]
    return Account(terms, so_far, left, None if renews is None else stamp(renews))


def committed(charges: Iterable[Charge]) -> list[Charge]:
    """Return charges without reservations."""
    return [charge for charge in charges if charge.state == "committed"]


def counted(limit: Limit | None, charges: Iterable[Charge], now: datetime) -> list[Charge]:
    """Return the charges and reservations of the present period."""
    if limit is None or limit.renew_days is None:
        # Without renewal, charges from before the limit was set count too.
        return list(charges)
    begin = limit.period(now)[0]
    return [
        charge
        for charge in charges
        if charge.committed_at is None or datetime.fromisoformat(charge.committed_at) >= begin
    ]


def losses(counting: Iterable[Charge], known: Iterable[Charge]) -> list[Loss]:
    """Return the losses of charges; if clients repeat their answers, the charges of one epoch become one joint loss.

    Equal answers link the batches of such an epoch: if the epoch has one batch, shuffling amplifies its privacy; if it
    has two or more, it does not. The joined loss of two or more batches is the sum of their local epsilons, at most the
    epoch's epsilon. `known` holds the charges of all periods, because charges of earlier periods link batches of the
    same epoch too.
    """
    alone, joined = _joined(counting, known)
    return [*(charge.loss for charge in alone), *joined]


def parts(counting: Iterable[Charge], known: Iterable[Charge]) -> list[Part]:
    """Return the parts for joint composition: the curve of a charge with a curve, the loss of any other charge."""
    alone, joined = _joined(counting, known)
    return [*(charge.part for charge in alone), *joined]


def _joined(counting: Iterable[Charge], known: Iterable[Charge]) -> tuple[list[Charge], list[Loss]]:
    """Return the charges of unlinked batches, and the joined losses of batches that equal answers link."""
    linked: dict[str, int] = defaultdict(int)
    for charge in known:
        linked[charge.fingerprint] += charge.epoch_epsilon is not None
    alone, epochs = [], defaultdict(list)
    for charge in counting:
        if charge.epoch_epsilon is None or charge.local is None or linked[charge.fingerprint] < 2:
            alone.append(charge)
        else:
            epochs[charge.fingerprint, charge.epoch_epsilon].append(Loss(charge.local, 0.0))
    joined = (min(basic(batches).epsilon, most) for (_, most), batches in epochs.items())
    return alone, [Loss(epsilon, 0.0) for epsilon in joined]


def files_of(charges: Iterable[Charge]) -> set[str]:
    """Return the fingerprints of the campaign files of charges."""
    return {charge.fingerprint for charge in charges}


def spent(limit: Limit | None, counting: list[Charge], known: Iterable[Charge]) -> Composed:
    """Return the composed loss of charges at the limit's delta; `known` is as in `losses`."""
    if limit is None:
        return compose(losses(counting, known))
    if not counting:
        return Composed(0.0, 0.0, "basic")
    # If a clock is set back, two periods become one, which may have charges of several campaign files.
    adaptive = limit.composition == "basic" or len(files_of(counting)) > 1
    known = list(known)
    composed = compose(losses(counting, known), limit.delta)
    return composed if adaptive else smaller(composed, parts(counting, known))


def require_room(limit: Limit | None, charges: Iterable[Charge], wanted: Charge, most: Loss, now: datetime) -> None:
    """Raise OverLimit unless one more release fits into a campaign's limit.

    Args:
        limit: the campaign's limit; None: every release fits.
        charges: all other charges of the campaign, and the reservations of runs under way, because reservations count
            like charges.
        wanted: the release.
        most: an upper bound on the release's cost, for the message.
        now: the ledger's time, which decides the period.
    """
    if limit is None:
        return
    living = list(charges)
    done = committed(living)
    counting, renews = counted(limit, living, now), limit.period(now)[1]
    renewal = "it does not renew" if renews is None else f"it renews on {stamp(renews)}"
    # Joint composition is valid only if no parameter depends on results, but the parameters of a second campaign file
    # may depend on them.
    if limit.composition == "joint" and not files_of(counting) <= {wanted.fingerprint}:
        raise OverLimit(
            f"the limit of campaign {limit.campaign} was set with --fixed-parameters, which allows one campaign file "
            f"in a period, and earlier releases of this period used another file: nothing was released or charged; "
            f"{renewal}; or set the limit without --fixed-parameters"
        )
    # Another run may drop its reservation, which changes the loss of linked batches, so the release must fit with the
    # reservations and without them.
    if all(
        spent(limit, [*counted(limit, others, now), wanted], [*others, wanted]).epsilon <= limit.epsilon
        for others in (done, living)
    ):
        return
    cost = grown(losses(counting, living), losses([*counting, wanted], [*living, wanted]))
    by_now = spent(limit, counted(limit, done, now), done)
    left = balance(limit, done, now).remaining or Loss(0.0, 0.0)
    reserved = basic(charge.loss for charge in counting if charge.state == "reserved")
    held = f" and ({reserved.epsilon:.6g}, {reserved.delta:.6g}) reserved by runs under way" if reserved.epsilon else ""
    least = "at least " if limit.composition == "joint" else ""
    raise OverLimit(
        f"the limit of campaign {limit.campaign} is ({limit.epsilon:.6g}, {limit.delta:.6g}), spent are "
        f"({by_now.epsilon:.6g}, {by_now.delta:.6g}){held}, this release would cost "
        f"({cost.epsilon:.6g}, {cost.delta:.6g}), at most ({most.epsilon:.6g}, {most.delta:.6g}), and "
        f"{least}({left.epsilon:.6g}, {left.delta:.6g}) remain: nothing was released or charged; {renewal}"
    )
