"""hushcount stream: the windows of a collector, each when it closes."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hushcount.wire.places import MOST_PLACES
from pipelines.console.command_table import new_app
from pipelines.console.common import (
    BEAM_SETTINGS,
    JsonOption,
    RunnerOption,
    engine,
    fail,
    out_console,
    progress_console,
    reported,
    show_json,
    span,
)
from pipelines.console.signing_options import SignWithOption
from pipelines.console.tables import show_table, window_names

if TYPE_CHECKING:
    from pipelines.streaming.output import Streamed

app = new_app()


@app.command("stream", context_settings=BEAM_SETTINGS)
@reported
def stream(
    context: typer.Context,
    campaign: Annotated[Path, typer.Option("--campaign", help="Campaign file.")],
    segments: Annotated[str, typer.Option(help="The collector's: STORE/segments/CAMPAIGN/EPOCH-FINGERPRINT.")],
    out: Annotated[str, typer.Option("--out", help="Output directory; a directory in it for each window.")],
    window: Annotated[str, typer.Option(help="Length of the collector's windows, as in 15m, 1h or 1d.")],
    lateness: Annotated[str, typer.Option(help="How long after its end a window waits for segments, as in 10m.")],
    keys: Annotated[
        str | None, typer.Option("--keys", help="Directory of the analyzer's key, or env:NAME; without, only shuffle.")
    ] = None,
    items: Annotated[Path | None, typer.Option(help="Items to estimate, if not the dictionary, one a line.")] = None,
    places: Annotated[
        int, typer.Option(help="Parts of a window's reports; each must fit into memory.", min=1, max=MOST_PLACES)
    ] = 16,
    every: Annotated[str, typer.Option(help="How often to look for segments, as in 30s or 5m.")] = "30s",
    run_for: Annotated[
        str | None, typer.Option("--for", help="End after so long, as in 1h; open windows stay for the next run.")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(help="A lost segment or manifest, as WINDOW/STREAM/FILE: its window is settled without it."),
    ] = None,
    sign_with: SignWithOption = None,
    runner: RunnerOption = "FnApiRunner",
    as_json: JsonOption = False,
) -> None:
    """Watch a collector's segments; shuffle and analyze each window once, when it closes. Ctrl-C ends it.

    Unlike hushcount run it charges no ledger, discovers nothing, counts a copy of a report in every window that holds
    one, carries no report into a later window, takes one campaign file, deletes nothing, and status and doctor do not
    cover it.

    Example: hushcount stream --campaign c.json --segments S --keys keys --out out --window 1h --lateness 10m
    """
    from pipelines.handover.parties import signer_of
    from pipelines.streaming.job import absolute
    from pipelines.streaming.job import stream as job
    from pipelines.streaming.output import streamed
    from pipelines.streaming.windows import StreamWindows

    windows = StreamWindows(span("--window", window), span("--lateness", lateness))
    pause = span("--every", every).total_seconds()
    until = None if run_for is None else time.time() + span("--for", run_for).total_seconds()
    # Or SIGTERM, which comes as Ctrl-C does: what an engine does is cancelled, the files that it was at are removed.
    with suppress(KeyboardInterrupt):
        job(
            campaign,
            segments,
            out,
            windows,
            keys=keys,
            items=items,
            places=places,
            every=pause,
            until=until,
            without=tuple(without or ()),
            signer=signer_of(sign_with, "shuffler"),
            engine=engine(context, runner),
        )
    done = streamed(absolute(segments), absolute(out), windows)
    _show(done, out, as_json)
    for name in done.waiting:
        said = f"window {name} waits for manifests of its collectors, or for the next start; {done.clock}"
        progress_console().print(f"  {said}", style="yellow", soft_wrap=True, markup=False)
    if done.held:
        said = "; ".join(f"window {name} waits: {', '.join(faults)}" for name, faults in done.held.items())
        fail(f"{said}. Nothing of it was released: restore it and start again, or go on with --without", 1)


def _show(done: Streamed, out: str, as_json: bool) -> None:
    if as_json:
        show_json({**asdict(done), "out": out})
        return
    records, late = done.windows, done.too_late
    short, rows, lost = window_names(record["window"] for record in records), [], 0
    for record in records:
        for name, counts in record["streams"].items():
            rejected = ", ".join(f"{reason} {number:,}" for reason, number in counts["rejected"].items()) or "none"
            released = name in record["released"]
            lost += 0 if released else counts["accepted"]
            status = "released" if released else f"below {record['minimum_batch']:,}"
            counted = (f"{counts['received']:,}", f"{counts['accepted']:,}", rejected)
            rows.append((short[record["window"]], status, name, *counted))
    console = out_console()
    heads = ("window", "status", "stream", "received", "accepted", "rejected")
    show_table(console, heads, rows, title="stream", words=("status", "rejected"))
    console.print()
    console.print(f"  {late:,} reports came too late\n  written to {out}", soft_wrap=True, markup=False)
    if lost:
        said = f"{lost:,} reports are in no result: too few of their kind came in their window, and are not carried on"
        cure = "hushcount run carries them on; or give the collector longer windows"
        progress_console().print(f"  {said}: {cure}", style="bold red", soft_wrap=True, markup=False)
