"""At the end of a run: note what stands, and send what is due. It never fails the run, and lasts a bounded time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial

from hushcount.errors import HushcountError, UsageError
from pipelines.alerts import outbox
from pipelines.alerts.alert import Alert
from pipelines.alerts.delivering import deliver
from pipelines.alerts.look import Look, look
from pipelines.alerts.sending import Program, Undelivered, place_of
from pipelines.audit.view import Finding
from pipelines.deployment.alerting import AlertsPart
from pipelines.deployment.settings import Deployment
from pipelines.files.storage_errors import told
from pipelines.log.facts import Outgoing
from pipelines.log.fold import Fold
from pipelines.log.log import Logs
from pipelines.schedule.report import Done


@dataclass(frozen=True)
class Standing:
    """What stands now, and what became of it.

    Attributes:
        seen: the alerts, and what could not be judged.
        deliveries: of the alerts that a run has noted and that did not change since, by subject.
        undelivered: a sentence for what was given up, and one for what waits after a failed attempt.
    """

    seen: Look
    deliveries: dict[str, Outgoing]
    undelivered: list[str]


def tell(deployment: Deployment, done: Done, *, logs: Logs, now: datetime | None = None, looks: bool = True) -> None:
    """Note what stands, send what is due, and add to the report of the run what failed.

    Without [alerts] it does nothing, nor for a campaign that the run stopped: its log must get no entry. What waits for
    the next attempt is no problem of the run; what was given up is.

    Args:
        logs: as the run has read them.
        looks: whether to look at the conditions; if not, it only sends.
    """
    part = deployment.file.alerts
    if part is None:
        return
    try:
        _tell(deployment, part, done, logs, now or datetime.now(timezone.utc), looks)
    except Exception as error:
        # Whatever it is: the run was done and recorded, and must still say so.
        done.problems.append(f"alerts: {told(error)}")


def _tell(deployment: Deployment, part: AlertsPart, done: Done, logs: Logs, now: datetime, looks: bool) -> None:
    outboxes = outbox.outboxes(deployment, logs, done.problems)
    folds = {campaign: fold for campaign, fold in outboxes.items() if campaign not in done.stopped}
    if looks:
        seen = look(deployment, part, logs, now)
        done.problems += seen.problems
        for fold in folds.values():
            done.problems += _note(logs, fold, seen, now)
    done.problems += deliver(logs, _newest(folds, logs), place_of(deployment, part), part, now).problems
    done.waiting += _failing(_newest(folds, logs))


def _note(logs: Logs, fold: Fold, seen: Look, now: datetime) -> list[str]:
    """Put what is news of a campaign and what is over; return a sentence if its log does not take it."""
    try:
        for note in outbox.notes(fold, seen.alerts, seen.unjudged, now):
            logs.decide(fold.campaign, partial(outbox.still, note), now)
    except Exception as error:
        # Whatever it is, the alerts of other campaigns are more urgent than its cause.
        return [f"{fold.campaign}: its alerts cannot be noted: {told(error)}"]
    return []


def _newest(folds: Iterable[str], logs: Logs) -> list[Fold]:
    """Return what the outboxes of campaigns came to when they were read last."""
    return [logs.shared(campaign).fold for campaign in folds]


def undelivered(deployment: Deployment, logs: Logs, now: datetime) -> list[str]:
    """Return a sentence if alerts were given up lately, and one if some wait after a failed attempt."""
    if deployment.file.alerts is None:
        return []
    unread: list[str] = []
    folds = outbox.outboxes(deployment, logs, unread).values()
    number, failure = outbox.given_up(folds, now)
    what = "1 alert was" if number == 1 else f"{number:,} alerts were"
    lost = [f"{what} given up and reached nobody: {failure}; hushcount alerts lists what stands"] if number else []
    return [*unread, *lost, *_failing(folds)]


def _failing(folds: Iterable[Fold]) -> list[str]:
    number, failure = outbox.failing(folds)
    what = "1 alert waits and is" if number == 1 else f"{number:,} alerts wait and are"
    return [f"{what} sent again by a later run: {failure}"] if number else []


def standing(deployment: Deployment, now: datetime) -> Standing:
    """Return what stands now, and what runs told of it; nothing is changed or sent.

    Raises:
        UsageError: there is no [alerts], or no campaign.
    """
    part, logs = required(deployment), Logs(deployment)
    seen = look(deployment, part, logs, now)
    folds = outbox.outboxes(deployment, logs, [])
    told_of = {
        alert.subject: outbox.delivery_of(folds[alert.campaign], alert)
        for alert in seen.alerts
        if alert.campaign in folds
    }
    deliveries = {subject: one for subject, one in told_of.items() if one is not None}
    return Standing(seen, deliveries, undelivered(deployment, logs, now))


def send_test(deployment: Deployment, id: str, now: datetime) -> tuple[str, str]:
    """Send a test alert at once, and return where it went, and the failure or nothing; UsageError: as `standing`."""
    place = place_of(deployment, required(deployment))
    alert = Alert("test", "", "test", id, "this is a test: hushcount alerts --test sent it")
    try:
        place.send(id, alert.body(id, now).encode())
    except Undelivered as error:
        return place.name, str(error)
    return place.name, ""


def check(deployment: Deployment) -> list[Finding]:
    """Say whether alerts can be sent, by what is on this machine; nothing is sent."""
    part = deployment.file.alerts
    if part is None:
        return []
    try:
        place = place_of(deployment, part)
        if isinstance(place, Program):
            place.require()
    except (HushcountError, OSError) as error:
        return [Finding("alerts", "bad", told(error))]
    return [Finding("alerts", "good", f"go to {place.name}")]


def required(deployment: Deployment) -> AlertsPart:
    """Return the table [alerts]; UsageError: there is none."""
    if deployment.file.alerts is None:
        raise UsageError(f"deployment file {deployment.path} has no table [alerts]: add it, with webhook or command")
    return deployment.file.alerts
