"""hushcount dead-letters: what was not passed on, why, and another chance for it."""

from __future__ import annotations

from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from pipelines.console.command_table import new_app
from pipelines.console.common import JsonOption, OverwriteOption, out_console, reported, show_json, show_summary
from pipelines.console.tables import show_table

app = new_app("List and replay what a hop did not pass on.")
InputOption = Annotated[str, typer.Option("--input", help="Output directory of shuffle, discover or analyze.")]


class StreamName(str, Enum):
    """The streams of a campaign."""

    reports = "reports"
    discovery = "discovery"


@app.command("list")
@reported
def list_(
    input_: InputOption,
    reason: Annotated[str | None, typer.Option(help="Only those of this reason.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List what was kept of reports that were not passed on, by reason, with what can be done; never what is in them.

    Example: hushcount dead-letters list --input results
    """
    from pipelines.jobs.dead_letters import CURES, list_dead_letters

    letters = [letter for letter in list_dead_letters(input_) if reason in (None, letter.reason)]
    if as_json:
        show_json([asdict(letter) for letter in letters])
        return
    heads = ("hop", "stream", "reason", "reports", "bytes each", "what it means")
    rows = [
        (one.hop, one.stream, one.reason, f"{one.records:,}", f"{one.record_bytes:,}", CURES.get(one.reason, ""))
        for one in letters
    ]
    console = out_console()
    show_table(console, heads, rows, title="dead letters", words=("what it means",))
    # A reason has a file for each length.
    lost = sum({(one.stream, one.reason): one.not_kept for one in letters}.values())
    if lost:
        console.print(f"{lost:,} reports were not kept: summary.json counts them, and they cannot be replayed")


@app.command("replay")
@reported
def replay(
    input_: InputOption,
    campaign: Annotated[Path, typer.Option(help="The campaign file that they were made with.")],
    reason: Annotated[str, typer.Option(help="wrong_campaign or not_opened.")],
    out: Annotated[str, typer.Option(help="Output directory, for analyze or discover to read.")],
    stream: Annotated[StreamName, typer.Option(help="Which stream.")] = StreamName.reports,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make a batch of what was kept of one reason, to be read again with a corrected campaign file or key.

    Example: hushcount dead-letters replay --input results --campaign c.json --reason not_opened --out again
    """
    from pipelines.jobs.dead_letters import replay as job

    summary = job(campaign, input_, stream.value, reason, out, overwrite=overwrite)  # type: ignore[arg-type]
    show_summary(summary, out, as_json, state=False)
