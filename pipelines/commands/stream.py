"""hushcount job stream: a job that never ends and does the work that hushcount run decides on."""

from __future__ import annotations

import signal
from contextlib import suppress
from typing import Annotated

from typer import Option

from hushcount.wire.tags import MOST_PLACES
from pipelines.console import options
from pipelines.console.answer import note


def stream(
    config: options.Config = options.HERE,
    every: Annotated[str, Option(help="Time between two looks for new work, as in 2s.")] = "2s",
    run_for: Annotated[str | None, Option("--for", help="Time to run, as in 1h; then it ends as by Ctrl-C.")] = None,
    places: Annotated[
        int, Option(help="Parts into which the work is split; each must fit in memory.", min=1, max=MOST_PLACES)
    ] = 16,
) -> None:
    """Run it beside hushcount run --watch if the engine is slow to start jobs. After Ctrl-C, run works without it.

    It does the work that run decides on, on the deployment's engine, for the campaign files that exist at its start.

    Example: hushcount job stream
    """
    from pipelines.deployment.settings import Deployment
    from pipelines.streaming.stream import carried_by
    from pipelines.streaming.stream import stream as job

    deployment, pause = Deployment.read(config), options.span("--every", every).total_seconds()
    if run_for is not None:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, options.span("--for", run_for).total_seconds())
    carried, left = carried_by(deployment)
    for line in left:
        note(f"  left to hushcount run: {line}", "yellow")
    # Ctrl-C and SIGTERM end the command without an error, after the engine has cancelled its job.
    with suppress(KeyboardInterrupt):
        job(deployment, carried, every=pause, places=places)
