"""What the lanes must do, row by row, by PyNaCl's public functions."""

from __future__ import annotations

import hashlib

import numpy as np
from nacl.bindings import (
    crypto_box,
    crypto_box_NONCEBYTES,
    crypto_box_seal,
    crypto_box_seal_open,
    crypto_box_SEALBYTES,
    crypto_scalarmult_base,
)
from nacl.exceptions import CryptoError

from sealed_lanes.arrays import BoolArray, Octets


def open_rows(sealed: Octets, public_key: bytes, secret: bytes) -> tuple[Octets, BoolArray]:
    """Open every row of uint8[n, L + 48]: uint8[n, L], zeros for a failure, and bool[n], which rows opened."""
    plain = np.zeros((len(sealed), sealed.shape[1] - crypto_box_SEALBYTES), dtype=np.uint8)
    opened = np.zeros(len(sealed), dtype=np.bool_)
    for row, box in enumerate(sealed):
        try:
            content = crypto_box_seal_open(box.tobytes(), public_key, secret)
        except CryptoError:
            continue
        plain[row], opened[row] = np.frombuffer(content, dtype=np.uint8), True
    return plain, opened


def sealed_rows(plain: Octets, public_key: bytes) -> Octets:
    """Seal every row of uint8[n, L] with a secret that libsodium draws."""
    return _joined([crypto_box_seal(row.tobytes(), public_key) for row in plain], plain)


def seal_rows(plain: Octets, public_key: bytes, secrets: Octets) -> Octets:
    """Seal every row of uint8[n, L] with its row of secrets."""
    boxes = []
    for row, secret in zip(plain, secrets, strict=True):
        ephemeral = crypto_scalarmult_base(secret.tobytes())
        nonce = hashlib.blake2b(ephemeral + public_key, digest_size=crypto_box_NONCEBYTES).digest()
        boxes.append(ephemeral + crypto_box(row.tobytes(), nonce, public_key, secret.tobytes()))
    return _joined(boxes, plain)


def _joined(boxes: list[bytes], plain: Octets) -> Octets:
    rows, length = plain.shape
    return np.frombuffer(bytearray(b"".join(boxes)), dtype=np.uint8).reshape(rows, length + crypto_box_SEALBYTES)
