"""hushcount adjust: counts that are not negative or add up."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from pipelines.console.command_table import new_app
from pipelines.console.common import JsonOption, OverwriteOption, out_console, reported, show_json


class MethodName(str, Enum):
    """How adjust adjusts."""

    non_negative = "non-negative"
    sum_to = "sum-to"
    norm_sub = "norm-sub"


app = new_app()


@app.command("adjust")
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
