"""A private key in memory: it opens, and refuses to be copied into anything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NoReturn

import numpy as np
import numpy.typing as npt
from nacl.bindings import crypto_box_keypair, crypto_box_seal_open, crypto_scalarmult_base
from nacl.exceptions import CryptoError

from hushcount.public_keys import key_id
from hushcount.sodium import Octets, open_rows
from hushcount.threads import in_chunks

Role = Literal["analyzer", "aux_server"]
ROLES: tuple[Role, ...] = ("analyzer", "aux_server")


class PrivateKey:
    """An X25519 private key. It is never formatted, pickled, compared or copied; it only opens.

    Args:
        secret: 32 bytes.

    Raises:
        ValueError: of another length; the bytes are not named.
    """

    __slots__ = ("__secret", "id", "public_key")

    def __init__(self, secret: bytes) -> None:
        if len(secret) != 32:
            raise ValueError(f"secret has {len(secret)} bytes, must have 32")
        self.__secret = secret
        self.public_key: bytes = crypto_scalarmult_base(secret)
        self.id = key_id(self.public_key)

    @classmethod
    def generate(cls) -> PrivateKey:
        """Make a new key from libsodium's generator."""
        return cls(crypto_box_keypair()[1])

    def __repr__(self) -> str:
        return f"<PrivateKey {self.id}>"

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return repr(self)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a private key must not be pickled or copied: pass its reference and open it where it is used")

    def __getstate__(self) -> NoReturn:
        raise TypeError("a private key must not be pickled or copied: pass its reference and open it where it is used")

    def secret_for_storage(self) -> bytes:
        """Return the 32 secret bytes. For `keys.store` alone."""
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
