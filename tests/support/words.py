"""A seeded source of words, for repeatable statistics. Tests only, never for a campaign."""

from __future__ import annotations

import numpy as np
from nacl.bindings import randombytes_buf_deterministic

from hushcount.arrays import UInt64Array


class SeededWords:
    """ChaCha20 words from a seed: the same seed gives the same words on every machine."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._calls = 0

    def words(self, count: int) -> UInt64Array:
        self._calls += 1
        key = self._seed.to_bytes(16, "little") + self._calls.to_bytes(16, "little")
        stream = randombytes_buf_deterministic(8 * count, key) if count else b""
        return np.frombuffer(bytearray(stream), dtype="<u8").astype(np.uint64, copy=False)
