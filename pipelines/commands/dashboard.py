"""hushcount dashboard: one page with the results of a deployment's campaigns, and the state of their jobs."""

from __future__ import annotations

from contextlib import suppress
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
    serve: Annotated[bool, Option("--serve", help="Serve the page on this machine; each reload updates it.")] = False,
    port: Annotated[int, Option(help="Port for --serve; 0: any free port.", min=0, max=65535)] = 8765,
    last: Annotated[int, Option("--last", help="Number of newest windows of each campaign.", min=1, max=10_000)] = 100,
) -> Answer:
    """Use it to see items over windows, rises and falls, groups, discovered values, hops and budget on one page.

    The page loads nothing from the network.

    Example: hushcount dashboard --out page.html
    """
    from hushcount.formats.whole_files import write_over
    from pipelines.deployment.settings import Deployment
    from pipelines.monitoring.dashboard import page_of

    if (out is None) == (not serve):
        raise UsageError("give either --out FILE or --serve")
    deployment = Deployment.read(config)

    def made() -> str:
        return page_of(deployment, MACHINE.now(), last)

    if out is not None:
        if out.suffix != ".html":
            raise UsageError(f"out is {out}, must end in .html")
        page = made()
        write_over(out, page, _FILE_MODE)
        return Answer({"page": str(out), "bytes": len(page.encode())}, [f"{out}: open it in a browser"])
    from pipelines.monitoring.dashboard_server import PageServer

    try:
        server = PageServer(port, made)
    except OSError as error:
        raise UsageError(f"cannot serve on port {port}: {error.strerror}; give another --port, or 0") from None
    with server:
        note(f"serving {server.address} for this machine; Ctrl-C ends it")
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    return Answer({"page": server.address})
