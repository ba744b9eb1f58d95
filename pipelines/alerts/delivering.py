"""Send what waits in the outbox: at least once, in their order, and never for long in one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine as Database

from pipelines.alerts import outbox
from pipelines.alerts.sending import Place, Undelivered
from pipelines.deployment.alerting import AlertsPart

_ROUNDS = 2
"""A run sends no longer than so many times the limit of an attempt, and the attempt that began before."""


@dataclass(frozen=True)
class Delivered:
    """What a run did with the outbox.

    Attributes:
        sent: ids.
        given_up: a sentence for each alert that is not tried again.
    """

    sent: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()


def deliver(
    state: Database, place: Place, part: AlertsPart, now: datetime, clock: Callable[[], float] = time.monotonic
) -> Delivered:
    """Send what is due; the state records each answer before the next alert is sent.

    After an attempt without an answer nothing more is sent in this run. LostLock: another run took over.
    """
    with state.begin() as connection:
        messages = outbox.due(connection, now)
    sent, given_up = [], []
    end = clock() + _ROUNDS * part.timeout.total_seconds()
    for message in messages:
        if clock() >= end:
            break
        try:
            place.send(message.id, message.body)
        except Undelivered as error:
            with state.begin() as connection:
                last = outbox.postpone(connection, message, str(error), now, part.give_up_after)
            if last:
                given_up.append(f"alert {message.id} was given up after {message.attempts + 1} attempts: {error}")
            if error.down:
                break
        else:
            with state.begin() as connection:
                outbox.settle(connection, message.id, now)
            sent.append(message.id)
    return Delivered(tuple(sent), tuple(given_up))
