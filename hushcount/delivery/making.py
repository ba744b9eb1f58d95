"""One report of a value, ready to be queued."""

from __future__ import annotations

import time

from hushcount.campaigns.campaign import Stream
from hushcount.client import Client
from hushcount.delivery.queue import Waiting
from hushcount.delivery.waits import random_seconds
from hushcount.items import canonical


def made(client: Client, stream: Stream, value: str, keep_value: bool, delay: float) -> Waiting:
    """Make a report of a value, due after a random delay of at most so many seconds; raises as the client does."""
    body = client.report(value) if stream == "reports" else client.discovery_report(_discoverable(client, value))
    fingerprint = client.campaign.fingerprint.hex()
    return Waiting(fingerprint, stream, body, value if keep_value else None, time.time() + random_seconds(delay))


def _discoverable(client: Client, value: str) -> str | None:
    """Return the value, or None if it is too long: a client that then sent nothing would tell so."""
    most = client.campaign.discovery_format.max_value_bytes
    return value if len(canonical(value).encode(errors="surrogatepass")) <= most else None
