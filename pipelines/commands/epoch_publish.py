"""hushcount epoch publish: what is collected from when on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.console.command_table import new_app
from pipelines.console.common import JsonOption, moment, out_console, reported, show_json
from pipelines.console.options import ConfigOption

app = new_app()


@app.command("publish")
@reported
def publish_epoch(
    config: ConfigOption,
    campaign: Annotated[Path, typer.Option(help="Campaign file of the new epoch, its dictionary beside it.")],
    begins: Annotated[
        str | None,
        typer.Option(help="When, as in 2026-12-01T00:00:00Z; the end of the present window when not given."),
    ] = None,
    early: Annotated[
        bool, typer.Option("--early", help="Also before the epoch before has its least length, under [next_epoch.ID].")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Let collectors and clients use a campaign file from a moment on; the epoch before ends then.

    Example: hushcount epoch publish --config deployment.toml --campaign settings.json
    """
    from pipelines.deployment.publish import publish
    from pipelines.deployment.settings import Deployment

    start = None if begins is None else moment("begins", begins)
    part = publish(Deployment.read(config), campaign, start, early=early)
    if as_json:
        show_json(part.model_dump(mode="json"))
        return
    out_console().print(
        f"epoch {part.epoch} begins {part.begins.isoformat()}: {part.file}", markup=False, soft_wrap=True
    )
