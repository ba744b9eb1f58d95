"""Post a batch of reports to the collector, or a batch of elements to the evaluator.

After a failure, nothing is sent for a while to the party that failed. The pause after a failure is stored in the queue,
so that all processes wait.
"""

from __future__ import annotations

from collections.abc import Mapping

from hushcount.collection.windows import window_name
from hushcount.delivery.exchange import NoAnswer, Reply, post_octets
from hushcount.delivery.queue import Queue
from hushcount.delivery.site import Site
from hushcount.delivery.tokens import shown
from hushcount.delivery.verdicts import Verdict, verdict
from hushcount.delivery.waiting import Claimed
from hushcount.delivery.waits import LONGEST_WAIT, is_ahead, pause
from hushcount.passes.slots import Slot
from hushcount.window_starts import Starts


def post(site: Site, queue: Queue, claimed: Claimed, starts: Starts) -> Verdict:
    """Post claimed reports, and return what the answer means for these reports.

    Reports that name their window are taken before it ends, or never.
    """
    try:
        place = f"{claimed.stream}?fingerprint={claimed.fingerprint}&window={window_name(claimed.window)}"
        if claimed.of.window is not None:
            place += f"&until={window_name(starts.after(claimed.window))}"
        token = shown(queue, Slot(queue.campaign, "collector", claimed.of.collector, claimed.window), claimed.of.period)
        if token is None:
            return Verdict("dropped", "wrong_slot")
        reply = posted(site, queue, place, claimed.body, token)
    except NoAnswer as failure:
        return Verdict("again", failure.failure)
    return verdict(reply, len(claimed.rows), claimed.window)


def posted(site: Site, queue: Queue, place: str, body: bytes, token: Mapping[str, str]) -> Reply:
    """Post bytes to the path `place` below the campaign's path, with the header of a token, and return the answer.

    Raises:
        NoAnswer: no whole answer came.
    """
    return post_octets(site, f"/v1/campaigns/{queue.campaign}/{place}", body, token)


COLLECTOR = "hold"
EVALUATOR = "hold_evaluator"
ISSUER = "hold_issuer"
"""Names of facts in the queue, one a party: how many attempts failed in a row, and until when nothing is sent, in
seconds since 1970.
"""


def held_until(queue: Queue, now: float, whom: str = COLLECTOR) -> float | None:
    """Return until when nothing is sent to the party `whom`; None if nothing forbids sending."""
    until = _read(queue, whom)[1]
    return until if is_ahead(until, now, LONGEST_WAIT) else None


def hold(queue: Queue, now: float, asked: float, whom: str = COLLECTOR) -> float:
    """Store one more failure, and return until when nothing is sent; `asked`: the seconds that Retry-After demands."""
    failures = _read(queue, whom)[0] + 1
    until = now + pause(failures, asked)
    queue.note(whom, f"{failures} {until}")
    return until


def release(queue: Queue, whom: str = COLLECTOR) -> None:
    """Store that the party `whom` answered, which ends the pause."""
    if _read(queue, whom)[0]:
        queue.note(whom, "0 0")


def _read(queue: Queue, whom: str) -> tuple[int, float]:
    failures, _, until = (queue.fact(whom) or "0 0").partition(" ")
    return int(failures), float(until)
