"""hushcount alerts: what stands now, and whether anybody was told."""

from __future__ import annotations

import uuid
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, Any

from rich.text import Text
from typer import Option

from pipelines.console import options
from pipelines.console.answer import Answer, note
from pipelines.console.tables import Table

if TYPE_CHECKING:
    from pipelines.alerts.telling import Standing


def alerts(
    config: options.Config,
    test: Annotated[bool, Option("--test", help="Send one test alert now, and show no others.")] = False,
) -> Answer:
    """Use it after a change of [alerts], or to see what hushcount run told. It sends nothing without --test.

    Exit status 1: an alert could not be judged or was given up, or the test did not arrive.

    Example: hushcount alerts --config deployment.toml
    """
    from pipelines.alerts.telling import send_test, standing
    from pipelines.deployment.settings import Deployment

    deployment, now = Deployment.read(config), datetime.now(timezone.utc)
    if test:
        id = f"test_{uuid.uuid4().hex}"
        place, failure = send_test(deployment, id, now)
        sent = {"id": id, "place": place, "failure": failure or None}
        return Answer(sent, [] if failure else [f"a test alert went to {place}"], failure)
    found = standing(deployment, now)
    for problem in (*found.seen.problems, *found.undelivered):
        note(f"warning: {problem}", "yellow")
    failed = bool(found.seen.problems) or any(one.state == "given_up" for one in found.deliveries.values())
    rows = [(alert.kind, alert.says, _told(found, alert.subject)) for alert in found.seen.alerts]
    stands = Table("", ("alert", "what stands", "told"), rows, words=("what stands", "told"))
    quiet = Text("no alert stands", "green")
    return Answer(_facts(found), [stands if rows else quiet], status=1 if failed else 0)


def _told(found: Standing, subject: str) -> str:
    one = found.deliveries.get(subject)
    if one is None:
        return "not yet: hushcount run tells it"
    words = {"sent": "yes", "pending": "not yet", "given_up": "no, given up"}
    return f"{words[one.state]}: {one.failure}" if one.failure else words[one.state]


def _facts(found: Standing) -> dict[str, Any]:
    """Return the alerts for machines; `delivery` is null until a run has noted it."""
    listed = []
    for alert in found.seen.alerts:
        one = found.deliveries.get(alert.subject)
        told = None if one is None else {"state": one.state, "attempts": one.attempts, "failure": one.failure or None}
        listed.append(
            {
                "id": None if one is None else one.id,
                "since": None if one is None else one.began.isoformat(),
                "kind": alert.kind,
                "campaign": alert.campaign,
                "about": alert.about,
                "says": alert.says,
                "numbers": dict(alert.numbers),
                "delivery": told,
            }
        )
    return {"alerts": listed, "problems": [*found.seen.problems, *found.undelivered]}
