"""hushcount discover: the jobs of both parties on unknown values."""

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
from pipelines.console.options import CampaignOption, KeysOption, LedgerOption, OutOption, PartyName
from pipelines.console.results import charged
from pipelines.console.signing_options import SignedByOption, SignWithOption
from pipelines.handover.parties import signer_of, verified_by

UncappedOption = Annotated[
    bool, typer.Option("--uncapped", help="Also where no client was told from another: any one can reveal a value.")
]

app = new_app()


@app.command("discover", context_settings=BEAM_SETTINGS)
@reported
def discover(
    context: typer.Context,
    campaign: CampaignOption,
    input: Annotated[str, typer.Option(help="What hushcount shuffle wrote.")],
    keys: KeysOption,
    out: OutOption,
    party: Annotated[PartyName, typer.Option(help="Which party runs here.")] = PartyName.both,
    uncapped: UncappedOption = False,
    signed_by: SignedByOption = None,
    sign_with: SignWithOption = None,
    ledger: LedgerOption = None,
    overwrite: OverwriteOption = False,
    runner: RunnerOption = "FnApiRunner",
    as_json: JsonOption = False,
) -> None:
    """Find unknown values that enough clients sent: the auxiliary server's job, then the analyzer's.

    Example: hushcount discover --campaign words.json --input shuffled --keys keys --out found
    """
    from pipelines.jobs.discover import plan_discover
    from pipelines.jobs.job import run

    chosen = engine(context, runner)
    job = plan_discover(
        campaign,
        input,
        keys,
        out,
        party=party.value,
        uncapped=uncapped,
        signed_by=verified_by(signed_by, "aux_signer" if party is PartyName.analyzer else "shuffler"),
        signer=signer_of(sign_with, "aux_signer"),
        ledger=ledger,
        overwrite=overwrite,
    )
    summary = run(job, chosen, progress_console())
    found = [f"{summary.bins.found:,} values found, in found.csv"] if summary.bins is not None else []
    show_summary(summary, out, as_json, "\n  ".join([*found, *charged(summary)]))
