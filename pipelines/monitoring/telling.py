"""At the end of a run, send alerts about changes, and put an entry for each alert into the log."""

from __future__ import annotations

import uuid
from datetime import datetime
from functools import partial

from hushcount.clock import MACHINE
from hushcount.errors import HushcountError, UsageError
from pipelines.audit.view import Finding
from pipelines.deployment.campaigns import Epochs, read_published
from pipelines.deployment.parts import AlertsPart
from pipelines.deployment.settings import Deployment
from pipelines.files.storage_errors import told
from pipelines.log.entries import Told
from pipelines.log.fold import Fold
from pipelines.log.log import Logs
from pipelines.monitoring.alert import alert_of
from pipelines.monitoring.receivers import Message, Receiver, Undelivered, receiver_of
from pipelines.questions.sides import USUAL
from pipelines.questions.sources import Source, places_of
from pipelines.schedule.done import Done


def tell(deployment: Deployment, done: Done, *, logs: Logs, now: datetime | None = None) -> None:
    """Send the changes in the newest window of each campaign, and add failures to the run's report.

    An alert that reached nobody is sent again by later runs, as long as its window is the newest. No alert is sent
    without the table [alerts], and no alert on a campaign that the run stopped, because the campaign's log must get no
    entry. If the receiver does not answer, no further alert is sent in this run.

    Args:
        logs: the logs, as the run has read them.
    """
    part, moment = deployment.file.alerts, now or MACHINE.now()
    if part is None:
        return
    campaigns: list[Epochs] = []
    try:
        receiver = receiver_of(deployment, part)
        campaigns, _ = read_published(deployment.campaigns)
    except Exception as error:
        # Every exception is caught here, because the run has done its work and must still report it.
        done.problems.append(f"alerts: {told(error)}")
    for epochs in campaigns:
        if epochs.campaign in done.stopped:
            continue
        try:
            _tell(deployment, epochs, part, receiver, logs, moment)
        except Undelivered as error:
            done.problems.append(f"{epochs.campaign}: an alert reached nobody: {error}; the next run tries again")
            if error.down:
                return
        except Exception as error:
            # Every exception is caught here, because the alerts of other campaigns must still be sent.
            done.problems.append(f"{epochs.campaign}: no alert can be given: {told(error)}")


def _tell(
    deployment: Deployment, epochs: Epochs, part: AlertsPart, receiver: Receiver, logs: Logs, now: datetime
) -> None:
    source = Source(epochs.campaign, tuple(places_of(deployment, epochs, 1 + USUAL)), deployment, epochs)
    log = logs.of("analyzer", epochs.campaign)
    alert = alert_of(source, part, log.read().told)
    if alert is not None:
        receiver.send(alert.message)
        # If a run is killed between sending and this log entry, the next run sends the same alert again.
        log.decide(partial(_unless_told, alert.told), now)


def _unless_told(told: Told, fold: Fold) -> Told | None:
    """Return the entry of an alert if the log lacks it; None if another run has told these changes."""
    return None if told.up.items() <= fold.told.get(told.window, {}).items() else told


def check(deployment: Deployment, *, sends: bool = False) -> list[Finding]:
    """Check whether alerts can be sent: check the settings on this machine, or send a test.

    Raises:
        UsageError: a test is to be sent, but the deployment file has no table [alerts].
    """
    part = deployment.file.alerts
    if part is None:
        if sends:
            raise UsageError(
                f"deployment file {deployment.path} has no table [alerts]: add it, or leave out --test-alert"
            )
        return []
    try:
        receiver = receiver_of(deployment, part)
        if sends:
            says = "this is a test, which hushcount doctor --test-alert sent"
            receiver.send(Message(f"test_{uuid.uuid4().hex}", says, {}))
    except (HushcountError, OSError) as error:
        return [Finding("alerts", "bad", told(error))]
    return [Finding("alerts", "good", f"{'a test went' if sends else 'go'} to {receiver.name}")]
