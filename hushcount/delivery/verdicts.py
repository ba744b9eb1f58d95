"""What the answer to a batch means for the batch's reports: sent, to be sent again, to be made anew, or given up."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from hushcount.delivery.exchange import Reply
from hushcount.delivery.waits import LONGEST_WAIT
from hushcount.discovery.oblivious import ELEMENT_BYTES, PROOF_BYTES
from hushcount.errors import FormatError
from hushcount.formats.reading import parse_object

MOST_REFUSALS = 200
"""Most refusals of one report by machines other than the collector. With the pauses between them, this many refusals
take about six days.
"""
Fate = Literal["sent", "again", "early", "refused", "smaller", "closed", "dropped"]
_PROBLEM_BYTES = 1 << 14
_PROBLEM = re.compile(r"urn:hushcount:problem:([a-z_]{1,40})")
_LATER = frozenset({408, 425, 429})
_FATES: Mapping[str, Fate] = {
    "epoch_closed": "closed",
    "unknown_fingerprint": "closed",
    "epoch_not_begun": "again",
    "window_over": "again",
}
_EVALUATOR_FATES: Mapping[str, Fate] = {"unknown_fingerprint": "again", "too_many_evaluations": "smaller"}


@dataclass(frozen=True)
class Verdict:
    """What happens to a batch after an answer.

    Attributes:
        fate: sent: the reports are on the collector's disk. again: send the same bytes later. early: send the same
            bytes when their window begins, after `wait`. refused: send the same bytes later, but only a limited number
            of times, because the answer does not come from the collector.
            smaller: the batch has too many bytes or reports. closed: the collector takes no reports of this campaign
            file. dropped: no attempt would succeed.
        reason: a name of the problem, given by the other side or by this library; letters, digits and underscores only.
        wait: how many seconds the other side asked to wait, a day at most.
        at: when the collector answered, by its own clock, in seconds since 1970; None if the answer has no time, or
            does not come from the collector.
    """

    fate: Fate
    reason: str = ""
    wait: float = 0.0
    at: float | None = None


def verdict(reply: Reply, reports: int, window: float = -math.inf) -> Verdict:
    """Return what an answer to a batch of `reports` reports means; vectors/v1/answers.json lists every case.

    `window` is when the window of their token began. The collector's own clock says how long it is until then, so an
    answer `window_not_begun` without a time, or with a time in that window, only means that the bytes are sent later.

    Reports are given up at once only if the answer names a problem, because every refusal by a collector names a
    problem. A page that a hotel's network or a proxy sends says nothing about the reports. Exception: status 413 from
    any machine means that so many bytes cannot be sent.
    """
    if reply.status == 202:
        return Verdict("sent", at=reply.date)
    refusal = _refusal(reply, reports, "no_collector")
    at = reply.date if _problem(reply) else None
    if (reply.status, refusal.reason) == (425, "window_not_begun") and at is not None and at < window:
        return Verdict("early", refusal.reason, min(window - at, LONGEST_WAIT), at)
    return replace(refusal, at=at)


def evaluation_verdict(reply: Reply, evaluations: int) -> Verdict:
    """Return what an evaluator's answer to a request for `evaluations` evaluations means.

    "sent" means that the answer has the right length; its proof must still be checked. An evaluator that does not know
    the campaign file may be about to read that file, so the evaluator is asked again. An evaluator that refuses this
    number of evaluations may accept fewer.
    """
    if reply.status != 200:
        refusal = _refusal(reply, evaluations, "no_evaluator")
        fate = _EVALUATOR_FATES.get(refusal.reason, refusal.fate)
        # If a proxy answered in place of the evaluator, the evaluator may still be reached before the evaluation's time
        # is up.
        later = fate == "refused" or (fate == "smaller" and evaluations == 1)
        return replace(refusal, fate="again" if later else fate)
    return octets_verdict(reply, evaluations * ELEMENT_BYTES + PROOF_BYTES, evaluations, "no_evaluator")


def octets_verdict(reply: Reply, wanted: int, number: int, unnamed: str) -> Verdict:
    """Return "sent" for an answer of `wanted` bytes; else why not, and how long to wait.

    `unnamed` is the reason if something else than the service answered a request for `number` things.
    """
    if reply.status != 200:
        return _refusal(reply, number, unnamed)
    if _media_type(reply) != "application/octet-stream":
        return Verdict("again", unnamed)
    return Verdict("sent") if len(reply.body) == wanted else Verdict("again", "wrong_length")


def _refusal(reply: Reply, number: int, unnamed: str) -> Verdict:
    problem = _problem(reply)
    if reply.status in _LATER or reply.status >= 500:
        return Verdict("again", problem or f"status_{reply.status}", _seconds(reply.headers.get("retry-after", "")))
    if reply.status == 413:
        return Verdict("smaller" if number > 1 else "dropped", problem or "too_long")
    if reply.status < 400 or not problem:
        return Verdict("refused", unnamed)
    return Verdict(_FATES.get(problem, "dropped"), problem)


def _problem(reply: Reply) -> str:
    """Return the name of the problem in an answer (problem details of RFC 9457); empty if there is none."""
    if _media_type(reply) != "application/problem+json" or len(reply.body) > _PROBLEM_BYTES:
        return ""
    try:
        kind = parse_object(reply.body, "the answer").get("type")
    except FormatError:
        return ""
    match = _PROBLEM.fullmatch(kind) if isinstance(kind, str) else None
    return "" if match is None else match[1]


def _media_type(reply: Reply) -> str:
    return reply.headers.get("content-type", "").partition(";")[0].strip().lower()


def _seconds(text: str) -> float:
    """Return the seconds in Retry-After, a day at most; a date is ignored, because the two clocks may disagree."""
    return min(float(text), LONGEST_WAIT) if re.fullmatch("[0-9]+", text) else 0.0
