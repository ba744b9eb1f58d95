"""hushcount status: account for every report in numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import RenderableType
from rich.text import Text
from typer import Option

from hushcount.clock import MACHINE
from hushcount.collection.windows import window_names, window_text
from hushcount.errors import UsageError
from pipelines.console import options
from pipelines.console.answer import Answer, note
from pipelines.console.tables import Table, by_reason, stamp

if TYPE_CHECKING:
    from pipelines.audit.evaluations import Evaluations
    from pipelines.audit.reconcile import Account
    from pipelines.audit.view import View
    from pipelines.deployment.settings import Deployment


def status(
    config: options.Config = options.HERE,
    campaign: Annotated[str | None, Option(help="Only this campaign.")] = None,
    last: options.Last = 7,
    digests: Annotated[
        bool, Option("--digests", help="Check the files of all windows, and read tables and handed-on files again.")
    ] = False,
) -> Answer:
    """Use it to check that no report was lost or counted twice in any window. Exit status 1: two numbers differ.

    Example: hushcount status
    """
    from pipelines.audit.evaluations import evaluations_of
    from pipelines.audit.evaluator_checks import lacks_evaluator
    from pipelines.audit.reconcile import Account, account_of
    from pipelines.audit.view import View
    from pipelines.deployment.campaigns import read_epochs
    from pipelines.deployment.settings import Deployment
    from pipelines.log.log import Logs
    from pipelines.windows.stored import stored_files
    from pipelines.windows.waiting import unclaimed

    deployment = Deployment.read(config)
    campaigns, faults = read_epochs(deployment.campaigns)
    names = [epochs.campaign for epochs in campaigns]
    if campaign is not None and campaign not in names:
        raise UsageError(f"campaign is {campaign!r}, must be one of {', '.join(names) or 'none'}")
    now = MACHINE.now()
    wanted, logs = [epochs for epochs in campaigns if campaign in (None, epochs.campaign)], Logs(deployment)
    whole = View(deployment, now, wanted, faults, logs=logs).readable()
    folds = {view.campaign: view.fold for view in whole.each()}
    listed = stored_files(deployment, None if digests else folds) if deployment.shuffles else {}
    whole = replace(whole, listed=listed, recent=deployment.shuffles and not digests)
    faults, views = dict(whole.faults), [*whole.each()]
    accounts = [account_of(view, digests=digests) for view in views]
    strange = unclaimed(deployment, listed, {*names, *faults}) if campaign is None else {}
    seen = [*zip(accounts, views, strict=True)]
    for name, fault in faults.items():
        note(f"error: {name}: {fault}", "bold red")
    for view in views:
        if (lacks := lacks_evaluator(view)) is not None:
            note(f"warning: {view.campaign}: {lacks}; set evaluator under [analyzer]", "yellow")
    differences = len(faults) + len(strange) + sum(len(account.differences) for account in accounts)
    asked = {view.campaign: found for view in views if (found := evaluations_of(view, last)) is not None}

    def data() -> list[dict[str, Any]]:
        rows = [{**asdict(account), "collecting": _collecting_facts(view)} for account, view in seen]
        for row in rows:
            if row["campaign"] in asked:
                row["evaluations"] = asdict(asked[row["campaign"]])
        return rows + [asdict(Account(name, differences=[said])) for name, said in strange.items()]

    return Answer(
        data,
        _shown(deployment, seen, asked, strange, last),
        f"{differences} difference{'s' if differences > 1 else ''}: see above" if differences else "",
    )


def _collecting_facts(view: View) -> dict[str, Any]:
    """Return data on the open window; `held` is None if this machine cannot read the collector's journals."""
    now = view.collecting
    held = [{"window": one.window.name, "stream": one.stream, "reports": one.reports} for one in now.held or ()]
    return {
        "window": now.window.name,
        "ends": now.window.end.isoformat(),
        "closed_by": now.closed_by.isoformat(),
        "notes": now.notes,
        "held": None if now.held is None else held,
        "seen": now.why,
    }


def _shown(
    deployment: Deployment,
    seen: list[tuple[Account, View]],
    asked: dict[str, Evaluations],
    strange: dict[str, str],
    last: int,
) -> Iterator[RenderableType]:
    for account, view in seen:
        yield from _collecting_shown(view)
        if account.campaign in asked:
            yield from _evaluations_shown(account.campaign, asked[account.campaign])
        yield from _account_shown(account, last, deployment.command("status --digests"))
    for said in strange.values():
        yield Text(f"DIFFERENCE {said}", "yellow")


def _collecting_shown(view: View) -> Iterator[RenderableType]:
    """Show the open window, and the reports in the journals of this machine's collector."""
    now = view.collecting
    yield "\n  ".join([f"{view.campaign}: {now.outlook[0]}", *now.outlook[1:], *now.notes])
    if now.held is None:
        yield f"  this machine cannot see the reports that collectors hold: {now.why}\n"
    elif now.held:
        short = window_names(one.window.name for one in now.held)
        rows = [(short[one.window.name], one.stream, f"{one.reports:,}", stamp(one.window.end)) for one in now.held]
        yield Table(f"{view.campaign}: in journals, {now.why}", ("window", "stream", "in journals", "ends"), rows)
    else:
        yield f"  nothing is in journals, {now.why}\n"


