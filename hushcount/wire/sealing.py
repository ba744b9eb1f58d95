"""Sealing, with a public key. Opening needs a private key and lives in `keys`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from nacl.bindings import (
    crypto_box,
    crypto_box_NONCEBYTES,
    crypto_box_seal,
    crypto_box_SEALBYTES,
    crypto_box_seed_keypair,
)

from hushcount.arrays import Octets
from hushcount.threads import in_chunks
from hushcount.wire.boxes import seal_rows

__all__ = ["SEAL_BYTES", "Octets", "Sealer"]
SEAL_BYTES: int = crypto_box_SEALBYTES
"""How much longer a sealed box is than what it holds: 48."""


@dataclass(frozen=True)
class Sealer:
    """Seals to one recipient: X25519, XSalsa20-Poly1305, a fresh ephemeral key each time (libsodium sealed box).

    Not promised: who sealed it (anyone can), nor that the recipient sees it once (a copy opens as well).
    """

    public_key: bytes

    def __post_init__(self) -> None:
        if len(self.public_key) != 32:
            raise ValueError(f"public_key has {len(self.public_key)} bytes, must have 32")

    def seal(self, plain: bytes) -> bytes:
        """Return a sealed box, SEAL_BYTES longer than `plain`."""
        sealed: bytes = crypto_box_seal(plain, self.public_key)
        return sealed

    def seal_alike(self, plain: bytes, key: bytes) -> bytes:
        """Return the sealed box that all holders of this 32-byte key make of these bytes; it opens like any other.

        For boxes that must not tell who made them. Equal boxes show that equal bytes were sealed, and whoever has the
        key can test a guess. The ephemeral key is a keyed hash of recipient and bytes, so other bytes have another.
        """
        seed = hashlib.blake2b(self.public_key + plain, digest_size=32, key=key, person=b"seal alike").digest()
        public, secret = crypto_box_seed_keypair(seed)
        # The nonce that libsodium derives for a sealed box.
        nonce = hashlib.blake2b(public + self.public_key, digest_size=crypto_box_NONCEBYTES).digest()
        box: bytes = public + crypto_box(plain, nonce, self.public_key, secret)
        return box

    def seal_many(self, plain: Octets, threads: int = 1) -> Octets:
        """Seal every row of uint8[n, L]: uint8[n, L + SEAL_BYTES]."""
        return np.concatenate(in_chunks(lambda rows: seal_rows(rows, self.public_key), plain, threads))
