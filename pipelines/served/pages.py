"""The pages beside those of campaigns: the list of all campaigns, and the login."""

from __future__ import annotations

from datetime import datetime

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.windows import window_names
from hushcount.privacy.layers import of_person, paid_for
from pipelines.console.tables import stamp
from pipelines.deployment.campaigns import read_published
from pipelines.handover.hops import all_outputs
from pipelines.monitoring.dashboard import titled
from pipelines.pages.figures import Figure, Panel, Row
from pipelines.pages.page import head_of
from pipelines.pages.text import sentence
from pipelines.served.kept import PATH, Campaigns


def index(campaigns: Campaigns, now: datetime) -> bytes:
    """Return the list of all campaigns, each with its newest window that has a result; no result is read."""
    done, valid = all_outputs(campaigns.deployment, "results"), read_published(campaigns.deployment.campaigns)[0]
    newest = {one.campaign: one.newest[1] for one in valid}
    rows, zone = [], campaigns.deployment.windows.tiling.clock
    for name in campaigns.names():
        windows = sorted({batch.window for batch in done.get(name, ())})
        last = next(iter(window_names(windows[-1:], zone).values()), "none yet")
        rows.append(Row(name, (last, f"{len(windows):,}", _asked(newest.get(name))), link=f"{PATH}{name}"))
    says = [f"Made at {stamp(now)}."]
    if any(one.sample is not None for one in newest.values()):
        says += [sentence(one) for one in of_person(paid_for(newest.values())[1])]
    heads = ("campaign", "newest window with a result", "windows with results", "asks")
    figure = Figure("campaigns", "Campaigns", tuple(says), "none", heads, tuple(rows))
    return titled(campaigns.deployment, (), [Panel("all", "", None, (figure,))]).encode()


def _asked(campaign: Campaign | None) -> str:
    """Return whom a campaign asks; "unknown" if its file cannot be read."""
    if campaign is None:
        return "unknown"
    return "all clients" if campaign.sample is None else f"{campaign.sample.share:.2%} in layer {campaign.sample.layer}"


def login(*, failed: bool) -> bytes:
    """Return the page that asks for the token."""
    says = "<p role='alert'>This token is wrong.</p>" if failed else ""
    return (
        f"{head_of('Login', served=True)}<body><main><h1>Login</h1>{says}"
        "<form method='post' action='/login'><label for='token'>Token of this dashboard</label> "
        "<input id='token' name='token' type='password' autocomplete='current-password' required> "
        "<button>Log in</button></form></main></body></html>\n"
    ).encode()
