"""Post a batch of reports to the collector, or of questions to the evaluator."""

from __future__ import annotations

import secrets

from hushcount.delivery.answers import Verdict, verdict
from hushcount.delivery.exchange import NoAnswer, Reply, Request, exchange
from hushcount.delivery.queue import Claimed, Queue
from hushcount.delivery.site import Site

_MOST_ANSWER_BYTES = 1 << 16


def post(site: Site, queue: Queue, claimed: Claimed) -> Verdict:
    """Post claimed reports, and return what the answer means for them."""
    try:
        reply = posted(site, queue, f"{claimed.stream}?fingerprint={claimed.fingerprint}", claimed.body)
    except NoAnswer as failure:
        return Verdict("again", failure.failure)
    return verdict(reply, len(claimed.rows))


def posted(site: Site, queue: Queue, place: str, body: bytes) -> Reply:
    """Post bytes to a place of the campaign with its client token, and return the answer.

    The token is drawn at the first post, and then stays the same.

    Raises:
        NoAnswer: no whole answer came.
    """
    token = queue.noted_once("token", lambda: secrets.token_urlsafe(32))
    headers = {"Content-Type": "application/octet-stream", "Client-Token": token}
    if site.app_token is not None:
        headers["Authorization"] = f"Bearer {site.app_token}"
    path = f"/v1/campaigns/{queue.campaign}/{place}"
    return exchange(site, Request("POST", path, headers, body), _MOST_ANSWER_BYTES)
