"""Open sealed boxes in arrays with libsodium's own function, which reads and writes rows in place and frees the GIL.

PyNaCl's own functions check and copy every box in Python, which takes 2.8 of the 34 microseconds for opening one box
(docs/adr/0012).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from nacl._sodium import ffi, lib
from nacl.bindings import crypto_box_PUBLICKEYBYTES, crypto_box_SEALBYTES, crypto_box_SECRETKEYBYTES

from hushcount.arrays import BoolArray, Octets


def open_rows(sealed: Octets, public_key: bytes, secret: bytes) -> tuple[Octets, BoolArray]:
    """Open every row of uint8[n, L + 48]; return uint8[n, L], zero in rows that did not open, and which rows opened."""
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
    # libsodium may write bytes into a row that it then fails to open.
    plain[~opened] = 0
    return plain, opened


def _pointer(rows: Octets) -> Any:
    """Return a pointer to contiguous rows; while the pointer exists, the array is not freed."""
    return ffi.from_buffer("unsigned char[]", rows)


def _require(key: bytes, length: int) -> None:
    # libsodium does not check the length of a key. The error must not show the key.
    if len(key) != length:
        raise ValueError(f"key has {len(key)} bytes, must have {length}")
