"""Post a batch of reports to the collector, or of elements to the evaluator."""

from __future__ import annotations

import secrets

from hushcount.delivery.exchange import NoAnswer, Reply, post_octets
from hushcount.delivery.queue import Queue
from hushcount.delivery.site import Site
from hushcount.delivery.verdicts import Verdict, verdict
from hushcount.delivery.waiting import Claimed

COLLECTOR_TOKEN, EVALUATOR_TOKEN = "token", "evaluator_token"
"""Two tokens: an evaluator that saw the collector's could post in the client's name, and crowd out its reports."""


def post(site: Site, queue: Queue, claimed: Claimed) -> Verdict:
    """Post claimed reports, and return what the answer means for them."""
    try:
        place = f"{claimed.stream}?fingerprint={claimed.fingerprint}"
        reply = posted(site, queue, place, claimed.body, COLLECTOR_TOKEN)
    except NoAnswer as failure:
        return Verdict("again", failure.failure)
    return verdict(reply, len(claimed.rows))


def posted(site: Site, queue: Queue, place: str, body: bytes, token: str) -> Reply:
    """Post bytes to a place of the campaign with a client token, and return the answer.

    The token of this name is drawn at the first post with it, and then stays the same.

    Raises:
        NoAnswer: no whole answer came.
    """
    shown = queue.noted_once(token, lambda: secrets.token_urlsafe(32))
    return post_octets(site, f"/v1/campaigns/{queue.campaign}/{place}", body, {"Client-Token": shown})
