"""The issuer's keys: one for each slot, in a file that the issuer makes; the campaign file has a hash of each day."""

from __future__ import annotations

import hashlib
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.parts import (
    DAY_SECONDS,
    MOST_COLLECTORS,
    MOST_PASS_DAYS,
    MOST_PASSES_A_DAY,
    Identifier,
    PassesPart,
    PassSeconds,
)
from hushcount.errors import UsageError
from hushcount.formats.models import Part, text_of
from hushcount.formats.reading import parse_model, read_file
from hushcount.passes.blind_signatures import KEY_BYTES, pieces, require_modulus
from hushcount.passes.slots import Slot, require_passes, slots_of

Modulus = Annotated[str, text_of(r"^[0-9a-f]{512}$", "must be 512 hexadecimal digits, in lower case")]
PassParties = tuple[tuple[str, ...], bool, int]
"""Collectors, whether an evaluator takes passes too, and seconds of a period: they decide the slots of a day."""
KEYS_FILE_BYTES = 24 << 20
PASSES_FILE = "passes.json"
"""The file of public keys in a campaign's folder; one for all epochs, so it only gains days."""
_DAY = b"pass keys"


class PassKeys(Part):
    """The public keys of a campaign's passes: an RSA modulus for each slot of each day.

    The private file of the issuer has the same form, with the two primes of each modulus in place of the modulus.
    """

    format: Literal[1] = 1
    campaign: Identifier
    collectors: tuple[Identifier, ...] = Field(min_length=1, max_length=MOST_COLLECTORS)
    evaluator: bool = Field(default=False, description="whether an evaluator takes passes too")
    seconds: PassSeconds
    first: date
    days: tuple[tuple[Modulus, ...], ...] = Field(
        repr=False,
        min_length=1,
        max_length=MOST_PASS_DAYS,
        description="for each day from `first` on, the keys of each party's periods, the collectors first",
    )

    @model_validator(mode="after")
    def _check(self) -> PassKeys:
        wanted = slots_a_day(self.parties)
        if any(len(day) != wanted for day in self.days):
            raise ValueError(f"days: each must have {wanted} keys, one for each party and period")
        return self

    @property
    def parties(self) -> PassParties:
        return self.collectors, self.evaluator, self.seconds

    def part(self) -> PassesPart:
        """Return the section of a campaign file that names these keys."""
        digests = tuple(day_digest(day_octets(day)).hex() for day in self.days)
        return PassesPart(seconds=self.seconds, first=self.first, days=digests)


def slots_a_day(parties: PassParties) -> int:
    """Return the number of slots of a day, of all parties."""
    collectors, evaluator, seconds = parties
    return (len(collectors) + evaluator) * (DAY_SECONDS // seconds)


def day_octets(day: tuple[str, ...]) -> bytes:
    """Return the keys of a day as an issuer serves them: the moduli, one after another."""
    return bytes.fromhex("".join(day))


def day_digest(octets: bytes) -> bytes:
    """Return the BLAKE2b-256 of a day's keys, as a campaign file has it."""
    return hashlib.blake2b(octets, digest_size=32, person=_DAY).digest()


def checked_day(campaign: Campaign, day: date, octets: bytes) -> list[bytes]:
    """Return the moduli of a day, in the order of `slots_of`; UsageError: they are not those of the campaign file."""
    part = require_passes(campaign)
    place, number = (day - part.first).days, slots_a_day((campaign.collectors, campaign.is_oblivious, part.seconds))
    if not 0 <= place < len(part.days):
        last = part.first + timedelta(days=len(part.days) - 1)
        raise UsageError(f"campaign {campaign.id} has passes from {part.first} to {last}, and none for {day}")
    if len(octets) != number * KEY_BYTES or day_digest(octets).hex() != part.days[place]:
        raise UsageError(f"the keys for passes of {day} are not those of campaign {campaign.id}: tell the operator")
    moduli = pieces(octets, KEY_BYTES)
    for modulus in moduli:
        require_modulus(int.from_bytes(modulus, "big"))
    return moduli


def keys_of(campaign: Campaign, keys: PassKeys) -> dict[Slot, bytes]:
    """Return the moduli by slot, of the days that campaign file and keys have; keys may lack days before their first.

    Raises:
        UsageError: the keys are of another campaign or of other parties, end too early, or differ on a day.
    """
    part = require_passes(campaign)
    given = keys.campaign, ", ".join(keys.collectors), keys.evaluator, keys.seconds
    wanted = campaign.id, ", ".join(campaign.collectors), campaign.is_oblivious, part.seconds
    if given != wanted:
        of = "campaign {}, collectors {}, evaluator {}, seconds {}"
        raise UsageError(f"pass keys are for {of.format(*given)}, must be for {of.format(*wanted)}: make others")
    found: dict[Slot, bytes] = {}
    for number in range(max(0, (keys.first - part.first).days), len(part.days)):
        day = part.first + timedelta(days=number)
        place = (day - keys.first).days
        if place >= len(keys.days):
            raise UsageError(f"pass keys end before {day}, a day that campaign {campaign.id} names: give its file")
        found |= zip(slots_of(campaign, day), checked_day(campaign, day, day_octets(keys.days[place])), strict=True)
    return found


def extended(campaign: Campaign) -> PassesPart | None:
    """Return the section on passes of a published campaign with all days of its folder's file of keys.

    Raises:
        UsageError: the file is missing or invalid, or differs on a day that the campaign file names.
    """
    if campaign.passes is None or campaign.path is None:
        return campaign.passes
    keys = read_pass_keys(campaign.path.with_name(PASSES_FILE))
    keys_of(campaign, keys)
    return keys.part()


def period_of(window: timedelta, evaluator: bool) -> int:
    """Return how many seconds a pass is good for windows of a length; UsageError: no period holds whole windows.

    The period is the shortest of whole hours that divides a day, is a multiple of the window, and needs at most
    MOST_PASSES_A_DAY passes of a client and day.
    """
    least = DAY_SECONDS * (1 + evaluator) // MOST_PASSES_A_DAY
    for seconds in range(least, DAY_SECONDS + 1, 3600):
        if not DAY_SECONDS % seconds and not timedelta(seconds=seconds) % window:
            return seconds
    raise UsageError(
        f"window is {window}, must divide a day, because a pass is good for whole windows: change [windows]"
    )


def passes_beside(file: Path, campaign: str) -> Path:
    """Return where the public keys lie beside a campaign file that is not published yet."""
    return file.with_name(f"{campaign}.{PASSES_FILE}")


def read_pass_keys(path: Path) -> PassKeys:
    """Read a file of public keys; UsageError: it is missing or invalid."""
    return parse_model(PassKeys, read_file(path, "file of pass keys", KEYS_FILE_BYTES), f"file of pass keys {path}")
