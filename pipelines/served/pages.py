"""The pages beside those of campaigns: the list of all campaigns, and the login."""

from __future__ import annotations

from datetime import datetime

from hushcount.collection.windows import window_text
from pipelines.console.tables import stamp
from pipelines.handover.hops import all_outputs
from pipelines.monitoring.dashboard import titled
from pipelines.pages.figures import Figure, Panel, Row
from pipelines.pages.page import head_of
from pipelines.served.kept import PATH, Campaigns


def index(campaigns: Campaigns, now: datetime) -> bytes:
    """Return the list of all campaigns, each with its newest window that has a result; no result is read."""
    done = all_outputs(campaigns.deployment, "results")
    rows = []
    for name in campaigns.names():
        windows = sorted({batch.window for batch in done.get(name, ())})
        rows.append(
            Row(name, (window_text(windows[-1]) if windows else "none yet", f"{len(windows):,}"), link=f"{PATH}{name}")
        )
    says = (f"Made at {stamp(now)}.",)
    heads = ("campaign", "newest window with a result", "windows with results")
    figure = Figure("campaigns", "Campaigns", says, "none", heads, tuple(rows))
    return titled(campaigns.deployment, (), [Panel("all", "", None, (figure,))]).encode()


def login(*, failed: bool) -> bytes:
    """Return the page that asks for the token."""
    says = "<p role='alert'>This token is wrong.</p>" if failed else ""
    return (
        f"{head_of('Login', served=True)}<body><main><h1>Login</h1>{says}"
        "<form method='post' action='/login'><label for='token'>Token of this dashboard</label> "
        "<input id='token' name='token' type='password' autocomplete='current-password' required> "
        "<button>Log in</button></form></main></body></html>\n"
    ).encode()
