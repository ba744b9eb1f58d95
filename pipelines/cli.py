"""The command line of Hushcount."""

from __future__ import annotations

from typing import Annotated

import typer

from hushcount import __version__
from pipelines.commands import jobs
from pipelines.commands.bench import bench
from pipelines.commands.collect import collect
from pipelines.commands.dead_letters import dead_letters_app
from pipelines.commands.deployment import doctor, epoch_app, run, status
from pipelines.commands.designs import design_app
from pipelines.commands.graph import graph
from pipelines.commands.keys import keys_app
from pipelines.commands.ledger import ledger_app
from pipelines.commands.plan import plan
from pipelines.commands.privacy import privacy
from pipelines.commands.reproduce import reproduce
from pipelines.commands.review import review
from pipelines.commands.segments import segments_app
from pipelines.commands.setup import campaign_app
from pipelines.commands.simulate import simulate
from pipelines.commands.stream import stream
from pipelines.commands.trend import trend
from pipelines.console.common import BEAM_SETTINGS
from pipelines.console.usage import Commands

app = typer.Typer(
    name="hushcount",
    cls=Commands,
    help="Learn what people use and how often, without learning who.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    # Help is text: as markup it would lose what stands in brackets.
    rich_markup_mode=None,
)
app.add_typer(keys_app, name="keys")
app.add_typer(campaign_app, name="campaign")
app.add_typer(design_app, name="design")
app.add_typer(ledger_app, name="ledger")
epoch_app.command("review")(review)
app.add_typer(epoch_app, name="epoch")
app.add_typer(dead_letters_app, name="dead-letters")
app.add_typer(segments_app, name="segments")
app.command("encode", context_settings=BEAM_SETTINGS)(jobs.encode)
app.command("shuffle", context_settings=BEAM_SETTINGS)(jobs.shuffle)
app.command("analyze", context_settings=BEAM_SETTINGS)(jobs.analyze)
app.command("estimate")(jobs.estimate)
app.command("adjust")(jobs.adjust)
app.command("discover", context_settings=BEAM_SETTINGS)(jobs.discover)
app.command("demo")(jobs.demo)
app.command("plan")(plan)
app.command("simulate")(simulate)
app.command("stream", context_settings=BEAM_SETTINGS)(stream)
app.command("privacy")(privacy)
app.command("reproduce")(reproduce)
app.command("bench")(bench)
app.command("collect")(collect)
app.command("run")(run)
app.command("status")(status)
app.command("doctor")(doctor)
app.command("trend")(trend)
app.command("graph", context_settings=BEAM_SETTINGS)(graph)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it and exit.")
    ] = False,
) -> None:
    """Learn what people use and how often, without learning who."""
