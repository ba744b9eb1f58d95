"""The windows that campaign files list for clients, if the deployment's windows follow a calendar (docs/adr/0056)."""

from __future__ import annotations

from datetime import datetime, timedelta

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.parts import WindowsPart
from hushcount.collection.tilings import Tiling
from hushcount.collection.windows import duration_text
from hushcount.errors import UsageError

LISTED = timedelta(days=400)
"""How long ahead campaign files list windows."""
LEFT = timedelta(days=60)
"""A campaign file that lists fewer days ahead needs a next epoch."""


def windows_of(tiling: Tiling, now: datetime) -> WindowsPart | None:
    """Return when the windows of a calendar begin, from the present one on; None: they have one length."""
    if isinstance(tiling.length, timedelta):
        return None
    starts = tuple(int(start.timestamp()) for start in tiling.begins(now, now + LISTED))
    return WindowsPart(unit=tiling.length, starts=starts)


def listed_until(campaign: Campaign, tiling: Tiling, now: datetime) -> datetime | None:
    """Return until when a campaign file lists the windows of a deployment; None: they need no list.

    Raises:
        UsageError: the file lists other windows than these, or none; or with noise it states another length.
    """
    given, needed = campaign.windows, windows_of(tiling, now)
    cure = "make its next file with hushcount campaign new --config, of this deployment"
    named = None if campaign.noise is None else campaign.noise.seconds
    if named is not None and tiling.length != timedelta(seconds=named):
        raise UsageError(
            f"reports of campaign {campaign.id} name windows of {duration_text(timedelta(seconds=named))}, and windows "
            f"are {tiling.said}: {cure}"
        )
    if needed is None:
        if given is None:
            return None
        raise UsageError(f"campaign {campaign.id} lists calendar {given.unit}s, and windows are of one length: {cure}")
    if given is None or given.unit != needed.unit:
        lists = "no windows" if given is None else f"calendar {given.unit}s"
        raise UsageError(
            f"campaign {campaign.id} lists {lists}, so its clients do not count calendar {needed.unit}s, which windows "
            f"are: {cure}"
        )
    ahead = [start for start in given.starts if start >= needed.starts[0]]
    if not ahead:
        raise UsageError(f"campaign {campaign.id} lists windows of the past only: {cure}")
    wrong = next((own for own, other in zip(ahead, needed.starts, strict=False) if own != other), None)
    if wrong is not None:
        begins = datetime.fromtimestamp(wrong, now.tzinfo).isoformat()
        raise UsageError(
            f"campaign {campaign.id} lists a window from {begins} on, which is none of {tiling.said}: {cure}"
        )
    return datetime.fromtimestamp(ahead[-1], now.tzinfo)
