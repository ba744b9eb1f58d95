"""Check an evaluator's proof from public values alone, before the library checks it again (docs/adr/0042).

On a wrong proof of several answers voprf 0.2 panics, and Rust writes the panic to the standard error of the process.
The library still checks each proof that passes here, so security does not depend on this arithmetic.

Privacy: all inputs are known to the evaluator, so the code need not run in constant time.

Reference: RFC 9497, 2.2.2 VerifyProof, suite ristretto255-SHA512; RFC 9496, 4.3; RFC 9380, 5.3.1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)
_CONTEXT = b"OPRFV1-\x01-ristretto255-SHA512"
_SCALAR_BYTES = 32
_WINDOW = 4

Point = tuple[int, int, int, int]
"""A point of the curve -x^2 + y^2 = 1 + d x^2 y^2: X, Y, Z, T with x = X/Z, y = Y/Z, xy = T/Z."""
_IDENTITY: Point = (0, 1, 1, 0)


def holds(public_key: bytes, blinded: Sequence[bytes], evaluated: Sequence[bytes], proof: bytes) -> bool:
    """Return whether this proof of 64 bytes shows that the key of this public key evaluated each element."""
    c, s = int.from_bytes(proof[:_SCALAR_BYTES], "little"), int.from_bytes(proof[_SCALAR_BYTES:], "little")
    if max(c, s) >= _ORDER:
        return False
    try:
        asked, answered = [_decode(one) for one in blinded], [_decode(one) for one in evaluated]
        key = _decode(public_key)
    except ValueError:
        return False
    seed = _sized(hashlib.sha512(_sized(public_key) + _sized(b"Seed-" + _CONTEXT)).digest())
    weights = [
        _scalar(seed + index.to_bytes(2, "big") + _sized(one) + _sized(other) + b"Composite")
        for index, (one, other) in enumerate(zip(blinded, evaluated, strict=True))
    ]
    m, z = _sum(asked, weights), _sum(answered, weights)
    points = (m, z, _sum([_BASE, key], [s, c]), _sum([m, z], [s, c]))
    return c == _scalar(_sized(public_key) + b"".join(_sized(_encode(point)) for point in points) + b"Challenge")


def _sized(octets: bytes) -> bytes:
    return len(octets).to_bytes(2, "big") + octets


def _scalar(message: bytes) -> int:
    """Return the HashToScalar of RFC 9497 for the message."""
    tag = b"HashToScalar-" + _CONTEXT
    tag += len(tag).to_bytes(1, "big")
    first = hashlib.sha512(bytes(128) + message + b"\0\x40\0" + tag).digest()
    return int.from_bytes(hashlib.sha512(first + b"\1" + tag).digest(), "little") % _ORDER


def _sum(points: Sequence[Point], scalars: Sequence[int]) -> Point:
    """Return the sum of the products of points and scalars; each step handles four bits of every scalar."""
    total, tables = _IDENTITY, []
    for point in points:
        table = [_IDENTITY]
        for _ in range(2**_WINDOW - 1):
            table.append(_added(table[-1], point))
        tables.append(table)
    for shift in range(256 - _WINDOW, -1, -_WINDOW):
        for _ in range(_WINDOW):
            total = _added(total, total)
        for table, scalar in zip(tables, scalars, strict=True):
            if digit := scalar >> shift & 2**_WINDOW - 1:
                total = _added(total, table[digit])
    return total


def _added(one: Point, other: Point) -> Point:
    x1, y1, z1, t1 = one
    x2, y2, z2, t2 = other
    a, b = (y1 - x1) * (y2 - x2) % _P, (y1 + x1) * (y2 + x2) % _P
    c, d = 2 * _D * t1 * t2 % _P, 2 * z1 * z2 % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _even(value: int) -> int:
    value %= _P
    return _P - value if value & 1 else value


def _inverse_root(v: int) -> tuple[bool, int]:
    """Return SQRT_RATIO_M1(1, v): whether v is a square, and the even root of 1/v, or of sqrt(-1)/v if it is not."""
    root = v**3 * pow(v**7 % _P, (_P - 5) // 8, _P) % _P
    check = v * root * root % _P
    flipped = check == _P - 1
    if flipped or check == -_ROOT % _P:
        root = root * _ROOT % _P
    return check == 1 or flipped, _even(root)


def _decode(octets: bytes) -> Point:
    """Return the element; ValueError if these bytes encode no element, or the identity, which RFC 9497 refuses."""
    s = int.from_bytes(octets, "little")
    u1, u2 = (1 - s * s) % _P, (1 + s * s) % _P
    v = (-_D * u1 * u1 - u2 * u2) % _P
    square, inverse = _inverse_root(v * u2 * u2 % _P)
    x, y = _even(2 * s * inverse * u2), u1 * inverse * inverse * u2 * v % _P
    t = x * y % _P
    if len(octets) != 32 or s >= _P or s & 1 or not (square and s and y) or t & 1:
        raise ValueError("not an encoded element of ristretto255")
    return x, y, 1, t


def _encode(point: Point) -> bytes:
    x, y, z, t = point
    u1, u2 = (z + y) * (z - y) % _P, x * y % _P
    _, inverse = _inverse_root(u1 * u2 * u2 % _P)
    one, two = inverse * u1 % _P, inverse * u2 % _P
    z_inverse = one * two * t % _P
    if t * z_inverse % _P & 1:
        x, y, two = y * _ROOT, x * _ROOT, one * _inverse_root(-1 - _D)[1]
    if x * z_inverse % _P & 1:
        y = -y
    return _even(two * (z - y)).to_bytes(32, "little")


_BASE = _decode(bytes.fromhex("e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76"))
