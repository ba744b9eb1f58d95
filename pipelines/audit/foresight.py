"""What `hushcount run` will do next, tried before it does: the next epoch, and how many windows the budget allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.privacy.composition import Loss
from hushcount.privacy.statement import statement
from hushcount.privacy.unit import rule_of
from hushcount.senders import Senders, counted
from pipelines.audit.view import Finding, Verdict, View
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment, most_epochs_a_year
from pipelines.ledger.balance import OverLimit, require_room
from pipelines.ledger.charging import cost_of, release_of
from pipelines.ledger.file import opened, read_charges, read_limit, read_newest
from pipelines.ledger.own_time import believed
from pipelines.ledger.records import Limit, stamp
from pipelines.outputs.account import Hop

_ENOUGH = 30
"""Windows ahead that a budget without renewal should allow."""


def next_epoch(deployment: Deployment, epochs: Epochs, now: datetime) -> Iterator[Finding]:
    """Whether the next epoch can be planned and signed, with the key that is named."""
    part = deployment.file.next_epoch.get(epochs.campaign)
    if part is None:
        return
    name = f"next epoch of {epochs.campaign}"
    try:
        # It plans mechanisms and reads keys, which a party that only runs jobs may not have.
        from pipelines.epochs.next_epoch import rehearse
    except ModuleNotFoundError as error:
        yield Finding(name, "bad", f"package {error.name} is not here: set next_epoch where the analyzer runs")
        return
    yield Finding(name, "good", rehearse(deployment, epochs, part, now))


def budget(view: View) -> Iterator[Finding]:
    """Whether the ledger has room for the windows to come."""
    deployment, epochs = view.deployment, view.epochs
    if deployment.ledger is None:
        return
    name, campaign = f"budget of {epochs.campaign}", epochs.newest[1]
    # Each collector that is named counts a client's cap by itself.
    collectors = max(1, len(deployment.file.collectors))
    senders = counted("client-token", collectors, collectors)
    costs = _costs(deployment, campaign, _usual_reports(view), senders)
    if not costs:
        return
    limit, left, now = _room(deployment.ledger, campaign, costs, view.now, senders)
    if limit is None:
        yield Finding(name, "good", "no limit is set, and nothing is refused: hushcount ledger set")
        return
    if limit.composition == "numerical" and epochs.campaign in deployment.file.next_epoch:
        yield Finding(
            f"fixed parameters of {epochs.campaign}",
            "bad",
            "the limit was set with --fixed-parameters, and [next_epoch] makes parameters of results",
            "releases of the next epoch will be refused; hushcount ledger set the limit without it",
        )
    renews = limit.period(now)[1]
    until = None if renews is None else -(-(renews - now) // deployment.windows.length)
    needed = _ENOUGH if until is None else min(_ENOUGH, until)
    verdict: Verdict = "bad" if left == 0 else "warning" if left < needed else "good"
    then = "and it does not renew" if until is None else f"{until:,} begin until it renews"
    more = f"{left:,} or more" if left == _ENOUGH else f"{left:,}"
    cure = "hushcount ledger set a larger limit, or windows.length a longer window"
    yield Finding(name, verdict, f"the ledger allows {more} windows, {then}", cure)


def _usual_reports(view: View) -> int:
    """Return how many frequency reports the analyzer accepted of the last batch; 0: none yet."""
    analyzed = (hops.get("analyze", {}).get("reports") for _, hops in sorted(view.counts.items(), reverse=True))
    return next((int(counts["accepted"]) for counts in analyzed if counts), 0)


def _costs(deployment: Deployment, campaign: Campaign, reports: int, senders: Senders) -> list[tuple[Hop, Loss]]:
    """Return what the releases of one window cost that are charged here."""
    # A limit is a client's, and what clients are not told apart in is no charge of one.
    stated = statement(campaign, max(reports, campaign.shuffle.minimum_batch), senders)
    parties = deployment.file.parties
    discovers = campaign.discovery is not None and {"aux-server", "analyzer"} & set(parties)
    hops: list[Hop] = ["discover"] if discovers else []
    if campaign.mechanism is not None and "analyzer" in parties:
        hops.append("analyze")
    if discovers:
        # A sentence, where no rule holds for so many collectors.
        rule_of(campaign, senders)
    return [(hop, cost_of(stated, hop)) for hop in hops]


def _room(
    ledger: Path, campaign: Campaign, costs: list[tuple[Hop, Loss]], now: datetime, senders: Senders
) -> tuple[Limit | None, int, datetime]:
    """Return the limit, how many windows fit into it, of _ENOUGH at most, and the ledger's time."""
    if not ledger.exists():
        return None, 0, now
    with opened(ledger) as connection:
        limit, charges = read_limit(connection, campaign.id), read_charges(connection, campaign.id)
        now = believed(now, read_newest(connection))
    if limit is None:
        return None, 0, now
    fits, most = 0, _ENOUGH
    while fits < most:
        tried = (fits + most + 1) // 2
        *others, last = [
            replace(release_of(campaign, hop, loss, senders, "client"), state="committed", committed_at=stamp(now))
            for hop, loss in costs * tried
        ]
        try:
            require_room(limit, [*charges, *others], last, last.loss, now)
            fits = tried
        except OverLimit:
            most = tried - 1
    return limit, fits, now


def year(deployment: Deployment, epochs: Epochs, _now: datetime) -> Iterator[Finding]:
    """What clients spend over the epochs of a year, and what waits for the operator."""
    part = deployment.file.next_epoch.get(epochs.campaign)
    if part is None:
        return
    # Not at the top: a party that only runs jobs has no such package.
    from pipelines.epochs.review import waiting

    most = most_epochs_a_year(part.least_length)
    said = f"{most} epochs at most, and one for each rotation of keys: {spent_in(most, epochs.newest[1])}"
    yield Finding(f"epochs of {epochs.campaign} a year", "good", said)
    if part.review and part.add_found:
        wait = len(waiting(epochs))
        says = f"{wait:,} found values wait" if wait else "nothing waits"
        cure = f"hushcount epoch review --campaign {epochs.campaign}"
        yield Finding(f"review of {epochs.campaign}", "warning" if wait else "good", says, cure)


def spent_in(epochs: int, campaign: Campaign) -> str:
    """Return what one client's frequency reports cost it over so many epochs."""
    if campaign.mechanism is None:
        return "clients send no frequency reports, and spend nothing by them"
    if campaign.epoch_epsilon is None:
        each = campaign.shuffle.cap * campaign.mechanism.epsilon
        return (
            f"clients do not remember, and each spends epsilon {each:g} at most in every window at one collector, "
            "whatever the epochs"
        )
    values = f"{campaign.memory_values} {'value' if campaign.memory_values == 1 else 'values'}"
    return f"each client spends epsilon {epochs * campaign.epoch_epsilon:g} at most, for {values} an epoch"
