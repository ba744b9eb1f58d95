"""hushcount trend: items over the windows of a campaign."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hushcount.campaigns.dictionary import MOST_ITEMS
from hushcount.errors import UsageError
from hushcount.items import canonical
from pipelines.console.command_table import new_app
from pipelines.console.common import JsonOption, out_console, reported, show_json
from pipelines.console.numbers import MOST_WINDOWS
from pipelines.console.options import ConfigOption
from pipelines.console.tables import show_table, window_names

if TYPE_CHECKING:
    import pyarrow as pa

app = new_app()


@app.command("trend")
@reported
def trend(
    config: ConfigOption,
    campaign: Annotated[str, typer.Option(help="Id of the campaign.")],
    item: Annotated[list[str] | None, typer.Option(help="An item; once for each; all that it follows if none.")] = None,
    last: Annotated[int, typer.Option(help="So many windows.", min=1, max=MOST_WINDOWS)] = 30,
    top: Annotated[
        int, typer.Option(help="So many items are shown, the most frequent that are detected.", min=1, max=MOST_ITEMS)
    ] = 10,
    out: Annotated[str | None, typer.Option(help="Table to write, .csv or .parquet.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Chart to write, .png or .svg, with error bands.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show how often items were used, window by window, each count with its error.

    Example: hushcount trend --config deployment.toml --campaign settings --out trend.csv --plot trend.png
    """
    from pipelines.deployment.campaigns import read_epochs
    from pipelines.deployment.settings import Deployment
    from pipelines.epochs.trend import trend as rows_of
    from pipelines.epochs.trend_plot import write_plot
    from pipelines.files import storage
    from pipelines.jobs.results import put_table, require_table

    deployment = Deployment.read(config)
    campaigns, faults = read_epochs(deployment.campaigns)
    known = {epochs.campaign: epochs for epochs in campaigns}
    if campaign not in known:
        raise UsageError(faults.get(campaign) or f"campaign is {campaign!r}, must be one of {', '.join(known)}")
    if out is not None:
        require_table(out)
        if storage.exists(out):
            raise UsageError(f"output {out} already exists: give another")
    item = [canonical(one) for one in item or ()]
    table = rows_of(deployment, known[campaign], item, last)
    shown = list(item or _detected(table))[:top]
    if out is not None:
        put_table(out, table)
    if plot is not None:
        write_plot(plot, table, shown)
    if as_json:
        show_json(table.to_pylist())
        return
    _show(campaign, table, shown)
    if not item:
        items = len(set(table["item"].to_pylist()))
        out_console().print(
            f"  {len(shown):,} of {len(_detected(table)):,} items that are detected in a window, of {items:,}: any of "
            f"them wrongly with a probability of 5 % at most, for all {table.num_rows:,} counts looked at together "
            "(Bonferroni)",
            markup=False, soft_wrap=True,
        )  # fmt: skip


def _detected(table: pa.Table) -> list[str]:
    """Return the items that are detected in a window, among all rows, by the largest share that they were seen with."""
    largest: dict[str, float] = {}
    for row in table.to_pylist():
        if row["detected_all"]:
            largest[row["item"]] = max(row["count"] / row["reports"], largest.get(row["item"], 0.0))
    return sorted(largest, key=lambda item: -largest[item])


def _show(campaign: str, table: pa.Table, shown: list[str]) -> None:
    places = sorted(set(zip(table["window"].to_pylist(), table["epoch"].to_pylist(), strict=True)))
    windows = sorted({window for window, _ in places})[-7:]
    short = window_names(windows)
    # Where two epochs meet in a window, each has a column.
    names = {
        (window, epoch): short[window] + (f" epoch {epoch}" if [one for one, _ in places].count(window) > 1 else "")
        for window, epoch in places
        if window in windows
    }
    cells: dict[tuple[str, str], str] = {}
    for row in table.to_pylist():
        mark = " *" if row["backfilled"] else ""
        column = names.get((row["window"], row["epoch"]), "")
        error, share = math.hypot(row["standard_error"], row["collision_error"]), row["count"] / row["reports"]
        cells[row["item"], column] = f"{row['count']:,.0f} ± {error:,.0f} {share:.1%}{mark}"
    console, title = out_console(), f"{campaign}: users with their errors, and shares, by windows that begin then, UTC"
    rows = [(item, *(cells.get((item, column), "") for column in names.values())) for item in shown]
    show_table(console, ("item", *names.values()), rows, title=title, words=("item",))
    if any(table["repeated"].to_pylist()):
        console.print(
            "  clients repeat their answers: windows of one epoch have much the same errors, and a mean over them is "
            "no more exact than one of them",
            soft_wrap=True,
        )
    if any(table["backfilled"].to_pylist()):
        console.print("  * asked of a tally from before the item was discovered")
