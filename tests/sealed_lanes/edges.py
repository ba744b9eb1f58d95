"""Points and scalars where arithmetic on limbs goes wrong, and where the curve is special."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from nacl.bindings import crypto_scalarmult
from nacl.exceptions import CryptoError

from sealed_lanes.arrays import Octets
from sealed_lanes.field import P
from sealed_lanes.self_test import ORDER_8

_LIMB, _WORD = (1 << 51) - 1, (1 << 64) - 1
_TOP = 1 << 255
LOW_ORDER = (0, 1, P - 1, *ORDER_8)
_EXTREME_LIMBS = [sum(limb << 51 * at for at, limb in enumerate(limbs)) for limbs in product((0, _LIMB), repeat=5)]
_EXTREME_WORDS = [sum(word << 64 * at for at, word in enumerate(words)) for words in product((0, _WORD), repeat=4)]
_NEAR_LIMBS = [(1 << 51 * at) + by for at in range(1, 5) for by in (-1, 0, 1, 19)]
_POINTS = [*LOW_ORDER, *range(20), *range(_TOP - 1500, _TOP), *_EXTREME_LIMBS, *_NEAR_LIMBS, P // 2, P // 2 + 1]
_ORDER = (1 << 252) + 27742317777372353535851937790883648493
_SCALARS = [0, 1, 7, 8, 9, 1 << 254, _TOP - 8, _TOP - 1, _TOP, _ORDER, 8 * _ORDER, _ORDER - 1, *_EXTREME_WORDS]


def _rows(values: list[int]) -> Octets:
    """Return uint8[n, 32]."""
    joined = b"".join(value.to_bytes(32, "little") for value in values)
    return np.frombuffer(joined, dtype=np.uint8).reshape(-1, 32)


POINTS = _rows(sorted({value % _TOP | bit for value in (*_POINTS, *_EXTREME_WORDS) for bit in (0, _TOP)}))
"""uint8[n, 32], each with bit 255 and without: it does not count (RFC 7748). All that are not reduced are here."""
SCALARS = _rows(_SCALARS)
"""uint8[n, 32], before they are clamped."""


@dataclass(frozen=True)
class Vectors:
    """Project Wycheproof's cases (vectors/README.md): uint8[n, 32] each, and the number of each case."""

    numbers: list[int]
    scalars: Octets
    points: Octets
    products: Octets


def wycheproof() -> Vectors:
    path = Path(__file__).parents[2] / "vectors" / "v1" / "wycheproof_x25519.json"
    cases = [case for group in json.loads(path.read_text())["testGroups"] for case in group["tests"]]
    scalars, points, products = (
        np.frombuffer(bytes.fromhex("".join(case[name] for case in cases)), dtype=np.uint8).reshape(-1, 32)
        for name in ("private", "public", "shared")
    )
    return Vectors([case["tcId"] for case in cases], scalars, points, products)


def drawn(rows: int, seed: int) -> Octets:
    """Return uint8[rows, 32], random and the same each time."""
    return np.random.default_rng(seed).integers(0, 256, (rows, 32), dtype=np.uint8)


def expected(scalars: Octets, points: Octets) -> Octets:
    """Return libsodium's products of scalars, one for all or one a row; zero where it refuses: the product is zero."""
    made = np.zeros_like(points)
    for row, (scalar, point) in enumerate(zip(np.broadcast_to(scalars, points.shape), points, strict=True)):
        try:
            made[row] = np.frombuffer(crypto_scalarmult(scalar.tobytes(), point.tobytes()), dtype=np.uint8)
        except CryptoError:
            continue
    return made
