"""The part of a campaign file about discovery."""

from __future__ import annotations

import hashlib

from pydantic import Field, model_validator

from hushcount.discovery.keep_rules import Relation, RuleName
from hushcount.discovery.pairs import MAX_VALUE_BYTES
from hushcount.formats.models import Hex32, Part
from hushcount.maths.probability import LARGEST_EPSILON, LEAST_EPSILON


class DiscoveryPart(Part):
    """Collection of values that no list holds."""

    epsilon: float = Field(ge=LEAST_EPSILON, le=LARGEST_EPSILON)
    delta: float = Field(gt=0.0, lt=1.0)
    relation: Relation = "replace-one"
    rule: RuleName = "optimal"
    max_value_bytes: int = Field(default=64, ge=1, le=MAX_VALUE_BYTES, description="longest value, in UTF-8 bytes")
    hash_key: Hex32 | None = Field(
        default=None, description="key of the hash that bins are counted by, drawn anew for each campaign"
    )
    hash_key_commitment: Hex32 | None = Field(
        default=None, description="BLAKE2b-256 of hash_key, in its place for parties that must not test values"
    )

    @model_validator(mode="after")
    def _check(self) -> DiscoveryPart:
        if (self.hash_key is None) == (self.hash_key_commitment is None):
            raise ValueError("hash_key, hash_key_commitment: exactly one of them must be given")
        return self

    @property
    def commitment(self) -> str:
        """A hash that binds a campaign to its hash key, 256 random bits that nobody can guess from it."""
        if self.hash_key is None:
            return self.hash_key_commitment or ""
        return hashlib.blake2b(bytes.fromhex(self.hash_key), digest_size=32, person=b"hash key").hexdigest()