def _evaluations_shown(campaign: str, asked: Evaluations) -> Iterator[RenderableType]:
    """Show the numbers of evaluations and refused requests in one row."""
    heads = ("windows", "of clients", "of the verifier", "refused")
    row = (f"{len(asked.windows)}", f"{asked.clients:,}", f"{asked.verifier:,}", _sorted(asked.refused))
    yield Table(f"{campaign}: evaluations", heads, [row], words=("refused",))
    for name in asked.unreadable:
        yield Text(f"WAITS manifest {name} of an evaluator cannot be read: restore it", "yellow")


def _account_shown(account: Account, last: int, digests: str) -> Iterator[RenderableType]:
    from pipelines.audit.reconcile import WindowCounts

    windows = sorted({counts.window for counts in account.windows} | set(account.refused))[-last:]
    short = window_names(windows)
    rows: list[tuple[str, ...]] = []
    received = {counts.window for counts in account.windows if counts.stream == "reports"}
    # Show a window with refused requests even if no report of it was stored.
    empty = [WindowCounts(window, "reports", 0, {}) for window in account.refused if window not in received]
    for counts in sorted((*account.windows, *empty), key=lambda counts: (counts.window, counts.stream)):
        if counts.window in windows:
            refused = account.refused.get(counts.window, {}) if counts.stream == "reports" else {}
            numbers = (f"{counts.received:,}", _sorted(counts.states), _sorted(refused))
            rows.append((short[counts.window], counts.stream, *numbers))
    heads = ("window", "stream", "received", "by now", "refused")
    title = f"{account.campaign}: collected, by first moment of the window, UTC"
    if rows:
        yield Table(title, heads, rows, words=("by now", "refused"))
    yield from _hops_shown(account, short)
    if any(one.received or one.source != "log" for one in account.parties):
        yield _parties_shown(account)
    else:
        yield f"{account.campaign}: no report is stored yet"
    for difference in account.differences:
        yield Text(f"DIFFERENCE {difference}", "bold red")
    for says in account.given_up:
        yield Text(f"GIVEN UP {says}", "bold red")
    if account.stored:
        latest = account.latest and stamp(datetime.fromisoformat(account.latest))
        log = f"the newest entry of its log is of {latest}" if latest else "its log is empty"
        yield Text(f"WAITS {account.stored:,} reports are stored, but no run has taken them in: {log}", "yellow")
    for one in account.waiting:
        yield Text(f"WAITS {one.says}", "yellow" if one.verdict == "warning" else "bold red")
    if not account.differences:
        yield Text(f"{account.campaign}: all numbers agree", "green")
    if account.listed_from:
        yield (
            f"  late files of windows before {window_text(account.listed_from)} were not looked for: hushcount run "
            f"looks for them, and so does {digests}"
        )


def _hops_shown(account: Account, short: Mapping[str, str]) -> Iterator[RenderableType]:
    """Show what each hop did with the batches of some windows, whose short names are in `short`."""
    rows = []
    for hop in account.hops:
        window, epoch, _ = hop.batch.split("-")
        if window in short:
            numbers = (f"{hop.received:,}", f"{hop.accepted:,}", _sorted(hop.rejected))
            rows.append((f"{short[window]} epoch {int(epoch)}", f"{hop.hop} {hop.stream}", *numbers))
    heads = ("batch", "hop", "received", "forwarded", "rejected")
    if rows:
        yield Table(f"{account.campaign}: processed", heads, rows, words=("batch", "hop", "rejected"))


def _parties_shown(account: Account) -> Table:
    """Show the lines of all parties; a line of a party elsewhere has the time of its newest statement or receipt."""
    rows = []
    for one in account.parties:
        by = "the log here" if one.source == "log" else "it has said nothing yet"
        if one.said is not None:
            by = f"{one.source}, {stamp(datetime.fromisoformat(one.said))}"
        numbers = ("unknown",) * 4
        if one.went_on is not None:
            numbers = (
                f"{one.went_on:,}",
                _sorted(one.rejected),
                _sorted(one.dropped),
                f"{one.on_its_way:,}" if one.source == "log" else "unknown",
            )
        rows.append((", ".join(one.parties), one.stream, f"{one.received:,}", *numbers, by))
    heads = ("party", "stream", "received", "went on", "rejected", "dropped", "on its way", "by")
    title = f"{account.campaign}: all reports; received is the sum of the four columns after it"
    return Table(title, heads, rows, words=("party", "rejected", "dropped", "by"))


def _sorted(numbers: Mapping[str, int]) -> str:
    return by_reason(dict(sorted(numbers.items())))
