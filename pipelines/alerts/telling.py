"""At the end of a run: note what stands, and send what is due. It never fails the run, and lasts a bounded time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from sqlalchemy import Connection
from sqlalchemy import Engine as Database

from hushcount.errors import HushcountError, UsageError
from pipelines.alerts import outbox
from pipelines.alerts.alert import Alert
from pipelines.alerts.delivering import deliver
from pipelines.alerts.look import Look, look
from pipelines.alerts.sending import Program, Undelivered, place_of
from pipelines.audit.view import Finding
from pipelines.batches.lock import AnotherRun, alone
from pipelines.batches.looking import looked
from pipelines.batches.state import opened, snapshot
from pipelines.deployment.alerting import AlertsPart
from pipelines.deployment.settings import Deployment
from pipelines.files.storage_errors import told
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
    deliveries: dict[str, outbox.Delivery]
    undelivered: list[str]


def tell(deployment: Deployment, done: Done, *, now: datetime | None = None, looks: bool = True) -> None:
    """Note what stands, send what is due, and add to the report of the run what failed.

    Without [alerts] it does nothing. What waits for the next attempt is no problem of the run; what was given up is.

    Args:
        looks: whether to look at the conditions; if not, it only sends.
    """
    part = deployment.file.alerts
    if part is None:
        return
    try:
        _tell(deployment, part, done, now or datetime.now(timezone.utc), looks)
    except AnotherRun:
        # It tells what it finds itself.
        return
    except Exception as error:
        # Whatever it is: the run was done and recorded, and must still say so.
        done.problems.append(f"alerts: {told(error)}")


def _tell(deployment: Deployment, part: AlertsPart, done: Done, now: datetime, looks: bool) -> None:
    with opened(deployment.state) as database, alone(database, deployment.state, wait=False) as state:
        if looks:
            _look(state, deployment, part, done, now)
        done.problems += deliver(state, place_of(deployment, part), part, now).given_up
        with state.begin() as connection:
            done.waiting += _failing(connection)


def _look(state: Database, deployment: Deployment, part: AlertsPart, done: Done, now: datetime) -> None:
    with snapshot(state) as connection:
        seen = look(deployment, part, connection, now)
    done.problems += seen.problems
    with state.begin() as connection:
        outbox.note(connection, seen.alerts, seen.unjudged, now)


def undelivered(deployment: Deployment, state: Connection, now: datetime) -> list[str]:
    """Return a sentence if alerts were given up lately, and one if some wait after a failed attempt."""
    if deployment.file.alerts is None:
        return []
    number, failure = outbox.given_up(state, now)
    what = "1 alert was" if number == 1 else f"{number:,} alerts were"
    lost = [f"{what} given up and reached nobody: {failure}; hushcount alerts lists what stands"] if number else []
    return [*lost, *_failing(state)]


def _failing(state: Connection) -> list[str]:
    number, failure = outbox.failing(state)
    what = "1 alert waits and is" if number == 1 else f"{number:,} alerts wait and are"
    return [f"{what} sent again by a later run: {failure}"] if number else []


def standing(deployment: Deployment, now: datetime) -> Standing:
    """Return what stands now, and what runs told of it; nothing is changed or sent.

    Raises:
        UsageError: there is no [alerts], or no campaign.
    """
    part = required(deployment)
    with looked(deployment.state) as connection:
        seen = look(deployment, part, connection, now)
        return Standing(
            seen,
            {alert.subject: one for alert in seen.alerts if (one := outbox.delivery_of(connection, alert)) is not None},
            undelivered(deployment, connection, now),
        )


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
