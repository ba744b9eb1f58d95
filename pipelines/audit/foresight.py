"""Try beforehand what `hushcount run` will do: plan the next epoch, and charge the windows to come."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.tilings import Tiling
from hushcount.privacy.statement import statement, window_of
from hushcount.privacy.unit import rule_of
from hushcount.senders import counted
from pipelines.audit.view import Finding, Verdict, View
from pipelines.deployment.parts import most_epochs_a_year
from pipelines.ledger.balance import OverLimit, require_room
from pipelines.ledger.charges import Charge, Limit, stamp
from pipelines.ledger.charging import cost_of, release_of
from pipelines.ledger.file import opened, read_charges, read_limit, read_newest
from pipelines.ledger.own_time import believed
from pipelines.ledger.runs import living
from pipelines.outputs.account import Hop

_ENOUGH = 30
"""A budget should be enough for this number of windows, or if fewer windows begin before it renews, for these."""


@dataclass(frozen=True)
class Room:
    """The number of windows to come that a budget is enough for.

    Attributes:
        left: number of windows; 30 means 30 or more.
        until: number of windows that begin before the budget renews; None: the budget does not renew.
    """

    left: int
    until: int | None


def next_epoch(view: View) -> Iterator[Finding]:
    """Check that the next epoch can be planned, and signed with the key that [next_epoch] names."""
    part = view.deployment.file.next_epoch.get(view.campaign)
    if part is None:
        return
    name = f"next epoch of {view.campaign}"
    try:
        # Imported only here: the module next_epoch needs packages that a party that only runs jobs may lack.
        from pipelines.epochs.next_epoch import rehearse
    except ModuleNotFoundError as error:
        yield Finding(name, "bad", f"package {error.name} is not here: set next_epoch where the analyzer runs")
        return
    yield Finding(name, "good", rehearse(view.deployment, view.epochs, part, view.calendar, view.now))


def budget(view: View) -> Iterator[Finding]:
    """Say how many further windows the budget of the ledger is enough for."""
    deployment, campaign = view.deployment, view.epochs.newest[1]
    releases = [] if deployment.ledger is None else _releases(view, campaign)
    if deployment.ledger is None or not releases:
        return
    name = f"budget of {view.campaign}"
    limit, charges, now = _books(deployment.ledger, campaign.id, view.now)
    if limit is None:
        yield Finding(name, "good", f"no limit is set, and nothing is refused: {deployment.command('ledger set')}")
        return
    if limit.composition == "joint" and view.campaign in deployment.file.next_epoch:
        yield Finding(
            f"fixed parameters of {view.campaign}",
            "bad",
            "the limit was set with --fixed-parameters, but [next_epoch] plans parameters from results",
            "releases of the next epoch will be refused; set the limit without --fixed-parameters: "
            f"{deployment.command('ledger set')}",
        )
    room = _room(limit, charges, releases, now, deployment.windows.tiling)
    left, until = room.left, room.until
    needed = _ENOUGH if until is None else min(_ENOUGH, until)
    verdict: Verdict = "bad" if left == 0 else "warning" if left < needed else "good"
    then = "and it does not renew" if until is None else f"{until:,} begin until it renews"
    more = f"{left:,} or more" if left == _ENOUGH else f"{left:,}"
    cure = f"make the window longer (windows.length), or the limit larger: {deployment.command('ledger set')}"
    # The finding says "composed jointly" only if a charge has a curve: joint composition lowers no other charge.
    curves = any(charge.window is not None for charge in (*charges, *releases))
    jointly = ", charges composed jointly" if limit.composition == "joint" and curves else ""
    yield Finding(name, verdict, f"the ledger allows {more} windows, {then}{jointly}", cure)


def room_of(view: View) -> Room | None:
    """Return the number of windows that a campaign's budget allows; None: no limit is set, or nothing is charged."""
    ledger, campaign = view.deployment.ledger, view.epochs.newest[1]
    if ledger is None:
        return None
    limit, charges, now = _books(ledger, campaign.id, view.now)
    if limit is None or not (releases := _releases(view, campaign)):
        return None
    return _room(limit, charges, releases, now, view.deployment.windows.tiling)


