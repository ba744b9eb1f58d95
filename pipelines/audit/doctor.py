"""hushcount doctor: find the faults of a deployment before the faults do harm, and say how to cure them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from hushcount.clock import MACHINE
from hushcount.errors import HushcountError
from pipelines.audit import campaign_checks as campaign
from pipelines.audit import deployment_checks as whole
from pipelines.audit import evaluator_checks, foresight
from pipelines.audit.view import Finding, View
from pipelines.deployment.campaigns import read_epochs
from pipelines.deployment.settings import Deployment
from pipelines.files.storage_errors import told
from pipelines.log.log import Logs

Checks = tuple[Callable[[View], Iterator[Finding]], ...]
"""Checks in the order of their findings; if a check raises, its finding has the name of the check's function."""
_OF_FILES: Checks = (
    campaign.epoch,
    campaign.keys,
    campaign.passes,
    campaign.signature,
    campaign.named,
    campaign.publisher,
    evaluator_checks.evaluator,
    foresight.next_epoch,
    foresight.year,
)
_OF_SETTINGS: Checks = (
    whole.sign_with, whole.keys_of_parties, whole.opening_engine, whole.zone,
    whole.groups, whole.ledger, whole.authentication, evaluator_checks.evaluator_apart, whole.store, whole.puts,
)  # fmt: skip
_OF_LOGS: Checks = (whole.run, whole.collectors, whole.disk, whole.segments, whole.clock)
_OF_REPORTS: Checks = (
    campaign.log, campaign.windows, campaign.volume, campaign.waiting, campaign.charges, foresight.budget,
    campaign.runs, campaign.collectors, campaign.segments, campaign.senders, campaign.campaign_files,
    campaign.age_of_segments, campaign.opening, campaign.numbers, evaluator_checks.evaluator_keys,
)  # fmt: skip


def examine(deployment: Deployment, now: datetime | None = None) -> list[Finding]:
    """Return the findings of all checks; a check that raises an error is itself a bad finding."""
    return list(_examined(View(deployment, now or MACHINE.now(), logs=Logs(deployment))))


def _examined(view: View) -> Iterator[Finding]:
    try:
        campaigns, faults = read_epochs(view.deployment.campaigns)
        view = replace(view, campaigns=campaigns, faults=faults)
    except (HushcountError, OSError) as error:
        yield Finding("campaigns", "bad", told(error))
    for name, fault in view.faults.items():
        yield Finding(f"campaign {name}", "bad", fault)
    for one in view.each():
        yield from _made(_OF_FILES, one)
    yield from _made(_OF_SETTINGS, view)
    known, view = set(view.faults), view.readable()
    for name in view.faults.keys() - known:
        yield Finding(f"log of {name}", "bad", view.faults[name])
    yield from _made(_OF_LOGS, view)
    for one in view.each():
        yield from _made(_OF_REPORTS, one)


def _made(checks: Checks, view: View) -> Iterator[Finding]:
    for check in checks:
        try:
            yield from check(view)
        except (HushcountError, OSError) as error:
            name = check.__name__
            yield Finding(
                name if view.one is None else f"{name.replace('_', ' ')} of {view.campaign}", "bad", told(error)
            )
