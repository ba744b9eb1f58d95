"""Get evaluations of an oblivious campaign: from an evaluator's address, or with its key on this machine."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.public_keys import EvaluatorKeyPart
from hushcount.delivery.exchange import post_octets
from hushcount.delivery.site import Site
from hushcount.delivery.verdicts import evaluation_verdict
from hushcount.discovery.oblivious import Ask, Unanswered, evaluations_of
from hushcount.errors import HushcountError, RetiredKey, UsageError
from hushcount.formats.client_files import read_private

if TYPE_CHECKING:
    # Workers that reveal values load this module, and do not have the code of the services in a deployment file.
    from pipelines.deployment.settings import Deployment

_TOKEN = re.compile("[\x21-\x7e]{16,256}")
_MOST_TOKEN_BYTES = 1024
_ADDRESSES = ("https://", "http://")
_TOO_MANY = ("too_many_evaluations", "too_many_evaluations_at_once")
_ENV, _SECRET = "env:", "gcp-secret://"


@dataclass(frozen=True)
class Evaluator:
    """Where to find an evaluator and its token. An `Evaluator` holds no secret, so a job's graph may contain it.

    Args:
        source: the evaluator's address, as in https://collector.example.com; or, on a machine that holds the
            evaluator's key, a key directory, env:NAME or gcp-secret://NAME.
        token: where to read the bearer token that the address requires: a private file, env:NAME or gcp-secret://NAME.
    """

    source: str
    token: str | None = None

    def __post_init__(self) -> None:
        if self.is_address:
            # Raise the error for a wrong address now, not after the reports are opened.
            Site(self.source)
        elif self.token is not None:
            raise UsageError(f"evaluator {self.source} is a key, not an address, and needs no token: remove the token")

    @property
    def is_address(self) -> bool:
        """Whether the evaluator is asked over HTTP."""
        return self.source.startswith(_ADDRESSES)

    def ask(self, campaign: Campaign) -> Ask:
        """Return a function that gets a campaign's evaluations.

        The function raises Unanswered if the evaluator does not answer, and RetiredKey if its key was destroyed.

        Raises:
            UsageError: the token or the key cannot be read, or the source has no key of the campaign.
            RetiredKey: the key was destroyed.
        """
        if self.is_address:
            shown = None if self.token is None else read_token(self.token)
            return partial(_post, Site(self.source, app_token=shown), campaign)
        # Import here: an analyzer that asks an evaluator by its address holds no evaluator's key, and may lack the
        # package `keys`.
        from keys.directories import campaign_key

        try:
            reference = campaign_key(self.source, "evaluator", campaign.keys.evaluator)
        except RetiredKey as retired:
            raise _destroyed(campaign) from retired
        return reference.read_evaluator().evaluate

    def require(self, campaign: Campaign) -> None:
        """Ask for one evaluation of random bytes.

        A job calls this before it draws a release or opens a batch, because without evaluations nobody could verify the
        discovered values.

        Raises:
            Unanswered, UsageError, RetiredKey: as `ask` raises them, or the function that `ask` returns.
        """
        evaluation = evaluations_of([None])
        evaluation.finish(self.ask(campaign)(evaluation.blinded), public_key(campaign))


def evaluator_of(source: str | None, token: str | None = None) -> Evaluator | None:
    """Return the evaluator that a command's options name; None: no option names one."""
    if source is None and token is not None:
        raise UsageError("a token for the evaluator was given, but no evaluator: give the evaluator's address too")
    return None if source is None else Evaluator(source, token)


def evaluator_here(deployment: Deployment) -> Evaluator | None:
    """Return the evaluator that a deployment's analyzer asks; None: the deployment has no evaluator."""
    part = deployment.file.analyzer
    if part.evaluator is None:
        return None
    if part.evaluator.startswith(_ADDRESSES):
        token = part.evaluator_token
        return Evaluator(part.evaluator, None if token is None else str(deployment.key_source(token)))
    return Evaluator(str(deployment.key_source(part.evaluator)), part.evaluator_token)


def namer(campaign: Campaign, evaluator: Evaluator | None) -> Evaluator | None:
    """Return the evaluator that an oblivious campaign needs to name values; None: a keyed campaign needs no evaluator.

    Raises:
        UsageError: the campaign is oblivious and `evaluator` is None, or the campaign is keyed and its file lacks the
            hash key.
    """
    if not campaign.is_oblivious:
        campaign.require_whole()
        return None
    if evaluator is None:
        raise UsageError(
            f"campaign {campaign.id} is oblivious, so its values cannot be named without the evaluator: give "
            "--evaluator, its address or its key directory; for hushcount run, set evaluator under [analyzer]"
        )
    return evaluator


def public_key(campaign: Campaign) -> bytes:
    """Return the evaluator's public key in an oblivious campaign."""
    return bytes.fromhex(_key(campaign).key)


def read_token(reference: str) -> str:
    """Return the bearer token in a private file, env:NAME or gcp-secret://NAME; no error shows a part of the token."""
    text = read_secret_text(reference, "token")
    if not _TOKEN.fullmatch(text):
        raise UsageError(f"evaluator token {reference} holds no token: a token has 16 to 256 visible ASCII characters")
    return text


def read_secret_text(reference: str, what: str) -> str:
    """Return the text in a private file, env:NAME or gcp-secret://NAME, stripped of space; empty: there is no text.

    Raises:
        UsageError, HushcountError: the text cannot be read; the error shows no part of the text.
    """
    if reference.startswith(_ENV):
        text = os.environ.get(reference.removeprefix(_ENV), "")
    elif reference.startswith(_SECRET):
        from keys import gcp

        text = gcp.read_secret(gcp.secret_name(reference))
    else:
        raw = read_private(Path(reference), what, _MOST_TOKEN_BYTES)
        text = "" if raw is None else raw.decode("ascii", "replace")
    return text.strip()


def _post(site: Site, campaign: Campaign, blinded: bytes) -> bytes:
    path = f"/v1/campaigns/{campaign.id}/evaluations?fingerprint={campaign.fingerprint.hex()}"
    who = f"the evaluator {site.address}"
    try:
        reply = post_octets(site, path, blinded)
    except HushcountError as failure:
        raise Unanswered(f"{who} did not answer, so no discovered value can be verified: {failure}") from None
    if reply.status == 200:
        return reply.body
    problem = evaluation_verdict(reply, 1).reason
    if problem == "key_destroyed":
        raise _destroyed(campaign)
    cure = ": set its most_evaluations_verifier to more than the values of a batch" if problem in _TOO_MANY else ""
    raise Unanswered(f"{who} refused, so no discovered value can be verified: status {reply.status}, {problem}{cure}")


def _destroyed(campaign: Campaign) -> RetiredKey:
    id = _key(campaign).id
    said = (
        f"the evaluator key {id} of campaign {campaign.id} epoch {campaign.epoch} was destroyed: the released values "
        "of that epoch can never be verified"
    )
    return RetiredKey(said, id)


def _key(campaign: Campaign) -> EvaluatorKeyPart:
    (key,) = campaign.keys.evaluator
    return key
