"""The page of a deployment: a panel for each campaign, and a panel that compares the campaigns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from hushcount.errors import HushcountError, UsageError
from pipelines.audit.view import View
from pipelines.console.tables import stamp
from pipelines.deployment.campaigns import read_epochs
from pipelines.deployment.settings import Deployment
from pipelines.log.facts import Times
from pipelines.monitoring.known import Known
from pipelines.monitoring.panel_campaign import Shown
from pipelines.monitoring.panel_differences import changes_of, comparison
from pipelines.monitoring.panel_discovered import discovered_of
from pipelines.monitoring.panel_flags import flags_of
from pipelines.monitoring.panel_health import budget_of, hops_of
from pipelines.monitoring.panel_numbers import numbers_of
from pipelines.monitoring.panel_strata import strata_of
from pipelines.monitoring.panel_sums import groups_of
from pipelines.monitoring.panel_trends import trend_of
from pipelines.pages.figures import Block, Guarantee, Panel, Prose, Served
from pipelines.pages.logo import read_logo
from pipelines.pages.page import render
from pipelines.pages.text import sentence
from pipelines.questions.sources import of_epochs
from pipelines.questions.spans import Span
from pipelines.windows.calendar import Calendar
from pipelines.windows.rules import calendar_of


def page_of(deployment: Deployment, now: datetime, span: Span) -> str:
    """Return the page as HTML; this function reads results, logs and ledger, and changes none of them.

    Args:
        span: which windows of each campaign the page shows.

    Raises:
        UsageError: there is no campaign, a file cannot be read, or no campaign has results in the range of `span`.
    """
    campaigns, faults = read_epochs(deployment.campaigns)
    made = [
        panel_of(view, f"campaign-{number}", span)
        for number, view in enumerate(View(deployment, now, campaigns).each())
    ]
    if span.is_named and not any(shown for _, shown in made):
        raise UsageError(f"no campaign has results of {span}: give another range, or --last")
    # The campaign that opens first has results, if any campaign has.
    panels = [panel for panel, shown in sorted(made, key=lambda one: one[1] is None)]
    compared = comparison([shown for _, shown in made if shown is not None])
    panels += [] if compared is None else [compared]
    lead = (
        lead_of(now, span),
        *(f"Campaign {name} cannot be read: {fault}." for name, fault in faults.items()),
    )
    return titled(deployment, lead, panels)


def lead_of(now: datetime, span: Span) -> str:
    """Return the sentence that begins a page of these windows."""
    return f"Made at {stamp(now)}, of {span}. Estimates are noisy on purpose: read the intervals."


def titled(deployment: Deployment, lead: Sequence[str], panels: Sequence[Panel], served: Served | None = None) -> str:
    """Return a page with the deployment's name and logo; UsageError: the logo cannot be read."""
    own = deployment.file.dashboard
    name = own.name or f"Deployment {deployment.path.resolve().parent.name}"
    logo = None if own.logo is None else read_logo(deployment.base / own.logo)
    return render(name, lead, panels, "Hushcount", logo, served, str(deployment.windows.tiling.clock))


def panel_of(view: View, key: str, span: Span, before: Known | None = None) -> tuple[Panel, Shown | None]:
    """Return the panel of a campaign, and the campaign's results if it has any.

    The last blocks of the panel are those of `health_of`.

    Args:
        key: names the campaign on its page.
        before: the numbers of an earlier panel of this campaign.
    """
    health = health_of(view, key, span)
    try:
        source = span.of(of_epochs(view.deployment, view.epochs, span.last))
        shown = Shown(source, key, _calendar(view), Known(before))
        found = discovered_of(shown)
        asked = (
            *([Prose(f"{key}-overlaps", "Windows", tuple(map(sentence, source.fits)))] if source.fits else []),
            *numbers_of(shown),
            *(() if shown.is_mean else (trend_of(shown), *changes_of(shown), *groups_of(shown), *strata_of(shown))),
            *([] if found is None else [found]),
            flags_of(shown),
        )
    except HushcountError as error:
        return Panel(key, view.campaign, None, (Prose(f"{key}-none", "Estimates", (sentence(error),)), *health)), None
    return Panel(key, source.heading, Guarantee.of(shown.stated), (*asked, *health)), shown


def _calendar(view: View) -> Calendar:
    """Return the campaign's windows; if its log cannot be read, those of the deployment file."""
    try:
        return calendar_of(view.deployment, view.fold)
    except HushcountError:
        windows = view.deployment.windows
        return Calendar((Times(None, windows.tiling, windows.grace),))


def health_of(view: View, key: str, span: Span) -> tuple[Block, ...]:
    """Return a campaign's counts and budget; if the ledger cannot be read, the counts are still shown."""
    parts: tuple[tuple[str, str, Callable[[], Block]], ...] = (
        ("hops", "Reports by hop", lambda: hops_of(view, key, span)),
        ("budget", "Privacy budget", lambda: budget_of(view, key)),
    )
    return tuple(_made(f"{key}-{name}", heading, made) for name, heading, made in parts)


def _made(key: str, heading: str, made: Callable[[], Block]) -> Block:
    try:
        return made()
    except HushcountError as error:
        return Prose(key, heading, (sentence(error),))
