"""Sealing: what anyone can do with a public key. Opening needs a private key and lives in `keys`."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from nacl.bindings import crypto_box_seal, crypto_box_SEALBYTES

Octets = npt.NDArray[np.uint8]
SEAL_BYTES: int = crypto_box_SEALBYTES
"""How much longer a sealed box is than what it holds: 48."""


@dataclass(frozen=True)
class Sealer:
    """Seals to one recipient: X25519, XSalsa20-Poly1305, a fresh ephemeral key each time (libsodium sealed box).

    Not promised: who sealed it (anyone can), nor that the recipient sees it once (a copy opens as well).

    Args:
        public_key: 32 bytes.
    """

    public_key: bytes

    def __post_init__(self) -> None:
        if len(self.public_key) != 32:
            raise ValueError(f"public_key has {len(self.public_key)} bytes, must have 32")

    def seal(self, plain: bytes) -> bytes:
        """Return a sealed box, SEAL_BYTES longer than `plain`."""
        sealed: bytes = crypto_box_seal(plain, self.public_key)
        return sealed

    def seal_many(self, plain: Octets, threads: int = 1) -> Octets:
        """Seal every row of uint8[n, L] by itself: uint8[n, L + SEAL_BYTES], on so many threads."""
        length = plain.shape[1] + SEAL_BYTES

        def chunk(rows: Octets) -> Octets:
            sealed = b"".join(crypto_box_seal(row.tobytes(), self.public_key) for row in rows)
            return np.frombuffer(sealed, dtype=np.uint8).reshape(len(rows), length)

        return np.concatenate(in_chunks(chunk, plain, threads)) if len(plain) else np.zeros((0, length), np.uint8)


T = TypeVar("T")


def in_chunks(work: Callable[[Octets], T], rows: Octets, threads: int) -> list[T]:
    """Call `work` on consecutive chunks of the rows, in order, on so many threads; libsodium releases the GIL."""
    if threads <= 1 or len(rows) < 2 * threads:
        return [work(rows)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, np.array_split(rows, threads)))


def available_threads() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
