"""The issuer's private keys: blind RSA signatures in constant time, and the files that hold them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from cryptography.hazmat.primitives.asymmetric import rsa

from hushcount.errors import FormatError, UsageError
from hushcount.formats.client_files import read_private, write_private
from hushcount.formats.reading import parse_model
from hushcount.passes.blind_signatures import EXPONENT, KEY_BYTES
from hushcount.passes.pass_keys import KEYS_FILE_BYTES, PassKeys
from hushcount.passes.tokens import key_id_of
from keys.private import Guarded
from keys.undumped import keep_out_of_dumps

_PRIVATE = ".private.json"
_PRIME_BYTES = KEY_BYTES // 2
Track = Callable[[Iterable[bytes], int], Iterable[bytes]]
"""Returns the same keys, and may show progress on the way to their number."""


class IssuingKey(Guarded):
    """An RSA key of 2,048 bits, made from its two primes, which signs blinded messages.

    Signing takes a time that does not depend on the key: `powmod_sec` is constant in time, and each message is blinded
    once more before anything else is done with it. The signature is checked before it leaves, because one wrong half
    would reveal the primes. Opening a key, once a day, is not constant in time, and nobody chooses its input.
    """

    __slots__ = ("__half", "token_key_id")

    _LENGTH = KEY_BYTES

    def __init__(self, secret: bytes) -> None:
        super().__init__(secret)
        gmpy2 = arithmetic()
        p, q = (gmpy2.mpz.from_bytes(half, "big") for half in (secret[:_PRIME_BYTES], secret[_PRIME_BYTES:]))
        modulus = p * q
        self.__half = (
            (p, gmpy2.invert(EXPONENT, p - 1)),
            (q, gmpy2.invert(EXPONENT, q - 1)),
            gmpy2.invert(q, p),
            modulus,
        )
        self.public_key = int(modulus).to_bytes(KEY_BYTES, "big")
        self.token_key_id = key_id_of(self.public_key)
        self.id = self.token_key_id.hex()[:16]

    def takes(self, blinded: bytes) -> bool:
        """Return whether bytes are a blinded message for this key: 256 bytes, below the modulus."""
        return len(blinded) == KEY_BYTES and blinded < self.public_key

    def sign(self, blinded: bytes) -> bytes:
        """Return the blind signature of a message that the key takes (RFC 9474, section 4.3).

        Randomness: a second blinding, by the operating system's cryptographic generator.
        """
        gmpy2 = arithmetic()
        (p, d_p), (q, d_q), inverse, modulus = self.__half
        message = gmpy2.mpz.from_bytes(blinded, "big")
        factor = gmpy2.mpz.from_bytes(secrets.token_bytes(KEY_BYTES + 16), "big") % modulus
        hidden = message * gmpy2.powmod(factor, EXPONENT, modulus) % modulus
        # Other threads run during the two powers, which take nearly all of the time.
        with gmpy2.context(allow_release_gil=True):
            of_p, of_q = gmpy2.powmod_sec(hidden % p, d_p, p), gmpy2.powmod_sec(hidden % q, d_q, q)
        signed = (of_q + (of_p - of_q) * inverse % p * q) * gmpy2.invert(factor, modulus) % modulus
        if gmpy2.powmod(signed, EXPONENT, modulus) != message:
            raise ArithmeticError("a signature was wrong, so it was not given out")
        return int(signed).to_bytes(KEY_BYTES, "big")


class PrivatePassKeys(PassKeys):
    """The content of a private file: two primes in place of each modulus; it prints as its campaign's id."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.campaign}>"

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return repr(self)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("private pass keys must not be pickled or copied")


def private_files(directory: Path) -> Iterator[tuple[str, Path]]:
    """Yield each campaign's id, and the file of its private keys."""
    for path in sorted(directory.glob(f"*{_PRIVATE}")):
        yield path.name.removesuffix(_PRIVATE), path


def private_file(directory: Path, campaign: str) -> Path:
    """Return where the private keys of a campaign's passes lie."""
    return directory / f"{campaign}{_PRIVATE}"


def read_private_keys(path: Path) -> PrivatePassKeys:
    """Return the content of a private file; UsageError, which shows none of it: it is missing, invalid or open."""
    data = read_private(path, "private pass keys", KEYS_FILE_BYTES)
    if data is None:
        raise UsageError(f"private pass keys file {path} is missing: make it with hushcount keys passes")
    try:
        return parse_model(PrivatePassKeys, data, "file")
    except FormatError:
        raise FormatError(f"private pass keys file {path} is damaged: restore it from a backup") from None


def write_private_keys(path: Path, private: PrivatePassKeys) -> None:
    """Replace a private file, mode 0600."""
    write_private(path, "private pass keys", private.model_dump_json())


def public_keys(private: PrivatePassKeys) -> PassKeys:
    """Return the public keys of a private file's content."""
    days = tuple(tuple(_modulus(primes) for primes in day) for day in private.days)
    return PassKeys(**private.model_dump(exclude={"days"}), days=days)


def drawn_keys(number: int, track: Track) -> list[str]:
    """Return the primes of new keys, in hexadecimal digits.

    Randomness: OpenSSL's generator, in as many processes as the machine has cores.
    """
    keep_out_of_dumps()
    with ProcessPoolExecutor(max_workers=os.cpu_count(), initializer=keep_out_of_dumps) as pool:
        return [primes.hex() for primes in track(pool.map(_drawn, range(number)), number)]


def _drawn(_: int) -> bytes:
    while True:
        numbers = rsa.generate_private_key(EXPONENT, 8 * KEY_BYTES).private_numbers()
        if max(numbers.p, numbers.q).bit_length() == 8 * _PRIME_BYTES:
            return numbers.p.to_bytes(_PRIME_BYTES, "big") + numbers.q.to_bytes(_PRIME_BYTES, "big")


def _modulus(primes: str) -> str:
    half = len(primes) // 2
    return f"{int(primes[:half], 16) * int(primes[half:], 16):0512x}"


def arithmetic() -> ModuleType:
    """Return gmpy2; UsageError if it is not installed: Python's own powers are not constant in time."""
    try:
        import gmpy2
    except ImportError:
        raise UsageError("an issuer needs gmpy2, which is missing: pip install 'hushcount-server[issuer]'") from None
    return gmpy2
