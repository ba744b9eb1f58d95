"""Tests, before the first use of compiled lanes, that the lanes compute the same as RFC 7748 and libsodium."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from nacl.bindings import (
    crypto_box,
    crypto_box_keypair,
    crypto_box_NONCEBYTES,
    crypto_box_seal,
    crypto_scalarmult,
    crypto_scalarmult_base,
    crypto_secretbox,
    crypto_secretbox_NONCEBYTES,
)
from nacl.exceptions import CryptoError

from sealed_lanes.arrays import BoolArray, Octets
from sealed_lanes.boxes import KEY_BYTES
from sealed_lanes.emit import LANES
from sealed_lanes.field import P

# Scalar, point and product of RFC 7748, section 5.2.
_RFC_7748 = [
    tuple(map(bytes.fromhex, hexadecimals))
    for hexadecimals in (
        (
            "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
        ),
        (
            "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
            "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
        ),
    )
]
ORDER_8 = (
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)
"""The points of order 8: RFC 7748, section 7."""
_KEY_OF_ZERO = bytes.fromhex("351f86faa3b988468a850122b65b0acece9c4826806aeee63de9c0da2bd7f91e")
"""The box key for the product zero: HSalsa20 of zeros."""
_DRAWN, _PLAIN = 200, 230
_BOXES, _TIMES = 43, 8
"""The number of boxes is greater than a turn's number of rows, and no multiple of the number of lanes."""


class Computes(Protocol):
    """The functions under test: products, opening and sealing of rows, as in `Lanes`."""

    def products(self, scalar: bytes, points: Octets) -> Octets: ...
    def open_rows(self, sealed: Octets, public_key: bytes, secret: bytes) -> tuple[Octets, BoolArray]: ...
    def seal_rows(self, plain: Octets, public_key: bytes, secrets: Octets) -> Octets: ...


def fault_of(lanes: Computes) -> str | None:
    """Return how the lanes differ from RFC 7748 or libsodium; None if they do not differ."""
    points = _rows(_edges() + [os.urandom(KEY_BYTES) for _ in range(_DRAWN)])
    for scalar, point, expected in _RFC_7748:
        rows = np.tile(np.frombuffer(point, dtype=np.uint8), (LANES, 1))
        if any(row.tobytes() != expected for row in lanes.products(scalar, rows)):
            return "a product differs from RFC 7748"
    for scalar in (os.urandom(KEY_BYTES), bytes(KEY_BYTES), b"\xff" * KEY_BYTES):
        made = lanes.products(scalar, points)
        if any(row.tobytes() != _product(scalar, point.tobytes()) for row, point in zip(made, points, strict=True)):
            return "a product differs from libsodium's"
    public_key, secret = crypto_box_keypair()
    drawn = np.frombuffer(os.urandom(_BOXES * _PLAIN), dtype=np.uint8).reshape(_BOXES, _PLAIN)
    plain, sealed = _many(drawn), _many(_rows([crypto_box_seal(row.tobytes(), public_key) for row in drawn]))
    sealed[3, KEY_BYTES] ^= 1
    sealed[9] = np.frombuffer(_of_everybody(public_key), dtype=np.uint8)
    opened, good = lanes.open_rows(sealed, public_key, secret)
    right = np.ones(len(sealed), dtype=np.bool_)
    right[[3, 9]] = False
    if not (good == right).all() or not (opened == np.where(right[:, np.newaxis], plain, 0)).all():
        return "opened boxes differ from libsodium's"
    secrets = points[-_BOXES:]
    wanted = [_box(row.tobytes(), public_key, each.tobytes()) for row, each in zip(drawn, secrets, strict=True)]
    if not np.array_equal(lanes.seal_rows(plain, public_key, _many(secrets)), _many(_rows(wanted))):
        return "sealed boxes differ from libsodium's"
    return None


def _rows(strings: Sequence[bytes]) -> Octets:
    """Return uint8[n, L]: n strings of one length."""
    return np.frombuffer(b"".join(strings), dtype=np.uint8).reshape(len(strings), -1)


def _box(plain: bytes, public_key: bytes, secret: bytes) -> bytes:
    """Return the sealed box with this ephemeral secret."""
    ephemeral = crypto_scalarmult_base(secret)
    nonce = hashlib.blake2b(ephemeral + public_key, digest_size=crypto_box_NONCEBYTES).digest()
    return ephemeral + crypto_box(plain, nonce, public_key, secret)


def _many(rows: Octets) -> Octets:
    """Repeat rows until offsets of rows need more than 16 bits, and numbers of rows need more than 8 bits."""
    return np.tile(rows, (_TIMES, 1))


def _edges() -> list[bytes]:
    """Return points of low order, points that are not reduced, and their neighbours, with and without bit 255."""
    values = [*range(4), *range(P - 3, 1 << 255), *ORDER_8, P // 2, (1 << 204) - 1, 1 << 51]
    return [(value | bit).to_bytes(KEY_BYTES, "little") for value in values for bit in (0, 1 << 255)]


def _product(scalar: bytes, point: bytes) -> bytes:
    """Return libsodium's product, or zeros if libsodium refuses it, as only the product zero is refused."""
    try:
        return crypto_scalarmult(scalar, point)
    except CryptoError:
        return bytes(KEY_BYTES)


def _of_everybody(public_key: bytes) -> bytes:
    """Return a sealed box with ephemeral key zero: the product is then zero, so everybody knows the box's key."""
    nonce = hashlib.blake2b(bytes(KEY_BYTES) + public_key, digest_size=crypto_secretbox_NONCEBYTES).digest()
    return bytes(KEY_BYTES) + crypto_secretbox(bytes(_PLAIN), nonce, _KEY_OF_ZERO)
