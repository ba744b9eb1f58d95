"""hushcount estimate: another question to a stored tally."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hushcount.oracles.estimates import Levels
from pipelines.console.command_table import new_app
from pipelines.console.common import JsonOption, OverwriteOption, reported, show_summary
from pipelines.console.options import CampaignOption, ConfidenceOption, FalsePositivesOption, OutOption
from pipelines.console.results import largest

app = new_app()


@app.command("estimate")
@reported
def estimate(
    campaign: CampaignOption,
    tally: Annotated[str, typer.Option(help="tally.npz of hushcount analyze.")],
    items: Annotated[Path, typer.Option(help="Items to estimate, one a line.")],
    out: OutOption,
    confidence: ConfidenceOption = 0.95,
    false_positives: FalsePositivesOption = 0.001,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Ask a stored tally again, for other items.

    Example: hushcount estimate --campaign words.json --tally results/tally.npz --items new.txt --out more
    """
    levels = Levels(confidence, false_positives)
    from pipelines.jobs.estimate import estimate as job

    summary = job(campaign, tally, items, out, levels=levels, overwrite=overwrite)
    show_summary(summary, out, as_json, "\n  ".join(largest(summary)))
