"""hushcount stream: the windows of a collector, each when it closes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

from rich.console import RenderableType
from typer import Context, Option

from hushcount.wire.tags import MOST_PLACES
from pipelines.console import options
from pipelines.console.answer import Answer, note
from pipelines.console.tables import Table, by_reason, window_names

if TYPE_CHECKING:
    from pipelines.streaming.output import Streamed


def stream(
    context: Context,
    campaign: options.CampaignFile,
    segments: Annotated[str, Option(help="The collector's: STORE/segments/CAMPAIGN/EPOCH-FINGERPRINT.")],
    out: options.Out,
    window: Annotated[str, Option(help="Length of the collector's windows, as in 15m, 1h or 1d.")],
    lateness: Annotated[str, Option(help="Time that a window waits for segments after its end, as in 10m.")],
    keys: Annotated[
        str | None, Option(help="Directory of the analyzer's key, or env:NAME; none: only shuffle.")
    ] = None,
    items: options.Items = None,
    groups: options.Groups = None,
    places: Annotated[int, Option(help="Parts of a window; each must fit in memory.", min=1, max=MOST_PLACES)] = 16,
    every: Annotated[str, Option(help="Time between two looks for segments, as in 30s or 5m.")] = "30s",
    run_for: Annotated[
        str | None, Option("--for", help="Time to run, as in 1h; open windows wait for the next.")
    ] = None,
    without: Annotated[list[str] | None, Option(help="Do not wait for this lost file: WINDOW/STREAM/FILE.")] = None,
    sign_with: options.SignWith = None,
    runner: options.Runner = "FnApiRunner",
) -> Answer:
    """Use it to see counts soon after each window; Ctrl-C ends it. For production, use hushcount run.

    Unlike run, it takes one campaign file, charges no ledger, discovers nothing, deletes nothing, carries no report
    into a later window, and counts copies of a report in two windows twice. status and doctor do not cover it.

    Example: hushcount stream --campaign c.json --segments S --keys keys --out out --window 1h --lateness 10m
    """
    from pipelines.handover.parties import signer_of
    from pipelines.jobs.groups import NamedGroups
    from pipelines.streaming.job import absolute
    from pipelines.streaming.job import stream as job
    from pipelines.streaming.output import streamed
    from pipelines.streaming.windows import StreamWindows

    windows = StreamWindows(options.span("--window", window), options.span("--lateness", lateness))
    pause = options.span("--every", every).total_seconds()
    until = None if run_for is None else time.time() + options.span("--for", run_for).total_seconds()
    # Ctrl-C and SIGTERM end it in order: the engine cancels its job, and removes the files that it was writing.
    with suppress(KeyboardInterrupt):
        job(
            campaign,
            segments,
            out,
            windows,
            keys=keys,
            items=items,
            groups=None if groups is None else NamedGroups.read(groups),
            places=places,
            every=pause,
            until=until,
            without=tuple(without or ()),
            signer=signer_of(sign_with, "shuffler"),
            engine=options.engine(context, runner),
        )
    done = streamed(absolute(segments), absolute(out), windows)
    for name in done.waiting:
        note(f"  window {name} waits for manifests of its collectors, or for the next start; {done.clock}", "yellow")
    waits = "; ".join(f"window {name} waits: {', '.join(faults)}" for name, faults in done.held.items())
    return Answer(
        {**done.data(), "out": out},
        _shown(done, out),
        f"{waits}. Nothing of it was released: restore it and start again, or add --without" if waits else "",
    )


def _shown(done: Streamed, out: str) -> Iterator[RenderableType]:
    short, rows, lost = window_names(record.window for record in done.windows), [], 0
    for record in done.windows:
        for name, counts in record.streams.items():
            released = name in record.released
            lost += 0 if released else counts.accepted
            status = "released" if released else f"below {record.minimum_batch:,}"
            numbers = (f"{counts.received:,}", f"{counts.accepted:,}", by_reason(counts.rejected))
            rows.append((short[record.window], status, name, *numbers))
    heads = ("window", "status", "stream", "received", "accepted", "rejected")
    yield Table("stream", heads, rows, words=("status", "rejected"))
    yield f"  {done.too_late:,} reports came too late"
    yield f"  written to {out}"
    if lost:
        note(
            f"  {lost:,} reports are in no result: their windows had too few of their kind, and stream "
            "carries none on: use hushcount run, which does, or give the collector longer windows",
            "bold red",
        )
