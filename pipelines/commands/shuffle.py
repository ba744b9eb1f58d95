"""hushcount shuffle: the shuffler's job."""

from __future__ import annotations

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
from pipelines.console.signing_options import SignWithOption
from pipelines.handover.parties import signer_of

app = new_app()


@app.command("shuffle", context_settings=BEAM_SETTINGS)
@reported
def shuffle(
    context: typer.Context,
    campaign: CampaignOption,
    input: Annotated[str, typer.Option(help="Directory of envelopes, or a batch of hushcount run.")],
    out: OutOption,
    sign_with: SignWithOption = None,
    overwrite: OverwriteOption = False,
    runner: RunnerOption = "FnApiRunner",
    as_json: JsonOption = False,
) -> None:
    """Cap each client, strip all metadata, drop duplicates, permute; exit status 3 below the minimum batch.

    Example: hushcount shuffle --campaign words.json --input encoded --out shuffled
    """
    from pipelines.jobs.job import run
    from pipelines.jobs.shuffle import plan_shuffle

    chosen = engine(context, runner)
    signer = signer_of(sign_with, "shuffler")
    job = plan_shuffle(campaign, input, out, signer=signer, overwrite=overwrite)
    summary = run(job, chosen, progress_console())
    show_summary(summary, out, as_json, state=False)
