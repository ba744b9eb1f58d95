"""hushcount repair segments: list again the segments that lost their manifest."""

from __future__ import annotations

from dataclasses import asdict

from hushcount.clock import MACHINE
from pipelines.console import options
from pipelines.console.answer import Answer, note


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
