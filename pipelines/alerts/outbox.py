"""The outbox: which alerts stand, and which were sent, as the log of a campaign says it.

An alert is put into the log before it is sent, and its outcome after the answer came. So a killed run loses none; it
may send one twice, with the same id. Everything here but `outboxes` is a function of what the log comes to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pipelines.alerts.alert import Alert
from pipelines.deployment.campaigns import campaign_names
from pipelines.deployment.settings import Deployment
from pipelines.files.storage_errors import told
from pipelines.log.entries import Noted, Over, Told
from pipelines.log.facts import Outgoing
from pipelines.log.fold import Fold
from pipelines.log.log import Logs

_FIRST_WAIT, _LONGEST_WAIT = timedelta(seconds=30), timedelta(hours=1)
_LEAST_ATTEMPTS = 5
_REMEMBERED = timedelta(days=7)
_LONGEST_FAILURE = 300


@dataclass(frozen=True)
class Failure:
    """An attempt that failed, and how long an alert is tried again."""

    says: str
    give_up_after: timedelta


def outboxes(deployment: Deployment, logs: Logs, problems: list[str]) -> dict[str, Fold]:
    """Return by campaign what the log comes to that takes its alerts, as far as this process has read it.

    Args:
        problems: gets a sentence for each log that cannot be read.
    """
    found = {}
    for campaign in campaign_names(deployment.campaigns):
        try:
            found[campaign] = logs.shared(campaign).known()
        except Exception as error:
            # Whatever it is, the alerts of other campaigns are more urgent than its cause.
            problems.append(f"{campaign}: its alerts cannot be read: {told(error)}")
    return found


def notes(
    fold: Fold, alerts: Sequence[Alert], unjudged: Collection[tuple[str, str]], now: datetime
) -> list[Noted | Over]:
    """Return what is to be put after a look at a campaign: what is over, and each alert that is news.

    Args:
        fold: of before the look.
        alerts: that stand now.
        unjudged: kind and campaign of what could not be looked at: what stood there goes on standing.
    """
    current = {alert.subject: alert for alert in alerts if alert.campaign == fold.campaign}
    over, standing = [], set()
    for one in fold.alerts.values():
        if one.standing:
            same = one.subject in current and current[one.subject].fact == one.fact
            blind = one.subject not in current and (one.kind, fold.campaign) in unjudged
            if same or blind:
                standing.add(one.subject)
            else:
                over.append(one.id)
    before = Counter(one.subject for one in fold.alerts.values())
    news = [_noted(alert, before[subject], now) for subject, alert in current.items() if subject not in standing]
    return [*([Over(ids=tuple(over))] if over else []), *news]


def _noted(alert: Alert, before: int, now: datetime) -> Noted:
    id = alert.id(before)
    return Noted(id=id, alert=alert.kind, subject=alert.subject, fact=alert.fact, body=alert.body(id, now))


def still(note: Noted | Over, fold: Fold) -> Noted | Over | None:
    """Return what of a note is still to be put, by the log as it is now; None: another run put all of it."""
    if isinstance(note, Over):
        ids = tuple(id for id in note.ids if id in fold.alerts and fold.alerts[id].standing)
        return Over(ids=ids) if ids else None
    stands = any(one.standing and one.subject == note.subject for one in fold.alerts.values())
    return None if stands or note.id in fold.alerts else note


def due(fold: Fold, now: datetime) -> list[Outgoing]:
    """Return the alerts to send now, the oldest first."""
    return sorted((one for one in _pending(fold) if one.next_at is None or one.next_at <= now), key=age)


def age(one: Outgoing) -> tuple[datetime, str]:
    """Return the key that sorts alerts: the oldest first."""
    return one.began, one.id


def outcome(fold: Fold, tried: Outgoing, failure: Failure | None, now: datetime) -> Told | None:
    """Return what is to be put after an attempt, by the log as it is now; None: nothing.

    Nothing, if another run's attempt says more, or if the log was restored to before the alert.

    Args:
        tried: the alert as it was before the attempt.
        failure: None: it was sent.
    """
    one = fold.alerts.get(tried.id)
    if one is None:
        return None
    if failure is None:
        return None if one.state == "sent" else Told(id=one.id, outcome="sent")
    if (one.state, one.attempts) != ("pending", tried.attempts):
        return None
    says = failure.says[:_LONGEST_FAILURE]
    # A clock that jumped ahead is no reason to give up: there were few attempts.
    if now - one.began >= failure.give_up_after and one.attempts + 1 >= _LEAST_ATTEMPTS:
        return Told(id=one.id, outcome="given_up", failure=says)
    wait = min(_FIRST_WAIT * 2 ** min(one.attempts, 20), _LONGEST_WAIT)
    return Told(id=one.id, outcome="failed", failure=says, next_at=now + wait)


def failing(folds: Iterable[Fold]) -> tuple[int, str]:
    """Return how many alerts wait after a failed attempt, and the failure of the newest attempt."""
    waiting = [(one.next_at, one.failure) for fold in folds for one in _pending(fold) if one.failure and one.next_at]
    return len(waiting), max(waiting)[1] if waiting else ""


def numbers(folds: Iterable[Fold]) -> tuple[int, int]:
    """Return how many alerts stand, and how many are not sent yet."""
    folds = tuple(folds)
    standing = sum(one.standing for fold in folds for one in fold.alerts.values())
    return standing, sum(len(_pending(fold)) for fold in folds)


def given_up(folds: Iterable[Fold], now: datetime) -> tuple[int, str]:
    """Return how many alerts were given up that still stand or were given up in the last week, and a failure."""
    lost = [
        (one.settled, one.failure)
        for fold in folds
        for one in fold.alerts.values()
        if one.state == "given_up" and one.settled and (one.standing or one.settled >= now - _REMEMBERED)
    ]
    return len(lost), max(lost)[1] if lost else ""


def delivery_of(fold: Fold, alert: Alert) -> Outgoing | None:
    """Return what became of an alert that stands; None: no run has noted it, or it was another fact then."""
    about = (one for one in fold.alerts.values() if one.standing and one.subject == alert.subject)
    return next((one for one in about if one.fact == alert.fact), None)


def _pending(fold: Fold) -> list[Outgoing]:
    return [one for one in fold.alerts.values() if one.state == "pending"]
