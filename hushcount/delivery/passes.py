"""The passes of one client: asked of the issuer once a day, kept in the queue, shown to collector and evaluator.

A client asks for all its passes of the next day at a random second of each day, whether it reports or not, so the
request shows no use. Only a client without passes of today, as on its first day, asks at once. The bytes of a request
follow from the client's secret, the slots and the keys, so a repeated request is equal, and the issuer answers it again
(docs/adr/0053).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta

from hushcount.budget import Budget
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.parts import DAY_SECONDS, MOST_COLLECTORS, MOST_PASSES_A_DAY
from hushcount.clock import Clock
from hushcount.delivery.arrivals import Arrivals
from hushcount.delivery.events import TellEvent
from hushcount.delivery.exchange import NoAnswer, Request, exchange, post_octets
from hushcount.delivery.posting import ISSUER, held_until, hold, release
from hushcount.delivery.queue import Queue
from hushcount.delivery.site import Site
from hushcount.delivery.tokens import collector_name, keep_passes, kept_passes, nonce_of, secret_of
from hushcount.delivery.verdicts import Verdict, octets_verdict
from hushcount.errors import HushcountError
from hushcount.passes.blind_signatures import BLIND_BYTES, KEY_BYTES, SALT_BYTES, blind, encoded, pieces, unblinded
from hushcount.passes.pass_keys import checked_day
from hushcount.passes.slots import Slot, day_begins, day_of, own_slots, slot_at, slots_of
from hushcount.passes.tokens import Token, key_id_of, message_of, token_of, token_request

_MOST_KEYS_BYTES = (MOST_COLLECTORS + 1) * MOST_PASSES_A_DAY * KEY_BYTES
_BLINDING, _ASKING = b"pass blinding", b"asking"
_BLOCK_BYTES = 64
_NO_ISSUER = "no_issuer"
"""The reason when something else than the issuer answered."""


@dataclass(frozen=True)
class Issuer:
    """The issuer of a campaign's passes, and what shows that this installation may ask.

    Args:
        site: the issuer.
        authorization: function that returns the value of the header Authorization for the issuer's rule, such as a
            token of the account. It is called in the delivering thread, once for each request.
    """

    site: Site
    authorization: Callable[[], str] = field(repr=False)


@dataclass(frozen=True)
class Pending:
    """A pass whose signature is asked for."""

    slot: Slot
    modulus: int
    message: bytes
    encoded: int = field(repr=False)
    blinding: bytes = field(repr=False)
    request: bytes


@dataclass(frozen=True, eq=False)
class Passes:
    """Asks for the passes of one client; threads and processes may share the queue.

    Args:
        issuer: None: the app names no issuer, so no campaign with passes is accepted.
        collector: name of the site, as `Site` has it.
        budget: budget that says whether the person opted out, which may happen while the issuer is asked.
    """

    issuer: Issuer | None
    collector: str | None
    queue: Queue
    arrivals: Arrivals
    budget: Budget
    tell: TellEvent
    clock: Clock

    def ask(self, campaign: Campaign) -> None:
        """Ask for passes if that is due; after a failure, the issuer is not asked for a while, as others are not."""
        if self.issuer is None or campaign.passes is None or self.budget.opted_out:
            return
        if held_until(self.queue, self.clock.seconds(), ISSUER) is None:
            for day in self._due(campaign):
                verdict = self._asked(self.issuer, campaign, day)
                if self.budget.opted_out:
                    return
                if verdict.fate != "sent":
                    hold(self.queue, self.clock.seconds(), verdict.wait, ISSUER)
                    self.tell("no_pass", verdict.reason)
                    return
                release(self.queue, ISSUER)

    def has(self, campaign: Campaign, window: int) -> bool:
        """Return whether the client may send untried reports in a window: it has a pass, or none is needed."""
        if campaign.passes is None:
            return True
        return slot_at(campaign, "collector", self._name(campaign), window) in kept_passes(self.queue)

    def _due(self, campaign: Campaign) -> Iterator[date]:
        """Yield the days for which passes are asked for now."""
        today = day_of(self.arrivals.present())
        begin = day_begins(today)
        later = self.clock.seconds() >= begin + asking_second(secret_of(self.queue), begin)
        kept = set(kept_passes(self.queue))
        for day in [today, today + timedelta(days=1)] if later else [today]:
            if not kept.issuperset(own_slots(campaign, self._name(campaign), day)):
                yield day

    def _asked(self, issuer: Issuer, campaign: Campaign, day: date) -> Verdict:
        """Ask for all passes of a day, and keep them if all are good; return what happened."""
        name = self._name(campaign)
        place = f"/v1/campaigns/{campaign.id}/passes?day={day:%Y%m%d}"
        try:
            keys = exchange(issuer.site, Request("GET", place), _MOST_KEYS_BYTES)
            verdict = octets_verdict(keys, len(keys.body), 1, _NO_ISSUER)
            if verdict.fate != "sent":
                return verdict
            moduli = dict(zip(slots_of(campaign, day), checked_day(campaign, day, keys.body), strict=True))
            secret = secret_of(self.queue)
            asked = [pending(secret, slot, moduli[slot]) for slot in own_slots(campaign, name, day)]
            shown = {"Authorization": _shown(issuer)}
            body = b"".join(one.request for one in asked)
            reply = post_octets(issuer.site, f"{place}&collector={name}", body, shown)
            verdict = octets_verdict(reply, len(asked) * KEY_BYTES, len(asked), _NO_ISSUER)
            if verdict.fate == "sent" and not self.budget.opted_out:
                signed = zip(asked, pieces(reply.body, KEY_BYTES), strict=True)
                made = {one.slot: finished(one, signature) for one, signature in signed}
                keep_passes(self.queue, made, day_begins(day))
            return verdict
        except NoAnswer as failure:
            return Verdict("again", failure.failure)
        except (HushcountError, ValueError) as error:
            # Keys or signatures that are not those of the campaign file: another answer may come later.
            return Verdict("again", str(error))

    def _name(self, campaign: Campaign) -> str:
        return collector_name(campaign, self.collector)


def asking_second(secret: bytes, day: int) -> int:
    """Return the second of a day at which a client asks for the passes of the next one: uniform, up to 2^-47.

    Args:
        day: when the day begins, in seconds since 1970.
    """
    begin = day.to_bytes(8, "big", signed=True)
    drawn = hashlib.blake2b(begin, key=secret, digest_size=8, person=_ASKING).digest()
    return int.from_bytes(drawn, "big") % DAY_SECONDS


def pending(secret: bytes, slot: Slot, modulus: bytes) -> Pending:
    """Return the pass of a slot to ask for. Its blinding depends on the key too: one used with two keys would link."""
    key_id, number = key_id_of(modulus), int.from_bytes(modulus, "big")
    blocks = range(-(-(BLIND_BYTES + SALT_BYTES) // _BLOCK_BYTES))
    drawn = b"".join(
        hashlib.blake2b(slot.octets + key_id + bytes([block]), key=secret, person=_BLINDING).digest()
        for block in blocks
    )
    message = message_of(nonce_of(secret, slot), slot, key_id)
    padded = encoded(message, drawn[BLIND_BYTES : BLIND_BYTES + SALT_BYTES])
    blinding = drawn[:BLIND_BYTES]
    return Pending(slot, number, message, padded, blinding, token_request(key_id, blind(number, padded, blinding)))


def finished(one: Pending, blind_signature: bytes) -> Token:
    """Return the pass that an answer of the issuer makes; ValueError: the answer is no signature by the slot's key."""
    return token_of(one.message, unblinded(one.modulus, one.encoded, one.blinding, blind_signature))


def _shown(issuer: Issuer) -> str:
    """Return what the app gives for the issuer's rule; ValueError without its text if that is no header."""
    try:
        shown = issuer.authorization()
    except Exception:
        raise ValueError("the app's function for the authorization at the issuer failed") from None
    if not (isinstance(shown, str) and shown.isascii() and shown.isprintable()):
        raise ValueError("the authorization for the issuer is no printable ASCII text")
    return shown
