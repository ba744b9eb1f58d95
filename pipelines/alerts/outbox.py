"""The outbox: which alerts stand, and which were sent, in the state of the deployment.

An alert is written here before it is sent, and marked as sent after the answer came. So a killed run loses none; it may
send one twice, with the same id.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, and_, func, select, update

from pipelines.alerts.alert import Alert
from pipelines.batches.state import ALERTS

_FIRST_WAIT, _LONGEST_WAIT = timedelta(seconds=30), timedelta(hours=1)
_LEAST_ATTEMPTS = 5
_REMEMBERED = timedelta(days=7)
_LONGEST_FAILURE = 300


@dataclass(frozen=True)
class Message:
    """An alert that is to be sent."""

    id: str
    body: bytes
    began: datetime
    attempts: int


@dataclass(frozen=True)
class Delivery:
    """What became of an alert that was noted.

    Attributes:
        state: pending, sent or given_up.
        failure: of the last attempt; empty if none failed.
    """

    id: str
    state: str
    began: str
    attempts: int
    failure: str


def note(
    connection: Connection, alerts: Sequence[Alert], unjudged: Collection[tuple[str, str]], now: datetime
) -> list[str]:
    """Enter the alerts that stand now, and return the ids of those that are news; what stood and is gone ends.

    Args:
        unjudged: kind and campaign of what could not be looked at: what stood there goes on standing.
    """
    current = {alert.subject: alert for alert in alerts}
    standing = {row.subject: row for row in connection.execute(select(ALERTS).where(ALERTS.c.standing))}
    for subject, row in [*standing.items()]:
        same = subject in current and current[subject].fact == row.fact
        blind = subject not in current and (row.kind, row.campaign) in unjudged
        if not (same or blind):
            connection.execute(update(ALERTS).where(ALERTS.c.id == row.id).values(standing=False))
            del standing[subject]
    return [_enter(connection, alert, now) for subject, alert in current.items() if subject not in standing]


def _enter(connection: Connection, alert: Alert, now: datetime) -> str:
    """Write an alert that is to be sent, and return its id."""
    before = connection.execute(select(func.count()).where(ALERTS.c.subject == alert.subject)).scalar_one()
    id, moment = alert.id(before), now.isoformat()
    told = {"kind": alert.kind, "campaign": alert.campaign, "subject": alert.subject, "fact": alert.fact}
    state = {"standing": True, "began_at": moment, "delivery": "pending", "attempts": 0, "next_at": moment}
    connection.execute(ALERTS.insert().values(id=id, body=alert.body(id, now), **told, **state))
    return id


def due(connection: Connection, now: datetime) -> list[Message]:
    """Return the messages to send now, the oldest first."""
    ready = and_(ALERTS.c.delivery == "pending", ALERTS.c.next_at <= now.isoformat())
    rows = connection.execute(select(ALERTS).where(ready).order_by(ALERTS.c.began_at, ALERTS.c.id))
    return [Message(row.id, row.body.encode(), datetime.fromisoformat(row.began_at), row.attempts) for row in rows]


def settle(connection: Connection, id: str, now: datetime) -> None:
    """Enter that a message was sent."""
    sent = {"delivery": "sent", "failure": None, "settled_at": now.isoformat(), "attempts": ALERTS.c.attempts + 1}
    connection.execute(update(ALERTS).where(ALERTS.c.id == id).values(**sent))


def postpone(connection: Connection, message: Message, failure: str, now: datetime, give_up_after: timedelta) -> bool:
    """Enter that an attempt failed, and return whether it was the last one."""
    attempts = message.attempts + 1
    values = {"attempts": attempts, "failure": failure[:_LONGEST_FAILURE]}
    # A clock that jumped ahead is no reason to give up: there were few attempts.
    last = now - message.began >= give_up_after and attempts >= _LEAST_ATTEMPTS
    if last:
        values |= {"delivery": "given_up", "settled_at": now.isoformat()}
    else:
        wait = min(_FIRST_WAIT * 2 ** min(message.attempts, 20), _LONGEST_WAIT)
        values |= {"next_at": (now + wait).isoformat()}
    connection.execute(update(ALERTS).where(ALERTS.c.id == message.id).values(**values))
    return last


def failing(connection: Connection) -> tuple[int, str]:
    """Return how many messages wait after a failed attempt, and the failure of the newest attempt."""
    waits = and_(ALERTS.c.delivery == "pending", ALERTS.c.failure.is_not(None))
    rows = connection.execute(select(ALERTS.c.failure).where(waits).order_by(ALERTS.c.next_at.desc())).scalars().all()
    return len(rows), rows[0] if rows else ""


def numbers(connection: Connection) -> tuple[int, int]:
    """Return how many alerts stand, and how many messages are not sent yet."""
    standing = select(func.count()).where(ALERTS.c.standing)
    unsent = select(func.count()).where(ALERTS.c.delivery == "pending")
    return connection.execute(standing).scalar_one(), connection.execute(unsent).scalar_one()


def given_up(connection: Connection, now: datetime) -> tuple[int, str]:
    """Return how many messages were given up that still stand or were given up in the last week, and a failure."""
    recent = (ALERTS.c.settled_at >= (now - _REMEMBERED).isoformat()) | ALERTS.c.standing
    lost = select(ALERTS.c.failure).where(and_(ALERTS.c.delivery == "given_up", recent))
    rows = connection.execute(lost.order_by(ALERTS.c.settled_at.desc())).scalars().all()
    return len(rows), rows[0] if rows else ""


def delivery_of(connection: Connection, alert: Alert) -> Delivery | None:
    """Return what became of an alert that stands; None: no run has noted it, or it was another fact then."""
    same = and_(ALERTS.c.standing, ALERTS.c.subject == alert.subject, ALERTS.c.fact == alert.fact)
    row = connection.execute(select(ALERTS).where(same)).first()
    return None if row is None else Delivery(row.id, row.delivery, row.began_at, row.attempts, row.failure or "")
