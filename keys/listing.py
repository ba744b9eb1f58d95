"""public.json: a key directory's public keys, of every role and every state (docs/adr/0017)."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from hushcount.campaigns.public_keys import KeyId, PublicKeyPart, VerifyKeyPart
from hushcount.errors import UsageError
from hushcount.formats.models import Hex32, Part
from hushcount.formats.reading import parse_model, read_file
from keys.roles import SIGNING_ROLES, Role

PUBLIC_FILE = "public.json"
State = Literal["pending", "active", "expiring", "retired"]


class ListedKey(Part):
    """One public key and its dates."""

    role: Role
    id: KeyId
    key: Hex32
    not_before: datetime
    not_after: datetime
    overlap_seconds: int = Field(
        default=0,
        ge=0,
        le=100 * 366 * 86400,
        description="for how long, from not_before on, the key before this one is still opened with",
    )
    retired_at: datetime | None = Field(default=None, description="when the private key was destroyed")

    @model_validator(mode="after")
    def _check(self) -> ListedKey:
        _ = self.part
        if self.retired_at is not None and self.retired_at.tzinfo is None:
            raise ValueError("retired_at must name a time zone, as in 2026-01-01T00:00:00Z")
        return self

    @property
    def part(self) -> PublicKeyPart | VerifyKeyPart:
        """The key as others are given it: without its history."""
        kind = VerifyKeyPart if self.role in SIGNING_ROLES else PublicKeyPart
        return kind(id=self.id, key=self.key, not_before=self.not_before, not_after=self.not_after)


class KeyListing(Part):
    """All keys that a directory has or had."""

    keys: tuple[ListedKey, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> KeyListing:
        ids = [key.id for key in self.keys]
        if len(set(ids)) < len(ids):
            raise ValueError("keys: an id is listed twice")
        for role in {key.role for key in self.keys}:
            begins = [key.not_before for key in self.of(role) if key.retired_at is None]
            if len(set(begins)) < len(begins):
                raise ValueError(f"keys: two of the role {role} begin at the same time")
        return self

    def of(self, role: Role) -> tuple[ListedKey, ...]:
        """Return a role's keys, the oldest first."""
        return tuple(sorted((key for key in self.keys if key.role == role), key=lambda key: key.not_before))

    def find(self, id: str) -> ListedKey | None:
        """Return the key of that id, or None."""
        return next((key for key in self.keys if key.id == id), None)

    def active(self, role: Role, at: datetime) -> ListedKey | None:
        """Return the newest of a role's valid keys, or None if none is valid at that time."""
        valid = [key for key in self.of(role) if key.retired_at is None and key.not_before <= at < key.not_after]
        return valid[-1] if valid else None

    def state(self, key: ListedKey, at: datetime) -> State:
        """Return what a key of this listing is for at that time; a retired one was always retired."""
        if key.retired_at is not None:
            return "retired"
        if at < key.not_before:
            return "pending"
        return "active" if self.active(key.role, at) == key else "expiring"

    def opened_until(self, key: ListedKey) -> datetime | None:
        """Return when the overlap with the next key ends, or None while there is no next one."""
        later = [other for other in self.of(key.role) if other.not_before > key.not_before and other.retired_at is None]
        return later[0].not_before + timedelta(seconds=later[0].overlap_seconds) if later else None

    def text(self) -> str:
        """Return what public.json holds."""
        return self.model_dump_json(indent=2, exclude_none=True) + "\n"

    def changed(self, key: ListedKey) -> KeyListing:
        """Return the listing with this key in the place of the one of its id."""
        return KeyListing(keys=tuple(key if other.id == key.id else other for other in self.keys))


def read_listing(directory: Path) -> KeyListing:
    """Read a directory's public.json.

    Raises:
        UsageError: missing or invalid.
    """
    path = directory / PUBLIC_FILE
    if not os.path.isfile(path):
        raise UsageError(
            f"key directory is {directory}, must be one that hushcount keys new made: it has no {PUBLIC_FILE}"
        )
    return parse_model(KeyListing, read_file(path, "key listing"), str(path))
