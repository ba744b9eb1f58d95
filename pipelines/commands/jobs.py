"""hushcount encode, shuffle, analyze, estimate, discover: the jobs."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from pipelines.commands.common import (
    JsonOption,
    OverwriteOption,
    RunnerOption,
    engine,
    out_console,
    progress_console,
    reported,
    show_summary,
)
from pipelines.summary import Summary

CampaignOption = Annotated[Path, typer.Option("--campaign", help="Campaign file.")]
OutOption = Annotated[str, typer.Option("--out", help="Output directory, local or of any file system that Beam knows.")]
KeysOption = Annotated[Path, typer.Option("--keys", help="Directory with this party's private key.")]
ConfidenceOption = Annotated[float, typer.Option(help="Of the intervals, for each item alone.", min=0.5, max=0.999999)]


class PartyName(str, Enum):
    """Who runs discover."""

    both = "both"
    aux_server = "aux-server"
    analyzer = "analyzer"


@reported
def encode(
    context: typer.Context,
    campaign: CampaignOption,
    values: Annotated[Path, typer.Option(help="One value a line, text or .gz.")],
    out: OutOption,
    clients: Annotated[bool, typer.Option("--clients", help="Lines are client<TAB>value.")] = False,
    overwrite: OverwriteOption = False,
    runner: RunnerOption = "FnApiRunner",
    as_json: JsonOption = False,
) -> None:
    """Privatise and seal a file of values, as the values' owners would.

    Example: hushcount encode --campaign words.json --values words.txt.gz --out encoded
    """
    from pipelines.encode import encode as job

    chosen = engine(context, runner)
    summary = job(
        campaign, values, out, clients=clients, overwrite=overwrite, engine=chosen, console=progress_console()
    )
    show_summary(summary, out, as_json, state=False)


@reported
def shuffle(
    context: typer.Context,
    campaign: CampaignOption,
    input: Annotated[str, typer.Option(help="Directory of envelopes.")],
    out: OutOption,
    overwrite: OverwriteOption = False,
    runner: RunnerOption = "FnApiRunner",
    as_json: JsonOption = False,
) -> None:
    """Cap each client, strip all metadata, drop duplicates, permute; exit status 3 below the minimum batch.

    Example: hushcount shuffle --campaign words.json --input encoded --out shuffled
    """
    from pipelines.shuffle import shuffle as job

    chosen = engine(context, runner)
    summary = job(campaign, input, out, overwrite=overwrite, engine=chosen, console=progress_console())
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
    overwrite: OverwriteOption = False,
    runner: RunnerOption = "FnApiRunner",
    as_json: JsonOption = False,
) -> None:
    """Open, check and tally permuted reports, and estimate the dictionary or the given items.

    Example: hushcount analyze --campaign words.json --input shuffled --keys keys --out results
    """
    from pipelines.analyze import analyze as job

    summary = job(
        campaign,
        input,
        keys,
        out,
        items=items,
        found=found,
        confidence=confidence,
        overwrite=overwrite,
        engine=engine(context, runner),
        console=progress_console(),
    )
    show_summary(summary, out, as_json, largest(summary))


@reported
def estimate(
    campaign: CampaignOption,
    tally: Annotated[str, typer.Option(help="tally.npz of hushcount analyze.")],
    items: Annotated[Path, typer.Option(help="Items to estimate, one a line.")],
    out: OutOption,
    confidence: ConfidenceOption = 0.95,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Ask a stored tally again, for other items.

    Example: hushcount estimate --campaign words.json --tally results/tally.npz --items new.txt --out more
    """
    from pipelines.estimate import estimate as job

    summary = job(campaign, tally, items, out, confidence=confidence, overwrite=overwrite)
    show_summary(summary, out, as_json, largest(summary))


@reported
def discover(
    context: typer.Context,
    campaign: CampaignOption,
    input: Annotated[str, typer.Option(help="What hushcount shuffle wrote.")],
    keys: KeysOption,
    out: OutOption,
    party: Annotated[PartyName, typer.Option(help="Which party runs here.")] = PartyName.both,
    overwrite: OverwriteOption = False,
    runner: RunnerOption = "FnApiRunner",
    as_json: JsonOption = False,
) -> None:
    """Find unknown values that enough clients sent: the auxiliary server's job, then the analyzer's.

    Example: hushcount discover --campaign words.json --input shuffled --keys keys --out found
    """
    from pipelines.discover import discover as job

    summary = job(
        campaign,
        input,
        keys,
        out,
        party=party.value,
        overwrite=overwrite,
        engine=engine(context, runner),
        console=progress_console(),
    )
    found = f"{summary['bins']['found']:,} values found, in found.csv" if "bins" in summary else None
    show_summary(summary, out, as_json, found)


def largest(summary: Summary) -> str:
    """Return a line with the largest estimates, or how to get any."""
    rows = summary["largest"]
    if not rows:
        return "the domain is open: ask tally.npz for items with hushcount estimate, or give --items or --found"
    return "largest: " + ", ".join(f"{row['item']} {row['count']:,.0f} \u00b1 {row['error']:,.0f}" for row in rows)


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
