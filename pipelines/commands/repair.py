"""hushcount doctor and hushcount repair segments: find what is wrong, and list segments that lost their manifest."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from rich.text import Text
from typer import Option

from hushcount.clock import MACHINE
from pipelines.console import options
from pipelines.console.answer import Answer, note
from pipelines.console.tables import Table


def relist_segments(config: options.Config = options.HERE) -> Answer:
    """Use it after a collector lost its disk, or a manifest was lost: the next run then counts the listed segments.

    A running collector lists its own segments. If a segment's name does not say how clients were told apart, the
    segment counts as authentication none.

    Example: hushcount repair segments
    """
    from pipelines.audit.orphans import relist
    from pipelines.audit.view import View
    from pipelines.deployment.campaigns import read_epochs
    from pipelines.deployment.settings import Deployment

    deployment = Deployment.read(config)
    campaigns, faults = read_epochs(deployment.campaigns)
    done = {view.campaign: relist(view) for view in View(deployment, MACHINE.now(), campaigns).each()}
    problems = [f"{name}: {fault}" for name, fault in faults.items()]
    problems += [problem for one in done.values() for problem in one.problems]
    for problem in problems:
        note(f"error: {problem}", "bold red")
    listed = {path: reports for one in done.values() for path, reports in one.segments.items()}
    lines = [f"listed again: {path}, {reports:,} reports" for path, reports in listed.items()]
    lines += [
        f"warning: the name of {path} does not say how clients were told apart: it counts as authentication none, and "
        "so does every batch that it joins"
        for one in done.values()
        for path in one.unsaid
    ]
    return Answer(
        {campaign: asdict(one) for campaign, one in done.items()},
        lines if listed else [*lines, "every segment of past windows is in a manifest"],
        f"{len(problems)} could not be read or listed: see above" if problems else "",
    )


def doctor(
    config: options.Config = options.HERE,
    test_alert: Annotated[bool, Option("--test-alert", help="Send a test alert to the receiver of [alerts].")] = False,
    all_: Annotated[bool, Option("--all", help="Show what is good too.")] = False,
) -> Answer:
    """Use it after you change the deployment, or when a run fails. Exit status 1: at least one check is bad.

    It shows what is not good; --all and --json show every check.

    Example: hushcount doctor
    """
    from pipelines.audit.doctor import examine
    from pipelines.deployment.settings import Deployment
    from pipelines.monitoring.telling import check as alerts

    deployment = Deployment.read(config)
    checks = [*examine(deployment), *alerts(deployment, sends=test_alert)]
    styles = {"good": "green", "warning": "yellow", "bad": "bold red"}
    shown = [check for check in checks if all_ or check.verdict != "good"]
    rows = [(Text(check.verdict, styles[check.verdict]), check.name, check.says) for check in shown]
    good = sum(check.verdict == "good" for check in checks)
    bad = sum(check.verdict == "bad" for check in checks)
    return Answer(
        [{"name": one.name, "verdict": one.verdict, "says": one.says} for one in checks],
        [
            *([Table("", ("verdict", "what", "found"), rows, words=("what", "found"))] if rows else []),
            f"{good} of {len(checks)} checks are good" + ("" if all_ else "; --all shows them"),
        ],
        f"{bad} of {len(checks)} checks are bad: see above" if bad else "",
    )
