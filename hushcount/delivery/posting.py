"""Post a batch of reports to the collector."""

from __future__ import annotations

import secrets

from hushcount.delivery.answers import Verdict, verdict
from hushcount.delivery.exchange import NoAnswer, Request, exchange
from hushcount.delivery.queue import Claimed, Queue
from hushcount.delivery.site import Site

_MOST_ANSWER_BYTES = 1 << 16


def post(site: Site, queue: Queue, claimed: Claimed) -> Verdict:
    """Post claimed reports with the campaign's client token, and return what the answer means for them.

    The token is drawn at the first post, and then stays the same.
    """
    token = queue.noted_once("token", lambda: secrets.token_urlsafe(32))
    headers = {"Content-Type": "application/octet-stream", "Client-Token": token}
    if site.app_token is not None:
        headers["Authorization"] = f"Bearer {site.app_token}"
    path = f"/v1/campaigns/{queue.campaign}/{claimed.stream}?fingerprint={claimed.fingerprint}"
    try:
        reply = exchange(site, Request("POST", path, headers, claimed.body), _MOST_ANSWER_BYTES)
    except NoAnswer as failure:
        return Verdict("again", failure.failure)
    return verdict(reply, len(claimed.rows))
