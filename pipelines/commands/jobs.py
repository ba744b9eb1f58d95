"""hushcount encode, shuffle, analyze, estimate, adjust, discover: the jobs."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.cells import cell_len

from hushcount.oracles.estimates import Levels
from pipelines.commands.ledger import remaining
from pipelines.console.common import (
    JsonOption,
    OverwriteOption,
    RunnerOption,
    engine,
    out_console,
    progress_console,
    reported,
    show_json,
    show_summary,
)
from pipelines.console.signing_options import SignedByOption, SignWithOption
from pipelines.handover.signing_keys import signer_of, verified_by
from pipelines.outputs.summary import Summary

CampaignOption = Annotated[Path, typer.Option("--campaign", help="Campaign file.")]
OutOption = Annotated[str, typer.Option("--out", help="Output directory, local or of any file system that Beam knows.")]
KeysOption = Annotated[
    Path,
    typer.Option(
        "--keys",
        help="Directory with this party's private key, env:NAME, or gcp-secret://projects/P/secrets/S/versions/V.",
    ),
]
ConfidenceOption = Annotated[
    float, typer.Option(help="Of the intervals: each item's alone, and all together.", min=0.5, max=0.999999)
]
FalsePositivesOption = Annotated[
    float,
    typer.Option(
        metavar="RATE", help="Of items that nobody holds, how many count as detected.", min=1e-15, max=0.499999
    ),
]
UncappedOption = Annotated[
    bool, typer.Option("--uncapped", help="Also where no client was told from another: any one can reveal a value.")
]
LedgerOption = Annotated[
    Path | None,
    typer.Option("--ledger", help="Ledger to charge the release to, made where it is missing; see hushcount ledger."),
]


class PartyName(str, Enum):
    """Who runs discover."""

    both = "both"
    aux_server = "aux-server"
    analyzer = "analyzer"


class MethodName(str, Enum):
    """How adjust adjusts."""

    non_negative = "non-negative"
    sum_to = "sum-to"
    norm_sub = "norm-sub"


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
    from pipelines.jobs.encode import encode as job

    chosen = engine(context, runner)
    summary = job(
        campaign, values, out, clients=clients, overwrite=overwrite, engine=chosen, console=progress_console()
    )
    show_summary(summary, out, as_json, state=False)


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
    from pipelines.jobs.shuffle import shuffle as job

    chosen = engine(context, runner)
    signer = signer_of(sign_with, "shuffler")
    summary = job(campaign, input, out, signer=signer, overwrite=overwrite, engine=chosen, console=progress_console())
    show_summary(summary, out, as_json, state=False)


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
    from pipelines.jobs.analyze import analyze as job

    summary = job(
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
        engine=engine(context, runner),
        console=progress_console(),
    )
    show_summary(summary, out, as_json, "\n  ".join([*largest(summary), *charged(summary)]))


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


@reported
def adjust(
    estimates: Annotated[str, typer.Option(help="estimates.parquet or .csv of hushcount analyze or estimate.")],
    method: Annotated[MethodName, typer.Option(help="What to make of the counts.")],
    out: Annotated[str, typer.Option(help="File to write, .csv or .parquet.")],
    total: Annotated[
        float | None,
        typer.Option(help="Reports of these items; those accepted less the estimated 'other' if none.", max=1e12),
    ] = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Add a column of counts that are not negative or add up, and biased for it; the counts stay as they are.

    Example: hushcount adjust --estimates results/estimates.parquet --method norm-sub --out adjusted.csv
    """
    from pipelines.jobs.adjust import adjust as job

    done = job(estimates, method.value, out, total=total, overwrite=overwrite)
    if as_json:
        show_json({**done, "out": out})
        return
    lines = [
        f"{done['items']:,} counts that add up to {done['sum_of_counts']:,.0f}, "
        f"adjusted ones to {done['sum_of_adjusted']:,.0f}",
        f"{done['method']}: {done['bias']}; errors and intervals are those of the counts",
    ]
    if done["total"] is not None:
        lines.append(f"total {done['total']:,.0f}: {done['total_from']}")
    console = out_console()
    for line in (*lines, f"written to {out}"):
        console.print(f"  {line}", soft_wrap=True, markup=False)


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
    from pipelines.jobs.discover import discover as job

    summary = job(
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
        engine=engine(context, runner),
        console=progress_console(),
    )
    found = [f"{summary['bins']['found']:,} values found, in found.csv"] if "bins" in summary else []
    show_summary(summary, out, as_json, "\n  ".join([*found, *charged(summary)]))


def charged(summary: Summary) -> list[str]:
    """Return a line about what the ledger charged, or none without a ledger."""
    ledger = summary.get("ledger")
    if ledger is None:
        return []
    charge, left = ledger["charged"], ledger["remaining"]
    line = f"charged ({charge['epsilon']:.4g}, {charge['delta']:.4g}) for one {charge['per']}"
    line += "" if charge["new"] else " before, not again"
    return [line if left is None else f"{line}; {remaining(ledger)} remain in the ledger"]


def largest(summary: Summary) -> list[str]:
    """Return lines with the largest counts of detected items, and of how many they are; or how to get any."""
    if "items" not in summary:
        return ["the domain is open: ask tally.npz for items with hushcount estimate, or give --items or --found"]
    from pipelines.jobs.page import detection

    rows = summary["largest"]
    width = max((cell_len(row["item"]) for row in rows), default=0)
    lines = [
        f"{row['item']}{' ' * (width - cell_len(row['item']))}  {row['share']:7.2%}  "
        f"{row['count']:,.0f} \u00b1 {row['error']:,.0f}"
        for row in rows
    ]
    shown = f"the {len(rows)} largest of " if len(rows) < summary["detected_all"] else ""
    return [*lines, f"{shown}{summary['detected_all']:,} items {detection(summary)}"]


@reported
def demo(
    out: Annotated[Path, typer.Option(help="Output directory.")],
    data: Annotated[Path | None, typer.Option(help="Directory of the example data.")] = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run the whole system on real input and show what each party did, saw and could not see.

    Example: hushcount demo --out demo-output
    """
    from pipelines.demo import demo as run

    run(out, data, overwrite, out_console(), progress_console(), as_json)
