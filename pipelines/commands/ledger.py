"""hushcount ledger: what releases have cost, and what they may cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.console.command_table import new_app
from pipelines.console.common import JsonOption, out_console, reported, show_json
from pipelines.console.numbers import MOST_LIMIT
from pipelines.console.results import pair, remaining
from pipelines.console.tables import show_table, stamp

if TYPE_CHECKING:
    from pipelines.ledger.records import Charge
    from pipelines.outputs.account import Account, Spent

app = new_app("Set, show, check and export what releases cost.")
FileOption = Annotated[Path, typer.Option("--ledger", help="The ledger, a file.")]


@app.command("set")
@reported
def set_limit(
    ledger: FileOption,
    campaign: Annotated[str, typer.Option(help="Id of the campaign; the limit is for all its epochs.")],
    epsilon: Annotated[float, typer.Option(help="What all its releases may come to, for one client.", max=MOST_LIMIT)],
    delta: Annotated[float, typer.Option(help="At which that is stated; 0 for local guarantees only.")],
    renew_days: Annotated[
        int | None,
        typer.Option("--renew-days", metavar="N", help="Days until the whole budget is back; never if none."),
    ] = None,
    fixed: Annotated[
        bool,
        typer.Option(
            "--fixed-parameters",
            help="No parameter of a release follows from results: charges compose numerically, to less than their sum, "
            "and a second campaign file, as [next_epoch] and new keys make, is refused until the limit renews.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Set a campaign's limit; a release over it is refused before data is read.

    Example: hushcount ledger set --ledger ledger.db --campaign words --epsilon 1 --delta 1e-6 --renew-days 365
    """
    from pipelines.ledger.report import set_limit as job

    account = job(ledger, campaign, epsilon, delta, renew_days, fixed=fixed)
    if as_json:
        show_json({"campaign": campaign, **asdict(account)})
        return
    _show_accounts({campaign: account})


@app.command("show")
@reported
def show(
    ledger: FileOption,
    campaign: Annotated[str | None, typer.Option(help="Only this campaign, by its id.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what each campaign has spent, what remains, and every charge and reservation.

    Example: hushcount ledger show --ledger ledger.db
    """
    from pipelines.ledger.report import describe

    described = describe(ledger, campaign)
    if as_json:
        show_json(described.data())
        return
    _show_accounts(described.accounts)
    heads = ("campaign", "hop", "reports", "epsilon", "delta", "state", "when", "key")
    rows = [
        (
            f"{charge.campaign} epoch {charge.epoch}{_unit(charge)}",
            charge.hop,
            "" if charge.reports is None else f"{charge.reports:,}",
            f"{charge.epsilon:.4g}",
            f"{charge.delta:.4g}",
            "stale reservation" if charge.key in described.stale else charge.state,
            stamp(datetime.fromisoformat(charge.stamped)),
            charge.key[:12],
        )
        for charge in described.charges
    ]
    show_table(out_console(), heads, rows, title="charges", words=("campaign", "state", "when"))


@app.command("check")
@reported
def check(ledger: FileOption, as_json: JsonOption = False) -> None:
    """Check that a ledger is whole and adds up; exit status 2 if it does not.

    Example: hushcount ledger check --ledger ledger.db
    """
    from pipelines.ledger.report import check as job

    done = job(ledger)
    if as_json:
        show_json(asdict(done))
        return
    over = f"; over their limit: {', '.join(done.over)}" if done.over else ""
    out_console().print(
        f"whole: {done.charges:,} charges, {done.reservations:,} reservations, {done.limits:,} limits{over}",
        soft_wrap=True,
        markup=False,
    )
    for warning in done.warnings:
        out_console().print(f"warning: {warning}", soft_wrap=True, markup=False)


@app.command("confirm")
@reported
def confirm(
    ledger: FileOption,
    date: Annotated[
        datetime, typer.Option(formats=["%Y-%m-%d"], help="Today, from another source than this machine's clock.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Say that this machine's clock is right, so that budgets renew by it.

    A ledger does not renew by a clock that is two days ahead of its last use, because it may be wrong.

    Example: hushcount ledger confirm --ledger ledger.db --date 2026-11-22
    """
    from pipelines.ledger.own_time import confirm as job

    now = stamp(job(ledger, date.date()).now)
    if as_json:
        show_json({"now": now})
        return
    out_console().print(f"the ledger's time is {now}", soft_wrap=True, markup=False)


@app.command("export")
@reported
def export(
    ledger: FileOption,
    out: Annotated[Path, typer.Option(help="File to write: charges as .csv, or charges and limits as .json.")],
    as_json: JsonOption = False,
) -> None:
    """Write all charges to a file.

    Example: hushcount ledger export --ledger ledger.db --out charges.csv
    """
    from pipelines.ledger.report import export as job

    number = job(ledger, out)
    if as_json:
        show_json({"charges": number, "out": str(out)})
        return
    out_console().print(f"{number:,} charges written to {out}", soft_wrap=True, markup=False)


def _show_accounts(accounts: Mapping[str, Account]) -> None:
    heads = ("campaign", "limit", "spent", "by", "releases", "remaining", "renews")
    rows = [
        (
            f"{campaign}{_unit(account.spent)}",
            pair(account.limit),
            pair(account.spent),
            account.spent.composition,
            f"{account.spent.releases:,}",
            remaining(account),
            (account.renews or "never")[:10],
        )
        for campaign, account in accounts.items()
    ]
    show_table(out_console(), heads, rows, title="campaigns", words=("campaign", "by"))


def _unit(cost: Charge | Spent) -> str:
    """Return what to add to a name if a cost is one report's, and not a client's as it should be."""
    return ", of one report" if cost.per == "report" else ""
