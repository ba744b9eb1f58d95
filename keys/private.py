"""Private keys in memory: one opens, one signs, and both refuse to be copied into anything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import numpy.typing as npt
from nacl.bindings import (
    crypto_box_keypair,
    crypto_box_seal_open,
    crypto_scalarmult_base,
    crypto_sign,
    crypto_sign_BYTES,
    crypto_sign_seed_keypair,
)
from nacl.exceptions import CryptoError
from nacl.utils import random

from hushcount.arrays import Octets
from hushcount.campaigns.public_keys import key_id, verify_key_id
from hushcount.campaigns.signatures import Purpose, Signature, signed_bytes
from hushcount.threads import in_chunks
from hushcount.wire.boxes import open_rows

_REFUSAL = "a private key must not be pickled or copied: pass its reference and open it where it is used"


class Guarded:
    """What every private key refuses. Its text is its id; it lets itself be used, and gets into nothing else.

    Attributes:
        id: of its public key.
        public_key: 32 bytes.
    """

    __slots__ = ("id", "public_key")

    id: str
    public_key: bytes

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return repr(self)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(_REFUSAL)

    def __getstate__(self) -> NoReturn:
        raise TypeError(_REFUSAL)


class PrivateKey(Guarded):
    """An X25519 private key. It is never formatted, pickled, compared or copied; it only opens.

    Args:
        secret: 32 bytes.

    Raises:
        ValueError: of another length; the bytes are not named.
    """

    __slots__ = ("__secret",)

    def __init__(self, secret: bytes) -> None:
        _require_secret(secret)
        self.__secret = secret
        self.public_key = crypto_scalarmult_base(secret)
        self.id = key_id(self.public_key)

    @classmethod
    def generate(cls) -> PrivateKey:
        """Make a new key from libsodium's generator."""
        return cls(crypto_box_keypair()[1])

    def secret_for_storage(self) -> bytes:
        """Return the 32 secret bytes. For `keys.records` alone."""
        return self.__secret

    def open(self, sealed: bytes) -> bytes | None:
        """Return what a sealed box holds, or None when it is not one for this key: one failure, never which step."""
        try:
            plain: bytes = crypto_box_seal_open(sealed, self.public_key, self.__secret)
        except (CryptoError, ValueError, TypeError):
            return None
        return plain

    def open_rows(self, sealed: Octets) -> Opened:
        """Open every row of uint8[n, L + SEAL_BYTES]."""
        return Opened(*open_rows(sealed, self.public_key, self.__secret))


@dataclass(frozen=True, eq=False)
class Opened:
    """What opening many boxes gave.

    Attributes:
        plain: uint8[n, L]; zero where opening failed.
        opened: bool[n].
    """

    plain: Octets
    opened: npt.NDArray[np.bool_]


def open_many(keys: tuple[PrivateKey, ...], sealed: Octets, threads: int = 1) -> Opened:
    """Open every row of uint8[n, L + SEAL_BYTES] with the first key that fits, on so many threads."""

    def chunk(rows: Octets) -> Opened:
        found = keys[0].open_rows(rows)
        for key in keys[1:]:
            rest = np.flatnonzero(~found.opened)
            more = key.open_rows(rows[rest])
            found.plain[rest], found.opened[rest] = more.plain, more.opened
        return found

    parts = in_chunks(chunk, sealed, threads)
    return Opened(np.concatenate([part.plain for part in parts]), np.concatenate([part.opened for part in parts]))


class SigningKey(Guarded):
    """An Ed25519 private key. It is never formatted, pickled, compared or copied; it only signs.

    Args:
        secret: its seed, 32 bytes.

    Raises:
        ValueError: of another length; the bytes are not named.
    """

    __slots__ = ("__secret",)

    def __init__(self, secret: bytes) -> None:
        _require_secret(secret)
        self.__secret = secret
        self.public_key = crypto_sign_seed_keypair(secret)[0]
        self.id = verify_key_id(self.public_key)

    @classmethod
    def generate(cls) -> SigningKey:
        """Make a new key from libsodium's generator."""
        return cls(random(32))

    def secret_for_storage(self) -> bytes:
        """Return the 32 secret bytes. For `keys.records` alone."""
        return self.__secret

    def sign(self, payload: bytes, purpose: Purpose) -> Signature:
        """Sign these bytes for this purpose; the same bytes have one signature, with no random part.

        Raises:
            ValueError: there is no such purpose.
        """
        _, private = crypto_sign_seed_keypair(self.__secret)
        signed = crypto_sign(signed_bytes(payload, purpose), private)
        return Signature(key_id=self.id, signature=signed[:crypto_sign_BYTES].hex())


def _require_secret(secret: bytes) -> None:
    if len(secret) != 32:
        raise ValueError(f"secret has {len(secret)} bytes, must have 32")
