"""Send what waits in the outboxes: at least once, in their order, and never for long in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from pipelines.alerts import outbox
from pipelines.alerts.sending import Place, Undelivered
from pipelines.deployment.alerting import AlertsPart
from pipelines.files.storage_errors import told
from pipelines.log.entries import Told
from pipelines.log.facts import Outgoing
from pipelines.log.fold import Fold
from pipelines.log.log import Logs

_ROUNDS = 2
"""A run sends no longer than so many times the limit of an attempt, and the attempt that began before."""


@dataclass(frozen=True)
class Delivered:
    """What a run did with the outboxes.

    Attributes:
        sent: ids.
        problems: a sentence for each alert that is not tried again, and for each campaign whose log failed.
    """

    sent: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def deliver(
    logs: Logs,
    folds: Iterable[Fold],
    place: Place,
    part: AlertsPart,
    now: datetime,
    clock: Callable[[], float] = time.monotonic,
) -> Delivered:
    """Send what is due; the log records each outcome before the next alert is sent.

    After an attempt without an answer nothing more is sent in this run.

    Args:
        folds: what the logs of the campaigns came to when they were read; what has become due since waits.
    """
    sent: list[str] = []
    problems: list[str] = []
    broken: set[str] = set()
    end = clock() + _ROUNDS * part.timeout.total_seconds()
    waiting = [(fold.campaign, one) for fold in folds for one in outbox.due(fold, now)]
    for campaign, one in sorted(waiting, key=lambda message: outbox.age(message[1])):
        if clock() >= end:
            break
        if campaign in broken:
            continue
        try:
            if not _is_due(logs, campaign, one):
                continue
            failed = _try(place, one)
            failure = None if failed is None else outbox.Failure(str(failed), part.give_up_after)
            put = logs.decide(campaign, partial(outbox.outcome, tried=one, failure=failure, now=now), now)
        except Exception as error:
            # Whatever it is, the alerts of other campaigns are more urgent than its cause.
            broken.add(campaign)
            problems.append(f"{campaign}: its alerts cannot be sent: {told(error)}")
            continue
        if failed is None:
            sent.append(one.id)
        elif put is not None and isinstance(put.decision, Told) and put.decision.outcome == "given_up":
            problems.append(f"alert {one.id} was given up after {one.attempts + 1} attempts: {failed}")
        if failed is not None and failed.down:
            break
    return Delivered(tuple(sent), tuple(problems))


def _is_due(logs: Logs, campaign: str, one: Outgoing) -> bool:
    """Return whether the log as it is now still has an alert as it was: no other run has tried it meanwhile."""
    newest = logs.shared(campaign).read().alerts.get(one.id)
    return newest is not None and (newest.state, newest.attempts) == ("pending", one.attempts)


def _try(place: Place, one: Outgoing) -> Undelivered | None:
    """Send an alert, and return the failure."""
    try:
        place.send(one.id, one.body.encode())
    except Undelivered as error:
        return error
    return None
