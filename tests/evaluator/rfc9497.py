"""A plain twin of the VOPRF, by RFC 9497, 9496 and 9380 in the letters of those texts: slow, and not in constant time.

It takes blinds and the proof's scalar from the caller, so that it can be held against the RFC's vectors, and the
library against it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)
CONTEXT = b"OPRFV1-" + b"\x01" + b"-ristretto255-SHA512"


@dataclass(frozen=True)
class Element:
    """A point of the curve in extended coordinates; equal elements have one encoding."""

    x: int
    y: int
    z: int
    t: int

    def __add__(self, other: Element) -> Element:
        a = (self.y - self.x) * (other.y - other.x) % P
        b = (self.y + self.x) * (other.y + other.x) % P
        c, d = 2 * D * self.t * other.t % P, 2 * self.z * other.z % P
        e, f, g, h = b - a, d - c, d + c, b + a
        return Element(e * f % P, g * h % P, f * g % P, e * h % P)

    def __mul__(self, scalar: int) -> Element:
        result, power = IDENTITY, self
        for bit in range(253):
            if scalar >> bit & 1:
                result += power
            power += power
        return result

    def encode(self) -> bytes:
        u1 = (self.z + self.y) * (self.z - self.y) % P
        u2 = self.x * self.y % P
        _, inverse = _root(1, u1 * u2 * u2 % P)
        one, two = inverse * u1 % P, inverse * u2 % P
        z = one * two * self.t % P
        x, y, denominator = self.x, self.y, two
        if self.t * z % P & 1:
            x, y, denominator = self.y * ROOT % P, self.x * ROOT % P, one * _root(1, -1 - D)[1] % P
        if x * z % P & 1:
            y = -y
        return _even(denominator * (self.z - y) % P).to_bytes(32, "little")


IDENTITY = Element(0, 1, 1, 0)


def _even(value: int) -> int:
    value %= P
    return P - value if value & 1 else value


def _root(u: int, v: int) -> tuple[bool, int]:
    """Return whether u/v is a square, and the even root of u/v, or of its product with the root of -1."""
    r = u * v**3 * pow(u * v**7, (P - 5) // 8, P) % P
    check = v * r * r % P
    right, flipped = check == u % P, check == -u % P
    if flipped or check == -u * ROOT % P:
        r = r * ROOT % P
    return right or flipped, _even(r)


def decode(octets: bytes) -> Element:
    """Return the element; ValueError if these bytes are none, or the identity, which RFC 9497 refuses."""
    s = int.from_bytes(octets, "little")
    if len(octets) != 32 or s >= P or s & 1:
        raise ValueError("no canonical encoding")
    u1, u2 = (1 - s * s) % P, (1 + s * s) % P
    v = (-D * u1 * u1 - u2 * u2) % P
    square, inverse = _root(1, v * u2 * u2 % P)
    x = _even(2 * s * inverse * u2)
    y = u1 * inverse * inverse * u2 * v % P
    if not square or x * y % P & 1 or y == 0:
        raise ValueError("no element")
    if s == 0:
        raise ValueError("the identity")
    return Element(x, y, 1, x * y % P)


BASE = decode(bytes.fromhex("e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76"))


def _map(octets: bytes) -> Element:
    t = int.from_bytes(octets, "little") % 2**255 % P
    r = ROOT * t * t % P
    u, v = (r + 1) * (1 - D * D) % P, (-1 - r * D) * (r + D) % P
    square, s = _root(u, v)
    c = -1 if square else r
    s = s if square else -_even(s * t)
    n = (c * (r - 1) * (D - 1) ** 2 - v) % P
    a, b = 2 * s * v % P, n * -_root(-D - 1, 1)[1] % P
    e, f = (1 - s * s) % P, (1 + s * s) % P
    return Element(a * f % P, e * b % P, b * f % P, a * e % P)


def expand(message: bytes, dst: bytes, length: int = 64) -> bytes:
    dst += len(dst).to_bytes(1, "big")
    first = hashlib.sha512(bytes(128) + message + length.to_bytes(2, "big") + b"\0" + dst).digest()
    return hashlib.sha512(first + b"\1" + dst).digest()[:length]


def hash_to_group(message: bytes) -> Element:
    wide = expand(message, b"HashToGroup-" + CONTEXT)
    return _map(wide[:32]) + _map(wide[32:])


def hash_to_scalar(message: bytes, prefix: bytes = b"HashToScalar-") -> int:
    return int.from_bytes(expand(message, prefix + CONTEXT), "little") % L


def _with_length(octets: bytes) -> bytes:
    return len(octets).to_bytes(2, "big") + octets


def derive_key(seed: bytes, info: bytes) -> int:
    for counter in range(256):
        key = hash_to_scalar(seed + _with_length(info) + bytes([counter]), b"DeriveKeyPair")
        if key:
            return key
    raise ValueError("no key")


def blind(value: bytes, scalar: int) -> bytes:
    return (hash_to_group(value) * scalar).encode()


def evaluate(key: int, blinded: Sequence[bytes], r: int) -> tuple[list[bytes], bytes]:
    """Return the evaluated elements and the proof, made with the scalar r."""
    evaluated = [(decode(one) * key).encode() for one in blinded]
    m, z = _composites((BASE * key).encode(), blinded, evaluated)
    t2, t3 = (BASE * r).encode(), (m * r).encode()
    c = _challenge((BASE * key).encode(), m, z, t2, t3)
    return evaluated, c.to_bytes(32, "little") + ((r - c * key) % L).to_bytes(32, "little")


def verify(public_key: bytes, blinded: Sequence[bytes], evaluated: Sequence[bytes], proof: bytes) -> bool:
    c, s = int.from_bytes(proof[:32], "little"), int.from_bytes(proof[32:], "little")
    m, z = _composites(public_key, blinded, evaluated)
    t2, t3 = (BASE * s + decode(public_key) * c).encode(), (m * s + z * c).encode()
    return len(proof) == 64 and max(c, s) < L and c == _challenge(public_key, m, z, t2, t3)


def finalize(value: bytes, scalar: int, evaluated: bytes) -> bytes:
    unblinded = (decode(evaluated) * pow(scalar, L - 2, L)).encode()
    return hashlib.sha512(_with_length(value) + _with_length(unblinded) + b"Finalize").digest()


def _composites(public_key: bytes, blinded: Sequence[bytes], evaluated: Sequence[bytes]) -> tuple[Element, Element]:
    seed = hashlib.sha512(_with_length(public_key) + _with_length(b"Seed-" + CONTEXT)).digest()
    m, z = IDENTITY, IDENTITY
    for index, (one, other) in enumerate(zip(blinded, evaluated, strict=True)):
        hashed = _with_length(seed) + index.to_bytes(2, "big") + _with_length(one) + _with_length(other)
        weight = hash_to_scalar(hashed + b"Composite")
        m, z = m + decode(one) * weight, z + decode(other) * weight
    return m, z


def _challenge(public_key: bytes, m: Element, z: Element, t2: bytes, t3: bytes) -> int:
    hashed = b"".join(_with_length(one) for one in (public_key, m.encode(), z.encode(), t2, t3))
    return hash_to_scalar(hashed + b"Challenge")
