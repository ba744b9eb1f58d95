"""hushcount analyze: the analyzer's job on reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hushcount.oracles.estimates import Levels
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
from pipelines.console.options import (
    CampaignOption,
    ConfidenceOption,
    FalsePositivesOption,
    KeysOption,
    LedgerOption,
    OutOption,
)
from pipelines.console.results import charged, largest
from pipelines.console.signing_options import SignedByOption
from pipelines.handover.parties import verified_by

app = new_app()


@app.command("analyze", context_settings=BEAM_SETTINGS)
@reported
def analyze(
    context: typer.Context,
    campaign: CampaignOption,
    input: Annotated[str, typer.Option(help="What hushcount shuffle wrote.")],
    keys: KeysOption,
    out: OutOption,
    items: Annotated[Path | None, typer.Option(help="Items to estimate, one a line.")] = None,
    found: Annotated[Path | None, typer.Option(help="Result of hushcount discover to show.")] = None,
    confidence: ConfidenceOption = 0.95,
    false_positives: FalsePositivesOption = 0.001,
    signed_by: SignedByOption = None,
    ledger: LedgerOption = None,
    overwrite: OverwriteOption = False,
    runner: RunnerOption = "FnApiRunner",
    as_json: JsonOption = False,
) -> None:
    """Open, check and tally permuted reports, and estimate the dictionary or the given items.

    Example: hushcount analyze --campaign words.json --input shuffled --keys keys --out results
    """
    levels = Levels(confidence, false_positives)
    from pipelines.jobs.analyze import plan_analyze
    from pipelines.jobs.job import run

    chosen = engine(context, runner)
    job = plan_analyze(
        campaign,
        input,
        keys,
        out,
        items=items,
        found=found,
        levels=levels,
        signed_by=verified_by(signed_by, "shuffler"),
        ledger=ledger,
        overwrite=overwrite,
    )
    summary = run(job, chosen, progress_console())
    show_summary(summary, out, as_json, "\n  ".join([*largest(summary), *charged(summary)]))
