"""hushcount encode: what clients do, for a file of values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.console.command_table import new_app
from pipelines.console.common import (
    BEAM_SETTINGS,
    JsonOption,
    OverwriteOption,
    RunnerOption,
    engine,
    progress_console,
    reported,
    show_summary,
)
from pipelines.console.options import CampaignOption, OutOption

app = new_app()


@app.command("encode", context_settings=BEAM_SETTINGS)
@reported
def encode(
    context: typer.Context,
    campaign: CampaignOption,
    values: Annotated[Path, typer.Option(help="One value a line, text or .gz.")],
    out: OutOption,
    clients: Annotated[
        bool, typer.Option("--clients", help="Lines are client<TAB>value; else no client is known.")
    ] = False,
    overwrite: OverwriteOption = False,
    runner: RunnerOption = "FnApiRunner",
    as_json: JsonOption = False,
) -> None:
    """Privatise and seal a file of values, as the values' owners would.

    Example: hushcount encode --campaign words.json --values words.txt.gz --out encoded
    """
    from pipelines.jobs.encode import plan_encode
    from pipelines.jobs.job import run

    chosen, console = engine(context, runner), progress_console()
    job = plan_encode(campaign, values, out, clients=clients, overwrite=overwrite, console=console)
    summary = run(job, chosen, console)
    show_summary(summary, out, as_json, state=False)