def _books(ledger: Path, campaign: str, now: datetime) -> tuple[Limit | None, list[Charge], datetime]:
    """Return a campaign's limit, its charges and the ledger's time; (None, [], `now`) if there is no ledger file."""
    if not ledger.exists():
        return None, [], now
    with opened(ledger) as connection:
        limit, charges = read_limit(connection, campaign), read_charges(connection, campaign)
        now = believed(now, read_newest(connection))
    return limit, living(ledger, charges, now), now


def _room(limit: Limit, charges: list[Charge], releases: list[Charge], now: datetime, tiling: Tiling) -> Room:
    window = [replace(release, state="committed", committed_at=stamp(now)) for release in releases]
    left = bisect_left(range(1, _ENOUGH + 1), True, key=lambda number: _passes(limit, charges, window * number, now))
    renews = limit.period(now)[1]
    return Room(left, None if renews is None else tiling.number(now, renews))


def _releases(view: View, campaign: Campaign) -> list[Charge]:
    """Return what the parties here charge for the releases of a window with as many reports as the last batch."""
    parties = view.deployment.file.parties
    # Each collector in the deployment file applies a client's cap separately.
    collectors = max(1, len(view.deployment.file.collectors))
    # A limit is for one client, so nothing is charged against it if collectors do not tell clients apart.
    senders = counted("client-token", collectors, collectors)
    analyzed = (hops.get("analyze", {}).get("reports") for _, hops in sorted(view.counts.items(), reverse=True))
    reports = next((row.accepted for row in analyzed if row is not None), 0)
    stated = statement(campaign, max(reports, campaign.shuffle.minimum_batch), senders)
    hops: list[Hop] = []
    if campaign.discovery is not None and {"aux-server", "analyzer"} & set(parties):
        # `rule_of` raises an error for the operator if no keep rule holds for so many collectors.
        rule_of(campaign, senders)
        hops.append("discover")
    charges = {"analyzer"} if campaign.noise is None else {"analyzer", "aux-server"}
    if "reports" in campaign.streams and charges & set(parties):
        hops.append("analyze")
    window = window_of(campaign, senders, max(reports, campaign.shuffle.minimum_batch))
    return [
        replace(
            release_of(campaign, hop, cost_of(stated, hop), senders, "client"),
            window=window if hop == "analyze" else None,
        )
        for hop in hops
    ]


def _passes(limit: Limit, charges: list[Charge], releases: list[Charge], now: datetime) -> bool:
    """Return whether the charges and further releases together exceed a limit."""
    *others, last = releases
    try:
        require_room(limit, [*charges, *others], last, last.loss, now)
    except OverLimit:
        return True
    return False


def year(view: View) -> Iterator[Finding]:
    """Say how much epsilon clients spend over the epochs of a year, and how many discovered values await a decision."""
    part = view.deployment.file.next_epoch.get(view.campaign)
    if part is None:
        return
    # Imported only here, because a party that only runs jobs may lack the packages that tracked_items imports.
    from pipelines.epochs.tracked_items import waiting

    most = most_epochs_a_year(part.least_length)
    said = f"{most} epochs at most, and one for each rotation of keys: {spent_in(most, view.epochs.newest[1])}"
    yield Finding(f"epochs of {view.campaign} a year", "good", said)
    if part.review and part.add_found:
        wait = len(waiting(view.epochs))
        says = f"{wait:,} discovered values await your decision" if wait else "no discovered value awaits your decision"
        cure = view.deployment.command(f"campaign review --campaign {view.campaign}")
        yield Finding(f"review of {view.campaign}", "warning" if wait else "good", says, cure)


def spent_in(epochs: int, campaign: Campaign) -> str:
    """Return a sentence on how much epsilon one client spends on frequency reports in this number of epochs."""
    if campaign.noise is not None:
        return (
            f"each client spends epsilon {campaign.noise.epsilon:g} in every window at each collector, however long an "
            "epoch is, as long as one of both mixes keeps to its role"
        )
    if campaign.mechanism is None:
        return "clients send no frequency reports, so they spend nothing on them"
    if campaign.epoch_epsilon is None:
        each = campaign.shuffle.cap * campaign.mechanism.epsilon
        return (
            f"clients have no memory, so each spends epsilon {each:g} at most in every window at each collector, "
            "however long an epoch is"
        )
    values = f"{campaign.memory_values} {'value' if campaign.memory_values == 1 else 'values'}"
    return f"each client spends epsilon {epochs * campaign.epoch_epsilon:g} at most, for {values} an epoch"
