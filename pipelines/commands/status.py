"""hushcount status: what became of every report, by number."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushcount.errors import HushcountError, UsageError
from pipelines.console.command_table import new_app
from pipelines.console.common import JsonOption, out_console, progress_console, reported, show_json
from pipelines.console.numbers import MOST_WINDOWS
from pipelines.console.options import ConfigOption
from pipelines.console.tables import show_table, stamp, window_names

if TYPE_CHECKING:
    from pipelines.audit.collecting import Collecting
    from pipelines.audit.reconcile import Account

app = new_app()


@app.command("status")
@reported
def status(
    config: ConfigOption,
    campaign: Annotated[str | None, typer.Option(help="Only this campaign.")] = None,
    last: Annotated[
        int, typer.Option(help="So many windows; the counts of all are checked.", min=1, max=MOST_WINDOWS)
    ] = 7,
    digests: Annotated[
        bool, typer.Option("--digests", help="Read all that was handed on, not only what is new.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what became of every report, by number; exit status 1 where two numbers do not agree.

    Example: hushcount status --config deployment.toml
    """
    from pipelines.audit.collecting import collecting
    from pipelines.audit.reconcile import Account, account_of
    from pipelines.audit.view import View
    from pipelines.batches.state import opened, snapshot
    from pipelines.batches.waiting import unclaimed
    from pipelines.deployment.campaigns import read_epochs
    from pipelines.deployment.settings import Deployment

    deployment = Deployment.read(config)
    campaigns, faults = read_epochs(deployment.campaigns)
    names = [epochs.campaign for epochs in campaigns]
    if campaign is not None and campaign not in names:
        raise UsageError(f"campaign is {campaign!r}, must be one of {', '.join(names) or 'none'}")
    now = datetime.now(timezone.utc)
    with opened(deployment.state) as database, snapshot(database) as state:
        wanted = [epochs for epochs in campaigns if campaign in (None, epochs.campaign)]
        views = [*View(deployment, now, wanted, connection=state).each()]
        accounts = [account_of(view, digests=digests) for view in views]
    strange = unclaimed(deployment, {*names, *faults}) if campaign is None else {}
    open_now = {view.campaign: collecting(view) for view in views}
    if as_json:
        without_file = [asdict(Account(name, differences=[said])) for name, said in strange.items()]
        shown = [
            {**asdict(account), "collecting": _collecting_facts(open_now[account.campaign])} for account in accounts
        ]
        show_json([*shown, *without_file])
    else:
        for account in accounts:
            _show_collecting(account.campaign, open_now[account.campaign])
            _show_account(account, last)
        for said in strange.values():
            out_console().print(f"DIFFERENCE {said}", style="yellow", markup=False, soft_wrap=True)
    for name, fault in faults.items():
        progress_console().print(f"error: {name}: {fault}", style="bold red", markup=False, soft_wrap=True)
    differences = len(faults) + len(strange) + sum(len(account.differences) for account in accounts)
    if differences:
        raise HushcountError(f"{differences} difference{'s' if differences > 1 else ''}: see above")


def _collecting_facts(now: Collecting) -> dict[str, Any]:
    """Return it for machines; `held` is null where it cannot be seen from here."""
    return {
        "window": now.window.name,
        "ends": now.window.end.isoformat(),
        "closed_by": now.closed_by.isoformat(),
        "held": None
        if now.held is None
        else [{"window": one.window.name, "stream": one.stream, "reports": one.reports} for one in now.held],
        "seen": now.why,
    }


def _show_collecting(campaign: str, now: Collecting) -> None:
    """Print the window that is open, and what the collector of this machine holds."""
    console = out_console()
    ends, closed_by = stamp(now.window.end), stamp(now.closed_by)
    console.print(f"{campaign}: the open window ends {ends}; hushcount run closes it by {closed_by}", soft_wrap=True)
    if now.held is None:
        console.print(f"  what collectors hold of it is not seen: {now.why}\n", soft_wrap=True)
        return
    short = window_names(one.window.name for one in now.held)
    rows = [(short[one.window.name], one.stream, f"{one.reports:,}", stamp(one.window.end)) for one in now.held]
    if rows:
        heads = ("window", "stream", "in journals", "ends")
        show_table(console, heads, rows, title=f"{campaign}: in journals, {now.why}", words=())
        console.print()
    else:
        console.print(f"  nothing is in journals, {now.why}\n", soft_wrap=True)


def _show_account(account: Account, last: int) -> None:
    from pipelines.audit.reconcile import WindowCounts

    console = out_console()
    windows = sorted({counts.window for counts in account.windows} | set(account.refused))[-last:]
    short = window_names(windows)
    heads = ("window", "stream", "received", "by now", "refused")
    rows = []
    received = {counts.window for counts in account.windows if counts.stream == "reports"}
    # A window may have brought refusals and nothing else.
    empty = [WindowCounts(window, "reports", 0, {}) for window in account.refused if window not in received]
    for counts in sorted((*account.windows, *empty), key=lambda counts: (counts.window, counts.stream)):
        if counts.window in windows:
            refused = account.refused.get(counts.window, {}) if counts.stream == "reports" else {}
            numbers = (f"{counts.received:,}", _by_reason(counts.states), _by_reason(refused))
            rows.append((short[counts.window], counts.stream, *numbers))
    title = f"{account.campaign}: collected, by windows that begin then, UTC"
    show_table(console, heads, rows, title=title, words=("by now", "refused"))
    console.print()
    heads = ("batch", "hop", "received", "forwarded", "rejected")
    rows = []
    for hop in account.hops:
        if hop.batch.partition("-")[0] in windows:
            window, epoch, _ = hop.batch.split("-")
            numbers = (f"{hop.received:,}", f"{hop.accepted:,}", _by_reason(hop.rejected))
            rows.append((f"{short[window]} epoch {int(epoch)}", f"{hop.hop} {hop.stream}", *numbers))
    show_table(console, heads, rows, title=f"{account.campaign}: processed", words=("batch", "hop", "rejected"))
    console.print()
    for difference in account.differences:
        console.print(f"DIFFERENCE {difference}", style="bold red", markup=False, soft_wrap=True)
    for one in account.waiting:
        style = "yellow" if one.verdict == "warning" else "bold red"
        console.print(f"WAITS {one.says}", style=style, markup=False, soft_wrap=True)
    if not account.differences:
        console.print(f"{account.campaign}: all numbers agree", style="green", markup=False)


def _by_reason(numbers: dict[str, int]) -> str:
    return ", ".join(f"{reason} {number:,}" for reason, number in sorted(numbers.items())) or "none"
