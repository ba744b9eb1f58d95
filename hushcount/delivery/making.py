"""One report of a value, ready to be queued."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hushcount.campaigns.campaign import Stream
from hushcount.client import Client
from hushcount.delivery.open_evaluations import OpenEvaluation
from hushcount.delivery.waiting import Waiting, new_evaluation
from hushcount.delivery.waits import random_seconds
from hushcount.items import canonical


@dataclass(frozen=True)
class Made:
    """A report to queue, and the evaluation to keep once that is done; None if nothing is asked for it."""

    waiting: Waiting
    evaluation: OpenEvaluation | None = None


@dataclass(frozen=True)
class Maker:
    """Makes reports, due after a random delay.

    Args:
        delay: its longest, in seconds.
        answer_within: how many seconds an evaluation is repeated if nobody answers it.
    """

    delay: float
    answer_within: float

    def made(self, client: Client, stream: Stream, value: str, keep_value: bool) -> Made:
        """Make a report of a value; raises as the client does."""
        kept, fingerprint = value if keep_value else None, client.campaign.fingerprint.hex()
        due = time.time() + random_seconds(self.delay)
        if stream == "reports":
            return Made(Waiting(fingerprint, stream, client.report(value), kept, due))
        wanted = _discoverable(client, value)
        if not client.campaign.is_oblivious:
            return Made(Waiting(fingerprint, stream, client.discovery_report(wanted), kept, due))
        # The evaluation is due then. Its blank goes at a random time too: neither time reveals when the value was used.
        pending, claim, until = client.pending_discovery(wanted), new_evaluation(), due + self.answer_within
        blank = Waiting(
            fingerprint, stream, pending.blank, kept, until + random_seconds(self.delay), claim, claimed_until=until
        )
        return Made(blank, OpenEvaluation(claim, fingerprint, due, until, pending))


def _discoverable(client: Client, value: str) -> str | None:
    """Return the value, or None if it is too long: a client that then sent nothing would tell so."""
    most = client.campaign.discovery_format.max_value_bytes
    return value if len(canonical(value).encode(errors="surrogatepass")) <= most else None
