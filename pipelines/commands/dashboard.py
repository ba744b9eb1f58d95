"""hushcount dashboard: one page with the results of a deployment's campaigns, and the state of their jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from hushcount.clock import MACHINE
from hushcount.errors import UsageError
from pipelines.console import options
from pipelines.console.answer import Answer, note

_FILE_MODE = 0o600
"""Only the user that makes the page may read the page, because it shows results."""


def dashboard(
    config: options.Config = options.HERE,
    out: Annotated[Path | None, Option(help="Page to write, .html; an older one is replaced.")] = None,
    serve: Annotated[bool, Option("--serve", help="Serve the pages, to this machine or as [dashboard] says.")] = False,
    port: Annotated[int, Option(help="Port for --serve; 0: any free port.", min=0, max=65535)] = 8765,
    last: Annotated[
        int | None,
        Option("--last", help="Number of newest windows of each campaign.", min=1, max=10_000, show_default="100"),
    ] = None,
    first: options.RangeFrom = None,
    end: options.RangeTo = None,
    month: options.Month = None,
) -> Answer:
    """Use it to see items over windows, rises and falls, groups, discovered values, hops and budget on one page.

    A page in a file loads nothing from the network. A served page is of one campaign, renews itself when a window
    closes, and its numbers are at /v1/campaigns in JSON.

    Example: hushcount dashboard --out page.html
    """
    from hushcount.formats.whole_files import write_over
    from pipelines.deployment.settings import Deployment
    from pipelines.monitoring.dashboard import page_of
    from pipelines.questions.spans import NEWEST, Span

    if (out is None) == (not serve):
        raise UsageError("give either --out FILE or --serve")
    span = Span(last, None, first, end, month)
    span = Span(100) if span == NEWEST else span
    deployment = Deployment.read(config)
    if out is not None:
        if out.suffix != ".html":
            raise UsageError(f"out is {out}, must end in .html")
        page = page_of(deployment, MACHINE.now(), span)
        write_over(out, page, _FILE_MODE)
        return Answer({"page": str(out), "bytes": len(page.encode())}, [f"{out}: open it in a browser"])
    from pipelines.served.server import serve as serve_pages

    serve_pages(deployment, port, span, lambda address: note(f"serving {address}; Ctrl-C ends it"))
    return Answer({})
