"""hushcount plan: which mechanism, with which parameters, and what it will cost."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from hushcount.campaigns.dictionary import read_dictionary
from hushcount.errors import UsageError
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import CATALOGUE, frequency_oracle
from hushcount.planning.detection import Detection, to_detect
from hushcount.planning.planner import Candidate, Plan, Task, least_epsilon, make_plan, most_reports
from pipelines.console.command_table import new_app
from pipelines.console.common import JsonOption, out_console, progress_console, reported, show_json
from pipelines.console.numbers import LEAST_USERS, MOST_BYTES, MOST_MIB, MOST_REPORTS, MOST_USERS
from pipelines.console.tables import show_table

app = new_app()


@app.command("plan")
@reported
def plan(
    epsilon: Annotated[float | None, typer.Option(help="Local budget of one report.")] = None,
    reports: Annotated[int | None, typer.Option(help="How many reports are expected.", max=MOST_REPORTS)] = None,
    dictionary_size: Annotated[
        int | None, typer.Option(help="Items to tell apart; in a campaign 'other' is one of them.")
    ] = None,
    dictionary: Annotated[Path | None, typer.Option(help="Known items, one a line, in place of their number.")] = None,
    open_domain: Annotated[bool, typer.Option("--open-domain", help="Any string is an item.")] = False,
    objective: Annotated[
        str | None, typer.Option(help="l2, the sum over all items and the default; mse, the worst item; or target.")
    ] = None,
    target_share: Annotated[float | None, typer.Option(help="Share of the item whose error is to be small.")] = None,
    want_error: Annotated[
        float | None,
        typer.Option(
            help="Largest standard error in users: solves for the least epsilon, or the most reports.",
            min=LEAST_USERS,
            max=MOST_USERS,
        ),
    ] = None,
    want_share: Annotated[
        float | None,
        typer.Option(help="Share of an item that is to be detected: solves for the reports it takes, or the epsilon."),
    ] = None,
    power: Annotated[float, typer.Option(help="Probability that it is detected; with --want-share.")] = 0.95,
    mechanism: Annotated[list[str] | None, typer.Option(help="Compare these only.")] = None,
    max_report_bytes: Annotated[int | None, typer.Option(help="Longest plain report.", min=1, max=MOST_BYTES)] = None,
    max_tally_mib: Annotated[float | None, typer.Option(help="Largest tally, in MiB.", min=0.0, max=MOST_MIB)] = None,
    out: Annotated[Path | None, typer.Option(help="Campaign file to write with the chosen mechanism.")] = None,
    id: Annotated[str | None, typer.Option(help="Name of the campaign; with --out.")] = None,
    keys: Annotated[list[Path] | None, typer.Option(help="Directory with public.json; with --out.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare all mechanisms by exact error, size and cost, and name the best.

    Example: hushcount plan --epsilon 1 --dictionary-size 26000 --reports 100000
    """
    if target_share is not None and objective not in (None, "target"):
        raise UsageError(f"objective is {objective!r} with a target_share: give one of the two")
    wanted = objective or ("l2" if target_share is None else "target")
    domain = _domain(dictionary_size, dictionary, open_domain)
    names = tuple(mechanism) if mechanism else tuple(CATALOGUE)
    for name in names:
        frequency_oracle(name)
    try:
        # Whether objective is one of the three is checked by Objective itself.
        chosen = Objective(wanted, target_share or 0.0)  # type: ignore[arg-type]
        task = Task(domain, chosen, max_report_bytes, max_tally_mib, names)
        if wanted == "target" and target_share is None:
            raise UsageError("objective is target: give --target-share too")
        detection = None
        if want_share is None:
            result = _solve(task, epsilon, reports, want_error)
        else:
            if want_error is not None or (epsilon is None) == (reports is None):
                raise UsageError(
                    "give --want-share with --epsilon, to solve for reports, or with --reports, for epsilon"
                )
            # One in twenty for all items of a dictionary together, as results show them; of an open domain, an item.
            rate = 0.001 if domain is None else 0.05 / domain
            result, reached = to_detect(task, Detection(want_share, power, rate), epsilon, reports)
            detection = {"share": want_share, "power": reached, "false_positive_rate": rate}
        if out is not None:
            _write(result, out, id, keys, dictionary, open_domain)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if as_json:
        show_json(_data(result) | ({} if detection is None else {"detection": detection}))
        return
    _show(result, domain)
    if detection is not None:
        looked = "one item" if domain is None else f"{domain:,} items together (Bonferroni)"
        out_console().print(
            f"  an item of share {want_share:g} is detected with probability {detection['power']:.3f} by "
            f"{result.reports:,} reports at epsilon {result.epsilon:g}; false detections: "
            f"{0.001 if domain is None else 0.05:g} at most, of {looked}",
            markup=False, soft_wrap=True,
        )  # fmt: skip
    if out is not None:
        out_console().print(f"  campaign file {out}", markup=False, soft_wrap=True)


