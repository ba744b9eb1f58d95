"""Takes passes of Privacy Pass: the issuer's keys for this party, and the check of one pass (docs/adr/0053)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.serialization import load_der_public_key

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.tilings import Tiling
from hushcount.errors import UsageError
from hushcount.passes.blind_signatures import SALT_BYTES
from hushcount.passes.pass_keys import PASSES_FILE, keys_of, read_pass_keys
from hushcount.passes.slots import EVALUATOR_NAME, Role, Slot, slot_at
from hushcount.passes.tokens import Token, key_id_of, public_key, read_header
from hushcount.senders import Authentication
from service.refusals import UNAUTHORISED, WRONG_SIGNATURE, WRONG_SLOT, Refused

_MOST_REMEMBERED = 1 << 14
_MOST_OPENED = 1 << 8
_WITH: tuple[tuple[bytes, bytes], ...] = ((b"www-authenticate", b"PrivateToken"),)


@dataclass(frozen=True, eq=False)
class Passes:
    """The passes of one campaign that one party takes.

    Attributes:
        campaign: the newest campaign file.
        keys: the moduli of the issuer's keys, 256 bytes each, by slot of this party.
    """

    campaign: Campaign
    role: Role
    name: str
    keys: Mapping[Slot, bytes] = field(repr=False)

    def redeemed(self, value: bytes, now: float) -> bytes:
        """Return the nonce of a good pass, which is the client's token; else raise Refused.

        A pass is good in its period and in the next one, so that a report can be sent again under the same token.

        Args:
            value: the header Authorization.
            now: in seconds since 1970.
        """
        return _redeemed(self, value, slot_at(self.campaign, self.role, self.name, now).begins)


@dataclass(frozen=True)
class PassTaker:
    """A party that may take passes: its way of authentication, its name, and its windows."""

    way: Authentication
    role: Role
    name: str
    tiling: Tiling

    def passes(self, directory: Path, campaigns: Sequence[Campaign]) -> Passes | None:
        """Return the passes that all these epochs of a campaign in its directory take; None: they ask for none.

        An epoch takes passes of all days that one of them names: a client may send a report of an epoch that has ended
        with a pass that it got by the next campaign file.

        Raises:
            UsageError: campaign and authentication disagree, the windows do not divide the time of a pass, the campaign
                lacks this collector, or the file of keys is missing or not that of a campaign file.
        """
        takes = self.way == "privacy-pass"
        if any((campaign.passes is not None) != takes for campaign in campaigns):
            asks = "no passes, must have them" if takes else "passes, must have none"
            raise UsageError(f"the campaign asks for {asks} with authentication {self.way}: change one of them")
        if not takes or not campaigns:
            return None
        keys, found = read_pass_keys(directory / PASSES_FILE), dict[Slot, bytes]()
        for campaign in campaigns:
            found |= keys_of(campaign, keys)
        length = self.tiling.length
        if not isinstance(length, timedelta) or timedelta(seconds=keys.seconds) % length:
            raise UsageError(
                f"windows are {self.tiling}, must divide {timedelta(seconds=keys.seconds)}, the time in which a pass "
                "is good: make the keys with hushcount keys passes --window, of these windows"
            )
        name = self._name(campaigns[-1])
        own = {slot: modulus for slot, modulus in found.items() if (slot.role, slot.name) == (self.role, name)}
        return Passes(campaigns[-1], self.role, name, own)

    def _name(self, campaign: Campaign) -> str:
        if self.role == "evaluator":
            return EVALUATOR_NAME
        if len(campaign.collectors) == 1:
            return campaign.collectors[0]
        if self.name not in campaign.collectors:
            raise UsageError(
                f"name of the collector is {self.name}, must be one of the campaign's, {', '.join(campaign.collectors)}"
            )
        return self.name


def no_pass() -> Refused:
    """Return the refusal of a request without a pass."""
    detail = "Send a pass of the campaign's issuer in the header Authorization: PrivateToken token=..."
    return Refused(UNAUTHORISED, detail, _WITH)


# A client shows its pass with each post of a period, so the newest good passes are remembered; a forgotten one is
# checked again.
@lru_cache(maxsize=_MOST_REMEMBERED)
def _redeemed(passes: Passes, value: bytes, begins: int) -> bytes:
    """Return the nonce of a pass that is good in the period that begins then; else raise Refused."""
    token = read_header(value)
    if token is None:
        raise no_pass()
    present = Slot(passes.campaign.id, passes.role, passes.name, begins)
    before = slot_at(passes.campaign, passes.role, passes.name, begins - 1)
    for slot in (present, before):
        if (modulus := passes.keys.get(slot)) is not None and _challenge(slot) == token.challenge_digest:
            if token.key_id == key_id_of(modulus) and _is_signed(_opened(modulus), token):
                return token.nonce
            raise Refused(WRONG_SIGNATURE, "Get a pass of the campaign's issuer for this slot.", _WITH)
    raise Refused(WRONG_SLOT, "Show a pass for this party, for the present period or the one before.", _WITH)


@lru_cache(maxsize=_MOST_OPENED)
def _challenge(slot: Slot) -> bytes:
    return slot.challenge_digest


@lru_cache(maxsize=_MOST_OPENED)
def _opened(modulus: bytes) -> RSAPublicKey:
    key = load_der_public_key(public_key(modulus))
    assert isinstance(key, RSAPublicKey)  # noqa: S101  # public_key makes no other
    return key


def _is_signed(key: RSAPublicKey, token: Token) -> bool:
    try:
        key.verify(token.signature, token.signed, PSS(MGF1(SHA384()), SALT_BYTES), SHA384())
    except InvalidSignature:
        return False
    return True
