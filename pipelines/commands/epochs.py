"""What is collected, epoch after epoch: epoch publish and review, and the trend of items over the windows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import RenderableType
from typer import Option

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import MOST_ITEMS
from hushcount.campaigns.signatures import signature_path
from hushcount.errors import UsageError
from hushcount.items import canonical
from pipelines.console import options
from pipelines.console.answer import Answer, note
from pipelines.console.tables import Table, window_names

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS = 7
"""Windows that a trend shows people; --json and --out have all."""


def publish_epoch(
    config: options.Config,
    campaign: options.CampaignFile,
    begins: Annotated[
        str | None, Option(help="Start, as in 2026-12-01T00:00:00Z.", show_default="the end of this window")
    ] = None,
    early: Annotated[bool, Option("--early", help="Even if [next_epoch.ID] wants the present epoch longer.")] = False,
) -> Answer:
    """Use it to begin a campaign, and for each new campaign file: the epoch before ends when this one begins.

    Put the dictionary and the signature beside the campaign file. To renew a signature, publish the file again.

    Example: hushcount epoch publish --config deployment.toml --campaign settings.json
    """
    from pipelines.deployment.publish import publish
    from pipelines.deployment.settings import Deployment

    part = publish(Deployment.read(config), campaign, options.begins_at(begins), early=early)
    line = f"epoch {part.epoch} begins {part.begins.isoformat()}: {part.file}"
    discovery = Campaign.read(campaign).discovery
    # Clients get no redacted file.
    if not signature_path(campaign).exists() and (discovery is None or discovery.hash_key_commitment is None):
        note(f"warning: {campaign} is unsigned, clients refuse it: hushcount campaign sign, and publish it again")
    return Answer(part.model_dump(mode="json"), [line])


def review(
    config: options.Config,
    campaign: options.CampaignId,
    approve: Annotated[list[str] | None, Option(help="Add a value to the next epoch: its id, or all.")] = None,
    reject: Annotated[list[str] | None, Option(help="Never show a value again: its id, or all.")] = None,
) -> Answer:
    """Use it if discovery finds values. Anybody may have sent them: it prints unprintable characters as their codes.

    Example: hushcount epoch review --config deployment.toml --campaign settings --approve 0c5f1e9a2b3d --reject all
    """
    from pipelines.deployment.campaigns import require_campaign
    from pipelines.deployment.settings import Deployment
    from pipelines.epochs import items
    from pipelines.epochs.items import decide, id_of, read_decisions, shown, waiting

    epochs = require_campaign(Deployment.read(config).campaigns, campaign)
    decisions = decide(epochs, approve or (), reject or ()) if approve or reject else read_decisions(epochs.directory)
    values = waiting(epochs)
    listed = [
        {"id": id_of(one.item), "item": one.item, "first_seen": one.first_seen, "last_seen": one.last_seen}
        for one in values
    ]
    people: list[RenderableType] = []
    if values:
        cells = [(id_of(one.item), shown(one.item), one.first_seen or "", one.last_seen or "") for one in values]
        heads = ("id", "value", "first seen", "last seen")
        people.append(Table(f"{campaign}: found values that wait", heads, cells, words=("value",)))
    approved, rejected = len(decisions.approved), len(decisions.rejected)
    people.append(f"{len(values):,} wait, {approved:,} approved, {rejected:,} rejected")
    if len(values) >= items.MOST_FOUND:
        people.append(
            f"the list is full: it keeps the {items.MOST_FOUND:,} values found last; reject those that you do "
            "not want, and see found.csv of each batch for all"
        )
    decided = decisions.model_dump(mode="json", exclude={"format"})
    return Answer({"campaign": campaign, "waiting": listed, **decided}, people)


def trend(
    config: options.Config,
    campaign: options.CampaignId,
    item: Annotated[list[str] | None, Option(help="An item; may be repeated.", show_default="all tracked")] = None,
    last: options.Windows = 30,
    top: Annotated[int, Option(help="Most frequent detected items to show.", min=1, max=MOST_ITEMS)] = 10,
    out: Annotated[str | None, Option(help="Table to write, .csv or .parquet.")] = None,
    plot: Annotated[Path | None, Option(help="Chart to write, .png or .svg, with error bands.")] = None,
) -> Answer:
    """Use it when hushcount run has counted some windows: it reads their results and no report.

    Example: hushcount trend --config deployment.toml --campaign settings --out trend.csv --plot trend.png
    """
    from pipelines.asking.items import items_table
    from pipelines.asking.plot import write_plot
    from pipelines.asking.sources import from_store
    from pipelines.deployment.settings import Deployment
    from pipelines.files import storage
    from pipelines.jobs.tables import put_table, require_table

    source = from_store(Deployment.read(config), campaign, last)
    if out is not None:
        require_table(out)
        if storage.exists(out):
            raise UsageError(f"output {out} already exists: give another")
    items = [canonical(one) for one in item or ()]
    table = items_table(source, items)
    shown = (items or _detected(table))[:top]
    if out is not None:
        put_table(out, table)
    if plot is not None:
        write_plot(plot, table, shown)
    return Answer(table.to_pylist(), _shown(campaign, table, shown, of_all=not items))


def _detected(table: pa.Table) -> list[str]:
    """Return the items that are detected in a window, among all rows, by the largest share that they were seen with."""
    largest: dict[str, float] = {}
    for row in table.to_pylist():
        if row["detected_all"]:
            largest[row["item"]] = max(row["count"] / row["reports"], largest.get(row["item"], 0.0))
    return sorted(largest, key=lambda item: -largest[item])


def _shown(campaign: str, table: pa.Table, shown: list[str], *, of_all: bool) -> Iterator[RenderableType]:
    places = sorted(set(zip(table["window"].to_pylist(), table["epoch"].to_pylist(), strict=True)))
    windows = sorted({window for window, _ in places})[-_COLUMNS:]
    short = window_names(windows)
    # A window with two epochs has two columns.
    names = {
        (window, epoch): short[window] + (f" epoch {epoch}" if [one for one, _ in places].count(window) > 1 else "")
        for window, epoch in places
        if window in windows
    }
    cells: dict[tuple[str, str], str] = {}
    for row in table.to_pylist():
        mark = " *" if row["backfilled"] else " +" if row.get("source") == "discovery" else ""
        column = names.get((row["window"], row["epoch"]), "")
        count, error = row["count"], math.hypot(row["standard_error"], row["collision_error"])
        if row.get("combined") is not None:
            count, error = row["combined"], row["combined_error"]
        cells[row["item"], column] = f"{count:,.0f} ± {error:,.0f} {count / row['reports']:.1%}{mark}"
    title = f"{campaign}: users with their errors, and shares, by first moment of the window, UTC"
    rows = [(item, *(cells.get((item, column), "") for column in names.values())) for item in shown]
    yield Table(title, ("item", *names.values()), rows, words=("item",))
    if any(table["repeated"].to_pylist()):
        yield (
            "  clients repeat their answers: windows of one epoch have much the same errors, and their mean is no more "
            "exact than one of them"
        )
    if any(table["backfilled"].to_pylist()):
        yield "  * estimated from a tally from before the item was discovered"
    counted = "source" in table.column_names
    if counted and "discovery" in table["source"].to_pylist():
        yield "  + the noisy count that discovery released, where no dictionary had the item yet"
    if counted and table["combined"].null_count < table.num_rows:
        yield "  estimates of discovered values are combined with the noisy counts that discovery released"
    if of_all:
        items = len(set(table["item"].to_pylist()))
        yield (
            f"  {len(shown):,} of {len(_detected(table)):,} items that are detected in a window, of {items:,}: any of "
            f"them wrongly with a probability of 5 % at most, for all {table.num_rows:,} counts looked at together "
            "(Bonferroni)"
        )
