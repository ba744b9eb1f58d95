"""Sealed boxes. Opening a box needs a private key; private keys are in the package `keys`.

For arrays, libsodium's own functions read and write rows in place and free the GIL (docs/adr/0012).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from nacl._sodium import ffi, lib
from nacl.bindings import (
    crypto_box_NONCEBYTES,
    crypto_box_PUBLICKEYBYTES,
    crypto_box_seal,
    crypto_box_SEALBYTES,
    crypto_box_SECRETKEYBYTES,
)

from hushcount.arrays import Octets
from hushcount.randomness import Words, drawn_secrets
from hushcount.threads import at_once, spans

SealRows = Callable[[Octets, bytes, Octets], Octets]
"""A function that seals rows as `seal_rows` does, byte for byte; another implementation may be faster."""


def seal_rows(plain: Octets, public_key: bytes, secrets: Octets) -> Octets:
    """Return uint8[n, L + 48]: every row of uint8[n, L] in a sealed box, with its row of `secrets` as ephemeral secret.

    Args:
        public_key: the recipient's.
        secrets: uint8[n, 32], fresh, and for this call alone; the caller wipes them.

    Raises:
        ValueError: the public key does not have 32 bytes, or has small order; or `secrets` has another shape.

    Reference: crypto_box_seal of libsodium, which draws the secrets itself.
    """
    if len(public_key) != crypto_box_PUBLICKEYBYTES:
        # libsodium does not check the length.
        raise ValueError(f"public_key has {len(public_key)} bytes, must have {crypto_box_PUBLICKEYBYTES}")
    count, length = plain.shape
    if secrets.shape != (count, crypto_box_SECRETKEYBYTES):
        raise ValueError(f"secrets are {secrets.shape}, must be {(count, crypto_box_SECRETKEYBYTES)}")
    size = length + crypto_box_SEALBYTES
    sealed = np.empty((count, size), dtype=np.uint8)
    source, target, keys = _pointer(np.ascontiguousarray(plain)), _pointer(sealed), _pointer(secrets)
    for row in range(count):
        box, secret = target + row * size, keys + row * crypto_box_SECRETKEYBYTES
        lib.crypto_scalarmult_base(box, secret)
        both = sealed[row, :crypto_box_PUBLICKEYBYTES].tobytes() + public_key
        nonce = hashlib.blake2b(both, digest_size=crypto_box_NONCEBYTES).digest()
        inside = box + crypto_box_PUBLICKEYBYTES
        if lib.crypto_box_easy(inside, source + row * length, length, nonce, public_key, secret):
            raise ValueError("public_key is not a valid X25519 public key")
    return sealed


def _pointer(rows: Octets) -> Any:
    """Return a pointer to contiguous rows, which keeps the array alive."""
    return ffi.from_buffer("unsigned char[]", rows)


__all__ = ["SEAL_BYTES", "Octets", "SealRows", "Sealer", "after", "seal_rows"]
SEAL_BYTES: int = crypto_box_SEALBYTES
"""How many bytes a sealed box is longer than its content: 48."""


def after(head: bytes, rows: Octets) -> Octets:
    """Return uint8[n, L]: each row after the same head."""
    heads = np.broadcast_to(np.frombuffer(head, dtype=np.uint8), (len(rows), len(head)))
    return np.concatenate([heads, rows], axis=1)


@dataclass(frozen=True)
class Sealer:
    """Seals to one recipient: X25519, XSalsa20-Poly1305, a fresh ephemeral key each time (libsodium sealed box).

    Not promised: who sealed a box (anyone can seal), or that the recipient sees a box only once (a copy opens too).

    Args:
        public_key: the recipient's, 32 bytes.
        seal_rows: by default libsodium's.
    """

    public_key: bytes
    seal_rows: SealRows = seal_rows

    def __post_init__(self) -> None:
        if len(self.public_key) != 32:
            raise ValueError(f"public_key has {len(self.public_key)} bytes, must have 32")

    def seal(self, plain: bytes) -> bytes:
        """Return a sealed box, SEAL_BYTES longer than `plain`."""
        sealed: bytes = crypto_box_seal(plain, self.public_key)
        return sealed

    def seal_many(self, plain: Octets, threads: int = 1) -> Octets:
        """Seal every row of uint8[n, L]: uint8[n, L + SEAL_BYTES]."""
        return self._seal(plain, drawn_secrets(len(plain), crypto_box_SECRETKEYBYTES), threads)

    def seal_drawn(self, plain: Octets, words: Words, threads: int = 1) -> Octets:
        """Seal every row of uint8[n, L] with ephemeral keys from `words`: whoever knows the words opens the boxes."""
        drawn = words.words(len(plain) * crypto_box_SECRETKEYBYTES // 8).astype("<u8", copy=False)
        return self._seal(plain, drawn.view(np.uint8).reshape(len(plain), crypto_box_SECRETKEYBYTES), threads)

    def seal_alike(self, plain: bytes, key: bytes) -> bytes:
        """Return the sealed box that all holders of this 32-byte key make of these bytes; it opens like any other box.

        This method is for boxes that must not reveal who made them. Equal boxes show that equal bytes were sealed, and
        whoever has the key can test a guess. The ephemeral key is a keyed hash of recipient and bytes, so it differs
        for other recipients and for other bytes.
        """
        return self.seal_many_alike(np.frombuffer(plain, dtype=np.uint8)[np.newaxis], [key]).tobytes()

    def seal_many_alike(self, plain: Octets, keys: Sequence[bytes], threads: int = 1) -> Octets:
        """Seal every row of uint8[n, L] as `seal_alike` does, under its own key: uint8[n, L + SEAL_BYTES]."""
        seeds = (
            hashlib.blake2b(self.public_key + row.tobytes(), digest_size=32, key=key, person=b"seal alike").digest()
            for row, key in zip(plain, keys, strict=True)
        )
        # As crypto_box_seed_keypair does. Only the array is wiped: seeds and digests remain in memory, like the key.
        secrets = b"".join(hashlib.sha512(seed).digest()[:crypto_box_SECRETKEYBYTES] for seed in seeds)
        rows = np.frombuffer(bytearray(secrets), dtype=np.uint8).reshape(-1, crypto_box_SECRETKEYBYTES)
        return self._seal(plain, rows, threads)

    def _seal(self, plain: Octets, secrets: Octets, threads: int) -> Octets:
        def some(span: slice) -> Octets:
            return self.seal_rows(plain[span], self.public_key, secrets[span])

        try:
            return np.concatenate(at_once(some, spans(len(plain), threads) or [slice(0)], threads))
        finally:
            secrets[:] = 0
