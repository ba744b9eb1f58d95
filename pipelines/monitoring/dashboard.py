"""The page of a deployment: a panel for each campaign, and a panel that compares the campaigns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from hushcount.errors import HushcountError
from pipelines.audit.view import View
from pipelines.console.tables import stamp
from pipelines.deployment.campaigns import Epochs, read_epochs
from pipelines.deployment.settings import Deployment
from pipelines.monitoring.panel_campaign import Shown
from pipelines.monitoring.panel_differences import changes_of, comparison
from pipelines.monitoring.panel_discovered import discovered_of
from pipelines.monitoring.panel_health import budget_of, hops_of
from pipelines.monitoring.panel_sums import groups_of
from pipelines.monitoring.panel_trends import trend_of
from pipelines.pages.figures import Block, Panel, Prose
from pipelines.pages.page import render
from pipelines.questions.sources import of_epochs


def page_of(deployment: Deployment, now: datetime, last: int) -> str:
    """Return the page as HTML; this function reads results, logs and ledger, and changes none of them.

    Args:
        last: how many of the newest windows of each campaign the page shows.

    Raises:
        UsageError: there is no campaign, or a file cannot be read.
    """
    campaigns, faults = read_epochs(deployment.campaigns)
    panels: list[Panel] = []
    counted: list[Shown] = []
    for view in View(deployment, now, campaigns).each():
        panel, shown = _campaign(view, view.epochs, f"campaign-{len(panels)}", last)
        panels.append(panel)
        counted += [] if shown is None else [shown]
    compared = comparison(counted)
    panels += [] if compared is None else [compared]
    lead = (
        f"Made at {stamp(now)} from at most {last:,} windows. Estimates are noisy on purpose: read the intervals.",
        *(f"Campaign {name} cannot be read: {fault}." for name, fault in faults.items()),
    )
    return render(f"Deployment {deployment.path.parent.name or deployment.path.name}", lead, panels, "Hushcount")


def _campaign(view: View, epochs: Epochs, key: str, last: int) -> tuple[Panel, Shown | None]:
    """Return the panel of a campaign, and the campaign's results if it has any."""
    health = tuple(_health(view, key, last))
    try:
        shown = Shown(of_epochs(view.deployment, epochs, last), key)
        found = discovered_of(shown)
        asked = (trend_of(shown), *changes_of(shown), *groups_of(shown), *([] if found is None else [found]))
    except HushcountError as error:
        return Panel(key, view.campaign, (), (), (Prose(f"{key}-none", "Estimates", (f"{error}.",)), *health)), None
    stated = shown.stated
    return Panel(key, view.campaign, stated.plain, stated.sentences, (*asked, *health)), shown


def _health(view: View, key: str, last: int) -> Iterator[Block]:
    """Yield a campaign's counts and budget; if the ledger cannot be read, the counts are still shown."""
    parts: tuple[tuple[str, str, Callable[[], Block]], ...] = (
        ("hops", "Reports by hop", lambda: hops_of(view, key, last)),
        ("budget", "Privacy budget", lambda: budget_of(view, key)),
    )
    for name, heading, made in parts:
        try:
            yield made()
        except HushcountError as error:
            yield Prose(f"{key}-{name}", heading, (f"{error}.",))