def _domain(size: int | None, dictionary: Path | None, open_domain: bool) -> int | None:
    if sum((size is not None, dictionary is not None, open_domain)) != 1:
        raise UsageError("give one of --dictionary-size D, --dictionary FILE and --open-domain")
    if dictionary is not None:
        return len(read_dictionary(dictionary).items) + 1
    return size


def _solve(task: Task, epsilon: float | None, reports: int | None, error: float | None) -> Plan:
    if error is None:
        if epsilon is None or reports is None:
            raise UsageError("give --epsilon and --reports, or one of them with --want-error")
        return make_plan(task, epsilon, reports)
    if (epsilon is None) == (reports is None):
        raise UsageError("give --want-error with --reports, to solve for epsilon, or with --epsilon, to solve for them")
    if epsilon is None and reports is not None:
        return least_epsilon(task, reports, error)
    return most_reports(task, float(epsilon or 0.0), error)


def _write(
    result: Plan, out: Path, id: str | None, keys: list[Path] | None, dictionary: Path | None, open_domain: bool
) -> None:
    if id is None or not keys:
        raise UsageError("give --id and --keys with --out: a campaign file holds its name and the public keys")
    if dictionary is None and not open_domain:
        raise UsageError("give --dictionary FILE or --open-domain with --out: a campaign file fixes the items")
    from keys import store
    from pipelines.jobs.new_campaign import create_campaign

    campaign = create_campaign(
        id,
        store.read_public(keys),
        out.parent,
        mechanism=result.chosen.mechanism,
        epsilon=result.epsilon,
        dictionary=dictionary,
        settings=result.chosen.parameters,
    )
    campaign.write(out)


def _data(result: Plan) -> dict[str, Any]:
    return {
        "chosen": asdict(result.chosen),
        "reason": result.reason,
        "epsilon": result.epsilon,
        "reports": result.reports,
        "candidates": [asdict(candidate) for candidate in result.candidates],
        "left_out": result.left_out,
    }


def _show(result: Plan, domain: int | None) -> None:
    items = "an open domain" if domain is None else f"{domain:,} items"
    title = f"{result.reports:,} reports, epsilon {result.epsilon:g}, {items}"
    heads = ("mechanism", "error", "bias", "bits", "bytes", "sealed", "MiB", "s")
    rows = [
        [Text(cell, "bold" if candidate is result.chosen else "") for cell in _row(candidate)]
        for candidate in result.candidates
    ]
    console = out_console()
    show_table(console, heads, rows, title=title, words=("mechanism",))
    console.print()
    legend = "error: standard error in users; bias: the largest that collisions can make it; MiB: tally; s: decoding"
    console.print(f"  {legend}", markup=False, soft_wrap=True)
    console.print(f"  {result.reason}", markup=False, soft_wrap=True)
    for reason in dict.fromkeys(result.left_out.values()):
        names = ", ".join(name for name, why in result.left_out.items() if why == reason)
        progress_console().print(f"  left out: {names}: {reason}", markup=False, soft_wrap=True)


def _row(one: Candidate) -> tuple[str, ...]:
    return (
        " ".join((one.mechanism, *(f"{key}={_short(value)}" for key, value in one.parameters.items()))),
        f"{one.standard_error_users:,.1f}",
        f"{one.collision_error_users:,.0f}",
        f"{one.report_bits:,.1f}",
        f"{one.report_bytes:,}",
        f"{one.sealed_bytes:,}",
        f"{one.tally_mib:,.2f}",
        f"{one.decode_seconds:.2g}",
    )


def _short(value: object) -> str:
    return f"{value[:8]}..." if isinstance(value, str) and len(value) > 12 else str(value)
