"""hushcount segments: what collectors stored."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hushcount.errors import HushcountError
from pipelines.console.command_table import new_app
from pipelines.console.common import JsonOption, out_console, progress_console, reported, show_json

app = new_app("What collectors stored: list again what no manifest lists.")


@app.callback()
def _group() -> None:
    """What collectors stored."""


@app.command("relist")
@reported
def relist(
    config: Annotated[Path, typer.Option("--config", help="Deployment file, .toml or .json.")],
    as_json: JsonOption = False,
) -> None:
    """List segments again that no manifest lists though their window is over, so that the next run counts them.

    For what a collector stored that lost its disk, or whose manifest was lost; one that still runs lists its own. How
    senders were told apart the names of segments say; where a name does not, they count as authentication none.

    Example: hushcount segments relist --config deployment.toml
    """
    from pipelines.audit.orphans import relist as again
    from pipelines.batches.lock import alone
    from pipelines.batches.state import opened
    from pipelines.deployment.campaigns import read_epochs
    from pipelines.deployment.settings import Deployment

    deployment = Deployment.read(config)
    campaigns, faults = read_epochs(deployment.campaigns)
    problems = [f"{name}: {fault}" for name, fault in faults.items()]
    made = {}
    with opened(deployment.state) as database, alone(database, deployment.state, wait=False) as state:
        for epochs in campaigns:
            found = again(state, deployment, epochs)
            problems += found.problems
            made[epochs.campaign] = found
    if as_json:
        show_json({campaign: asdict(found) for campaign, found in made.items()})
    else:
        console = out_console()
        for path, reports in (item for found in made.values() for item in found.segments.items()):
            console.print(f"listed again: {path}, {reports:,} reports", markup=False, soft_wrap=True)
        for path in (path for found in made.values() for path in found.unsaid):
            console.print(
                f"warning: nothing says how the senders of {path} were told apart: it counts as authentication none, "
                "and so does every batch that it joins",
                markup=False, soft_wrap=True,
            )  # fmt: skip
        if not any(found.segments for found in made.values()):
            console.print("every segment of a window that is over is in a manifest")
    for problem in problems:
        progress_console().print(f"error: {problem}", style="bold red", markup=False, soft_wrap=True)
    if problems:
        raise HushcountError(f"{len(problems)} could not be read or listed: see above")
