"""hushcount epoch review: which found values join the dictionary."""

from __future__ import annotations

from typing import Annotated

import typer

from hushcount.errors import UsageError
from pipelines.console.command_table import new_app
from pipelines.console.common import JsonOption, out_console, reported, show_json
from pipelines.console.options import ConfigOption
from pipelines.console.tables import show_table

app = new_app()

_IDS = "Id of a found value, or all that wait; may be given again."


@app.command("review")
@reported
def review(
    config: ConfigOption,
    campaign: Annotated[str, typer.Option(help="Id of the campaign.")],
    approve: Annotated[list[str] | None, typer.Option(help=f"{_IDS} It joins the next epoch.")] = None,
    reject: Annotated[list[str] | None, typer.Option(help=f"{_IDS} It stays out, and is not shown again.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the found values that wait for a decision, with the windows that show them; approve or reject some.

    Anybody may have sent them: on a terminal, what does not print stands as its code.

    Example: hushcount epoch review --config deployment.toml --campaign settings --approve 0c5f1e9a2b3d --reject all
    """
    from pipelines.deployment.campaigns import read_epochs
    from pipelines.deployment.settings import Deployment
    from pipelines.epochs import tracked_items
    from pipelines.epochs.review import decide, id_of, read_decisions, shown, waiting

    campaigns, _ = read_epochs(Deployment.read(config).campaigns)
    found = next((epochs for epochs in campaigns if epochs.campaign == campaign), None)
    if found is None:
        names = ", ".join(epochs.campaign for epochs in campaigns)
        raise UsageError(f"campaign is {campaign!a}, must be one of {names or 'none'}")
    decisions = decide(found, approve or (), reject or ()) if approve or reject else read_decisions(found.directory)
    wait = waiting(found)
    if as_json:
        rows = [
            {"id": id_of(one.item), "item": one.item, "first_seen": one.first_seen, "last_seen": one.last_seen}
            for one in wait
        ]
        show_json({"campaign": campaign, "waiting": rows, **decisions.model_dump(mode="json", exclude={"format"})})
        return
    if wait:
        cells = [(id_of(one.item), shown(one.item), one.first_seen or "", one.last_seen or "") for one in wait]
        heads = ("id", "value", "first seen", "last seen")
        show_table(out_console(), heads, cells, title=f"{campaign}: found values that wait", words=("value",))
    approved, rejected = len(decisions.approved), len(decisions.rejected)
    out_console().print(f"{len(wait):,} wait, {approved:,} approved, {rejected:,} rejected", markup=False)
    if len(wait) >= tracked_items.MOST_FOUND:
        out_console().print(
            f"the list is full: of more than {tracked_items.MOST_FOUND:,} values those found last stay; reject what is "
            "not wanted, and see found.csv of each batch for all of them",
            markup=False, soft_wrap=True,
        )  # fmt: skip
