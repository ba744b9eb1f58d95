"""hushcount collect: the HTTP collector."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hushcount.errors import UsageError
from pipelines.console.command_table import new_app
from pipelines.console.common import reported

app = new_app()


@app.command("collect")
@reported
def collect(config: Annotated[Path, typer.Option(help="Deployment file with a [collector] table.")]) -> None:
    """Take sealed reports over HTTP, keep them durably, and hand them on to the store window by window.

    Runs until SIGTERM or Ctrl-C; then all that was acknowledged is uploaded. Its log goes to standard error.

    Example: hushcount collect --config deployment.toml
    """
    # Beam and the HTTP server take seconds to import: only when they are to run.
    from pipelines.deployment.collector import collect as job
    from pipelines.deployment.settings import Deployment

    deployment = Deployment.read(config, waits=True)
    if deployment.collector is None:
        raise UsageError(f"deployment file {config} has no [collector] table: add one with a name")
    job(
        deployment.collector,
        config.absolute().parent,
        deployment.campaigns,
        deployment.folder("segments"),
        deployment.windows.length,
    )
