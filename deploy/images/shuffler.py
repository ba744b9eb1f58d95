"""The command of the shuffler's image: its own jobs only, so that no package that knows a key need be installed."""

from __future__ import annotations

import typer

from pipelines.commands import jobs
from pipelines.commands.collect import collect
from pipelines.commands.deployment import epoch_app, run, status
from pipelines.console.common import BEAM_SETTINGS
from pipelines.console.usage import Commands
from pipelines.entry import main

app = typer.Typer(
    name="hushcount",
    cls=Commands,
    help="The shuffler's part of Hushcount.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)
app.command("shuffle", context_settings=BEAM_SETTINGS)(jobs.shuffle)
app.command("collect")(collect)
app.command("run")(run)
app.command("status")(status)
app.add_typer(epoch_app, name="epoch")


if __name__ == "__main__":
    main(lambda: app)
