"""Sealed boxes. Whoever opens one needs a private key, which lives in `keys`.

For arrays, libsodium's own functions read and write rows in place and free the GIL: PyNaCl's bindings check and copy
every box in Python, for 2.8 of the 34 microseconds that opening one takes (docs/adr/0012).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from nacl._sodium import ffi, lib
from nacl.bindings import (
    crypto_box,
    crypto_box_NONCEBYTES,
    crypto_box_PUBLICKEYBYTES,
    crypto_box_seal,
    crypto_box_SEALBYTES,
    crypto_box_SECRETKEYBYTES,
    crypto_box_seed_keypair,
)

from hushcount.arrays import BoolArray, Octets
from hushcount.threads import in_chunks


def seal_rows(plain: Octets, public_key: bytes) -> Octets:
    """Return uint8[n, L + 48]: every row of uint8[n, L] in a sealed box of its own."""
    _require(public_key, crypto_box_PUBLICKEYBYTES)
    count, length = plain.shape
    size = length + crypto_box_SEALBYTES
    sealed = np.empty((count, size), dtype=np.uint8)
    source, target, seal = _pointer(np.ascontiguousarray(plain)), _pointer(sealed), lib.crypto_box_seal
    for row in range(count):
        if seal(target + row * size, source + row * length, length, public_key):
            raise ValueError("public_key is not a valid X25519 public key")
    return sealed


def open_rows(sealed: Octets, public_key: bytes, secret: bytes) -> tuple[Octets, BoolArray]:
    """Open every row of uint8[n, L + 48]: uint8[n, L], zeros for a failure, and bool[n], which rows opened."""
    _require(public_key, crypto_box_PUBLICKEYBYTES)
    _require(secret, crypto_box_SECRETKEYBYTES)
    count, size = sealed.shape
    length = size - crypto_box_SEALBYTES
    plain, opened = np.zeros((count, max(0, length)), dtype=np.uint8), np.zeros(count, dtype=np.bool_)
    if length < 0:
        return plain, opened
    source, target, open_box = _pointer(np.ascontiguousarray(sealed)), _pointer(plain), lib.crypto_box_seal_open
    for row in range(count):
        opened[row] = open_box(target + row * length, source + row * size, size, public_key, secret) == 0
    # A failed opening may leave bytes behind.
    plain[~opened] = 0
    return plain, opened


def _pointer(rows: Octets) -> Any:
    """Return a pointer to contiguous rows, which keeps the array alive."""
    return ffi.from_buffer("unsigned char[]", rows)


def _require(key: bytes, length: int) -> None:
    # libsodium does not check the length. The error must not name the key.
    if len(key) != length:
        raise ValueError(f"key has {len(key)} bytes, must have {length}")


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
