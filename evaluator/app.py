"""The evaluator's answers: a plain ASGI application, as in the collector (docs/adr/0035).

The application reads neither the sender's address nor any header that is not named here or in `service/exchange.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from evaluator.campaigns import AskedCampaign, AskedEpoch
from evaluator.evaluator import Evaluator, EvaluatorSetup
from evaluator.manifests import Asker
from evaluator.refusals import NO_EVALUATOR, WRONG_EVALUATIONS
from hushcount.discovery.oblivious import ELEMENT_BYTES, MOST_EVALUATIONS
from service.application import application_of
from service.epochs import accepted, served_campaign
from service.exchange import (
    BYTES,
    NOT_CACHED,
    PREFIX,
    App,
    Receive,
    Scope,
    Send,
    answer,
    body_length,
    header,
    not_found,
    read_body,
    require_method,
    required_fingerprint,
)
from service.refusals import Headers, Refused
from service.server import Kept
from service.server import serve as serve_service

_ANSWER = ((b"content-type", BYTES), *NOT_CACHED)
_VERIFIER = b"verifier"


@dataclass
class _Place:
    """Campaign, epoch and asker for which a refusal is counted, as far as they are known."""

    campaign: AskedCampaign | None = None
    epoch: AskedEpoch | None = None
    asker: Asker = "clients"


def serve(setup: EvaluatorSetup) -> None:
    """Answer until SIGTERM or SIGINT; every evaluation is counted on the disk when this returns.

    Raises:
        UsageError: the address, the directory of counts, the keys or the campaigns are unusable.
        HushcountError: another evaluator runs on the directory of counts, or its disk fails.
    """
    serve_service(
        partial(Evaluator, setup), application, setup.settings, Kept("evaluator", "directory of counts", setup.counts)
    )


def application(evaluator: Evaluator) -> App:
    """Return the ASGI application of an evaluator that was started."""

    async def handle(scope: Scope, receive: Receive, send: Send, shared: Headers, place: _Place) -> None:
        campaign, _, rest = scope["path"][len(PREFIX) :].partition("/")
        if rest != "evaluations":
            raise not_found()
        found = await _evaluate(evaluator, scope, receive, campaign, place)
        await answer(send, 200, (*_ANSWER, *shared), found)

    return application_of(evaluator, _Place, handle, partial(_count, evaluator))


async def _evaluate(evaluator: Evaluator, scope: Scope, receive: Receive, campaign: str, place: _Place) -> bytes:
    """Check a request, read its body, and return the answer to its evaluations; else raise Refused."""
    require_method(scope, "POST")
    asked = place.campaign = served_campaign(evaluator.campaigns, campaign)
    fingerprint = required_fingerprint(scope, "evaluations")
    place.epoch = asked.epochs.get(fingerprint)
    verifies = evaluator.is_verifier(header(scope, b"authorization"))
    client: bytes | None
    if verifies and place.epoch is not None:
        # The verifier may ask as long as the key exists, even after the epoch's grace, when clients may no longer ask.
        place.asker, client, epoch = "verifier", _VERIFIER, place.epoch
    else:
        now = evaluator.setup.clock.seconds()
        epoch = accepted(asked, fingerprint, now)
        authenticator = evaluator.setup.authenticator
        client = authenticator.client(header(scope, authenticator.header), epoch.passes, now)
    if epoch.key is None:
        raise Refused(NO_EVALUATOR, "This campaign file names no evaluator: make reports without evaluations.")
    length = body_length(scope, "evaluations", evaluator.setup.settings.longest_body)
    if length is not None:
        _require_whole(length)
    body = await read_body(receive, evaluator.setup.settings.longest_body, evaluator.incoming)
    _require_whole(len(body))
    return await evaluator.answer(epoch, epoch.key.id, place.asker, client, body)


def _require_whole(length: int) -> None:
    if length % ELEMENT_BYTES or not length:
        raise Refused(
            WRONG_EVALUATIONS,
            f"Send 1 to {MOST_EVALUATIONS} blinded elements of {ELEMENT_BYTES} bytes, one after another.",
            element_bytes=ELEMENT_BYTES,
            most_evaluations=MOST_EVALUATIONS,
        )


def _count(evaluator: Evaluator, place: _Place, reason: str) -> None:
    """Count a refusal for the request's epoch, or else for the newest accepted epoch; without both, only in metrics."""
    epoch = place.epoch
    if epoch is None and place.campaign is not None:
        now = evaluator.setup.clock.seconds()
        accepting = [one for one in place.campaign.epochs.values() if one.accepts(now)]
        epoch = max(accepting, key=lambda one: one.epoch, default=None)
    if epoch is not None:
        evaluator.refusals[epoch, place.asker, reason] += 1
