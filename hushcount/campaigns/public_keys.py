"""Public keys: for sealing reports to a role, for an evaluator's proofs, and for verifying signatures."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Annotated, ClassVar, TypeVar

from pydantic import Field, model_validator

from hushcount.clock import MACHINE
from hushcount.errors import UsageError
from hushcount.formats.models import Hex32, Part, text_of

KeyId = Annotated[str, text_of(r"^[0-9a-f]{16}$", "must be 16 hexadecimal digits, in lower case")]
"""16 hexadecimal digits that name a public key."""


_SIGNING = b"verify key"
_EVALUATING = b"evaluator key"


class _KeyPart(Part):
    _person: ClassVar[bytes]
    id: KeyId
    key: Hex32
    not_before: datetime
    not_after: datetime

    @model_validator(mode="after")
    def _check(self) -> _KeyPart:
        if self.not_before.tzinfo is None or self.not_after.tzinfo is None:
            raise ValueError("not_before and not_after must name a time zone, as in 2026-01-01T00:00:00Z")
        if self.not_before >= self.not_after:
            raise ValueError(f"not_after is {self.not_after.isoformat()}, must be later than not_before")
        named = _id_of(bytes.fromhex(self.key), self._person)
        if self.id != named:
            raise ValueError(f"id is {self.id}, but the key has id {named}")
        return self


class PublicKeyPart(_KeyPart):
    """A party's public key and when clients may seal to it."""

    _person: ClassVar[bytes] = b""


class VerifyKeyPart(_KeyPart):
    """A public key that verifies signatures (Ed25519), and its time of validity. No PublicKeyPart has the same id."""

    _person: ClassVar[bytes] = _SIGNING


class EvaluatorKeyPart(_KeyPart):
    """The evaluator's public key (ristretto255), and when clients may ask. No PublicKeyPart has the same id."""

    _person: ClassVar[bytes] = _EVALUATING


class KeysPart(Part):
    """Public keys by role; clients take the newest that is valid."""

    analyzer: tuple[PublicKeyPart, ...] = Field(min_length=1)
    aux_server: tuple[PublicKeyPart, ...] = ()
    evaluator: tuple[EvaluatorKeyPart, ...] = Field(
        default=(), description="with discovery.hash oblivious: exactly one key, for this epoch only"
    )


def key_id(public_key: bytes) -> str:
    """Return the id of a public key for sealing: 16 hexadecimal digits of its BLAKE2b hash."""
    return _id_of(public_key, b"")


def verify_key_id(public_key: bytes) -> str:
    """Return the id of a public key for verifying, which no public key for sealing has."""
    return _id_of(public_key, _SIGNING)


def evaluator_key_id(public_key: bytes) -> str:
    """Return the id of an evaluator's public key, which no other key has."""
    return _id_of(public_key, _EVALUATING)


def _id_of(public_key: bytes, person: bytes) -> str:
    return hashlib.blake2b(public_key, digest_size=8, person=person).hexdigest()


AnyKeyPart = TypeVar("AnyKeyPart", PublicKeyPart, EvaluatorKeyPart)


class NoValidKey(UsageError):
    """No key of the campaign file is valid now."""


def valid_key(keys: tuple[AnyKeyPart, ...], at: datetime | None = None) -> AnyKeyPart:
    """Return the key that clients use now: the newest of the valid keys; NoValidKey if there is none."""
    now = at or MACHINE.now()
    valid = [key for key in keys if key.not_before <= now < key.not_after]
    if not valid:
        spans = ", ".join(f"{key.id} {key.not_before.isoformat()}..{key.not_after.isoformat()}" for key in keys)
        raise NoValidKey(f"no key of the campaign is valid at {now.isoformat()} ({spans}): fetch the newest campaign")
    return max(valid, key=lambda key: key.not_before)
