"""Private keys in memory: PrivateKey opens reports, and SigningKey signs. No key object can be pickled or copied."""

from __future__ import annotations

import hashlib
from typing import ClassVar, NoReturn, TypeVar

import numpy as np
from nacl.bindings import (
    crypto_scalarmult_base,
    crypto_sign,
    crypto_sign_BYTES,
    crypto_sign_seed_keypair,
)
from nacl.utils import random

from hushcount.arrays import Octets
from hushcount.campaigns.public_keys import key_id, verify_key_id
from hushcount.campaigns.signatures import Purpose, Signature, signed_bytes
from keys.opening_engines import LIBSODIUM, Opened, OpeningEngine
from keys.undumped import keep_out_of_dumps

SECRET_BYTES = 32
_REFUSAL = "a private key must not be pickled or copied: pass its reference and open it where it is used"
_Key = TypeVar("_Key", bound="Guarded")


class Guarded:
    """A private key of any kind; it prints as its id, and cannot be pickled, copied, compared or formatted.

    A process that holds a private key makes no core dump. The bytes of the secret are never overwritten in memory,
    because the cryptographic packages take only `bytes`, which Python cannot change.

    Attributes:
        id: id of its public key.
        public_key: the bytes of its public key.

    Raises:
        ValueError: the secret does not have as many bytes as its kind has; the error does not show the secret.
    """

    __slots__ = ("__secret", "id", "public_key")

    _LENGTH: ClassVar[int] = SECRET_BYTES
    id: str
    public_key: bytes

    def __init__(self, secret: bytes) -> None:
        if len(secret) != self._LENGTH:
            raise ValueError(f"secret has {len(secret)} bytes, must have {self._LENGTH}")
        keep_out_of_dumps()
        self.__secret = secret

    @classmethod
    def generate(cls: type[_Key]) -> _Key:
        """Make a new key with libsodium's random number generator."""
        return cls(random(cls._LENGTH))

    def secret_for_storage(self) -> bytes:
        """Return the bytes of the secret, for key files and for the search for leaked keys."""
        return self.__secret

    def derived(self, context: bytes) -> bytes:
        """Return 32 bytes derived from the key and a context; to anyone without the key they look random."""
        secret = self.secret_for_storage()
        return hashlib.blake2b(context, key=secret, digest_size=SECRET_BYTES, person=b"hushcount draw").digest()

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
    """An X25519 private key, which opens reports and does not sign."""

    __slots__ = ()

    def __init__(self, secret: bytes) -> None:
        super().__init__(secret)
        self.public_key = crypto_scalarmult_base(secret)
        self.id = key_id(self.public_key)

    def open(self, sealed: bytes) -> bytes | None:
        """Return the content of a sealed box; None if it does not open, so that no caller learns which step failed."""
        plain, opened, _ = self.open_rows(np.frombuffer(sealed, dtype=np.uint8)[np.newaxis])
        return plain.tobytes() if opened[0] else None

    def open_rows(self, sealed: Octets, engine: OpeningEngine = LIBSODIUM) -> Opened:
        """Open every row of uint8[n, L + SEAL_BYTES]."""
        return engine.open_rows(sealed, self.public_key, self.secret_for_storage())


class SigningKey(Guarded):
    """An Ed25519 private key, made from its seed, which signs and does not open reports."""

    __slots__ = ()

    def __init__(self, secret: bytes) -> None:
        super().__init__(secret)
        self.public_key = crypto_sign_seed_keypair(secret)[0]
        self.id = verify_key_id(self.public_key)

    def sign(self, payload: bytes, purpose: Purpose) -> Signature:
        """Sign bytes for a purpose. Signing is not random: the same bytes always get the same signature.

        Raises:
            ValueError: there is no purpose with this name.
        """
        _, private = crypto_sign_seed_keypair(self.secret_for_storage())
        signed = crypto_sign(signed_bytes(payload, purpose), private)
        return Signature(key_id=self.id, signature=signed[:crypto_sign_BYTES].hex())
