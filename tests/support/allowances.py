"""An allowance for tests of something else than caps."""

from __future__ import annotations

from datetime import datetime

from hushcount.allowance import Allowance
from hushcount.campaigns.campaign import Campaign, Stream


class Boundless(Allowance):
    """Lets a client make any number of reports."""

    def take(self, campaign: Campaign, stream: Stream, number: int, now: datetime | None = None) -> None:
        pass
