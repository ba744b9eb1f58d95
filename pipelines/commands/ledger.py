"""hushcount ledger: the privacy cost of releases, and its limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from hushcount.errors import UsageError
from hushcount.maths.figures import rounded_up
from pipelines.console import options
from pipelines.console.answer import Answer
from pipelines.console.job_results import pair, remaining
from pipelines.console.tables import Table, stamp

if TYPE_CHECKING:
    from pipelines.ledger.charges import Charge
    from pipelines.outputs.account import Account, Spent

_JOINT = (
    "  joint: for one client with at most as many reports in each release as the charge assumes, any of its values "
    "against any others (replace-one); it holds if the shuffler was honest in all releases, no report is in two of "
    "them, and no parameter, no number of reports and no number of windows depended on a result"
)
FileOption = Annotated[Path | None, Option("--ledger", help="Ledger file.", show_default="the deployment's")]


def set_limit(
    epsilon: Annotated[float, Option(help="Largest total epsilon of all releases, for one client.", max=1e6)],
    delta: Annotated[float, Option(help="Delta of that total; 0 for local guarantees only.")],
    campaign: options.CampaignId = None,
    ledger: FileOption = None,
    config: options.Config = options.HERE,
    renew_days: Annotated[
        int | None,
        Option("--renew-days", metavar="N", help="Days after which the budget begins anew.", show_default="never"),
    ] = None,
    fixed: Annotated[
        bool,
        Option(
            "--fixed-parameters",
            help="Promise that no parameter and no number of reports of a release depends on results. Charges then "
            "add up to less than their sum, but releases of a second campaign file, made by [next_epoch] or for new "
            "keys, are refused until the budget renews.",
        ),
    ] = False,
) -> Answer:
    """Use it before the first release. A release over the limit is refused before it reads data. It covers all epochs.

    Example: hushcount ledger set --epsilon 1 --delta 1e-6 --renew-days 365
    """
    from pipelines.deployment.campaigns import require_campaign
    from pipelines.deployment.settings import Deployment
    from pipelines.ledger.overview import set_limit as job

    if campaign is None:
        campaign = require_campaign(Deployment.read(config).campaigns, None).campaign
    account = job(_file(ledger, config), campaign, epsilon, delta, renew_days, fixed=fixed)
    return Answer({"campaign": campaign, **asdict(account)}, [_accounts({campaign: account})])


def show(
    ledger: FileOption = None,
    config: options.Config = options.HERE,
    campaign: Annotated[str | None, Option(help="Only this campaign.")] = None,
) -> Answer:
    """Use it to see the remaining budget, and to find reservations of releases that never ended.

    Example: hushcount ledger show
    """
    from pipelines.ledger.overview import describe

    described = describe(_file(ledger, config), campaign)
    heads = ("campaign", "hop", "reports", "epsilon", "delta", "state", "when", "key")
    rows = [
        (
            f"{charge.campaign} epoch {charge.epoch}{_unit(charge)}",
            charge.hop,
            "" if charge.reports is None else f"{charge.reports:,}",
            rounded_up(charge.epsilon),
            rounded_up(charge.delta),
            "stale reservation" if charge.key in described.stale else charge.state,
            stamp(datetime.fromisoformat(charge.stamped)),
            charge.key[:12],
        )
        for charge in described.charges
    ]
    charges = Table("charges", heads, rows, words=("campaign", "state", "when"))
    joint = any(account.spent.composition == "joint" for account in described.accounts.values())
    return Answer(described.data(), [_accounts(described.accounts), *([_JOINT] if joint else []), charges])


def check(ledger: FileOption = None, config: options.Config = options.HERE) -> Answer:
    """Use it after a crash or a restored backup. Exit status 2: the ledger is damaged or does not add up.

    Example: hushcount ledger check
    """
    from pipelines.ledger.overview import check as job

    done = job(_file(ledger, config))
    over = f"; over their limit: {', '.join(done.over)}" if done.over else ""
    whole = f"whole: {done.charges:,} charges, {done.reservations:,} reservations, {done.limits:,} limits{over}"
    return Answer(asdict(done), [whole, *(f"warning: {warning}" for warning in done.warnings)])


def confirm(
    date: Annotated[datetime, Option(formats=["%Y-%m-%d"], help="Today, from another clock than this machine's.")],
    ledger: FileOption = None,
    config: options.Config = options.HERE,
) -> Answer:
    """Use it if a budget does not renew because this clock is over two days ahead of the ledger's time.

    Example: hushcount ledger confirm --date 2026-11-22
    """
    from pipelines.ledger.own_time import confirm as job

    now = stamp(job(_file(ledger, config), date.date()).now)
    return Answer({"now": now}, [f"the ledger's time is {now}"])


def export(
    out: Annotated[Path, Option(help="File to write: charges as .csv, or charges and limits as .json.")],
    ledger: FileOption = None,
    config: options.Config = options.HERE,
) -> Answer:
    """Use it for an audit, or to keep a copy that other programs can read.

    Example: hushcount ledger export --out charges.csv
    """
    from pipelines.ledger.overview import export as job

    number = job(_file(ledger, config), out)
    return Answer({"charges": number, "out": str(out)}, [f"{number:,} charges written to {out}"])


def _file(ledger: Path | None, config: Path) -> Path:
    """Return the ledger that the option names, or else the deployment's ledger; UsageError if there is neither."""
    if ledger is not None:
        return ledger
    from pipelines.deployment.settings import Deployment

    found = Deployment.read(config).ledger
    if found is None:
        raise UsageError(f"deployment file {config} names no ledger: give --ledger FILE")
    return found


def _accounts(accounts: Mapping[str, Account]) -> Table:
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
    return Table("campaigns", heads, rows, words=("campaign", "by"))


def _unit(cost: Charge | Spent) -> str:
    """Return the text that says that a cost is for one report; empty if the cost is for one client."""
    return ", of one report" if cost.per == "report" else ""
