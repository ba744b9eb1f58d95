"""The state of a campaign: its reports by hop, differences between numbers, and its privacy budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import timezone, tzinfo

from hushcount.collection.windows import window_names
from pipelines.audit.foresight import budget
from pipelines.audit.reconcile import Account, account_of
from pipelines.audit.view import View
from pipelines.console.tables import by_reason
from pipelines.ledger import overview
from pipelines.monitoring.panel_campaign import seconds_of
from pipelines.pages.figures import Block, Column, Figure, Part, Prose, Row
from pipelines.pages.text import sentence
from pipelines.questions.spans import Span
from pipelines.windows.calendar import Calendar
from pipelines.windows.rules import calendar_of

_HEADS = ("window", "hop and stream", "received", "went on", "state or rejections")
_COLLECTED = "collected"


def hops_of(view: View, key: str, span: Span) -> Figure:
    """Return a figure of the reports of each hop in chosen windows, with a sentence for each difference."""
    account = account_of(view)
    rows = [*columns_of(account, span, calendar_of(view.deployment, view.fold), view.deployment.windows.tiling.clock)]
    says = (
        *(f"DIFFERENCE {difference}" for difference in account.differences),
        *(f"Given up: {says}" for says in account.given_up),
        *(f"Waits: {one.says}" for one in account.waiting),
        "Red: numbers differ." if account.differences else "All numbers agree." if rows else "No report came yet.",
    )
    notes = ("Reports of each window: accepted, with rejected ones above them. Each row has its own scale.",)
    return Figure(f"{key}-hops", "Reports by hop", says, "columns", _HEADS, tuple(rows), most=len(rows), notes=notes)


def columns_of(account: Account, span: Span, calendar: Calendar, zone: tzinfo = timezone.utc) -> Iterator[Row]:
    """Yield a row for each stream and hop of the chosen windows, marked as wrong if its numbers do not add up."""
    known = {counts.window for counts in account.windows} | {hop.batch.split("-")[0] for hop in account.hops}
    windows = span.chosen(sorted(known), None, zone)
    short = window_names(windows, zone)
    for counts in account.windows:
        if counts.window in short:
            wrong = sum(counts.states.values()) != counts.received
            aside = counts.states.get("quarantined", 0)
            told = (f"{_COLLECTED} {counts.stream}", f"{counts.received:,}", f"{counts.received - aside:,}")
            time = seconds_of(calendar, counts.window)
            column = Column(told[0], short[counts.window], time, counts.received - aside, aside, wrong)
            yield Row(short[counts.window], (*told, by_reason(counts.states)), column, wrong, asdict(counts))
    for hop in account.hops:
        window = hop.batch.split("-")[0]
        if window in short:
            rejected = sum(hop.rejected.values())
            # The sentences about a batch begin with the batch's name.
            named = any(said.startswith((f"{hop.batch} {hop.hop}:", f"{hop.batch}: ")) for said in account.differences)
            wrong = hop.received != hop.accepted + rejected or named
            band = f"{hop.hop} {hop.stream}"
            column = Column(band, short[window], seconds_of(calendar, window), hop.accepted, rejected, wrong)
            numbers = (f"{hop.received:,}", f"{hop.accepted:,}", by_reason(hop.rejected))
            yield Row(short[window], (band, *numbers), column, wrong, asdict(hop))


def budget_of(view: View, key: str) -> Block:
    """Return the part of its limit that a campaign has spent, and how many more windows the remaining budget lasts."""
    heading, ledger = "Privacy budget", view.deployment.ledger
    says = [sentence(finding.says) for finding in budget(view)]
    described = overview.describe(ledger, view.campaign, view.clock) if ledger is not None and ledger.exists() else None
    account = None if described is None else described.accounts.get(view.campaign)
    if account is not None and account.limit is not None and account.spent.epsilon is None:
        says.append(f"No finite epsilon is known for the charges at the limit's delta, {account.limit.delta:g}.")
    if account is None or account.limit is None or account.spent.epsilon is None:
        return Prose(f"{key}-budget", heading, tuple(says) or ("No ledger records the cost of releases.",))
    spent, limit = account.spent.epsilon, account.limit.epsilon
    renews = "never" if account.renews is None else account.renews
    says.append(
        f"{spent:.4g} of epsilon {limit:,.6g} at delta {account.limit.delta:g} is spent by {account.spent.releases:,} "
        f"releases; it renews: {renews}."
    )
    rows = tuple(
        Row(name, (f"{part:.4g}",), Part(round(part, 4)), facts={"epsilon": part})
        for name, part in (("spent", spent), ("left", max(limit - spent, 0.0)))
    )
    heads = ("epsilon", "amount")
    return Figure(f"{key}-budget", heading, tuple(says), "parts", heads, rows, axis="epsilon")
