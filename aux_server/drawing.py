"""The draw of a release is a function of a key that only the auxiliary server has, the keep rule, and the input.

So every repetition makes the same draw, for example a bundle that an engine retries, a second run, or a run with a
restored ledger. A second, independent draw of one input would be a second release, and after enough of these every bin
would be kept.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

import numpy as np
import numpy.typing as npt

from hushcount.arrays import UInt64Array
from hushcount.discovery.keep_rules import KeepRule

_BLOCK_WORDS = 8
_OF_BINS, _OF_ORDER = b"hushcount bins", b"hushcount order"


def draw_context(fingerprint: bytes, rule: KeepRule, manifest: str) -> bytes:
    """Return 32 bytes: the digest of all inputs that determine a draw, except the key.

    Args:
        fingerprint: fingerprint of the campaign file.
        manifest: digest of the contents of the input's files.
    """
    data = {"campaign": fingerprint.hex(), "rule": asdict(rule), "input": manifest}
    return hashlib.blake2b(json.dumps(data, sort_keys=True).encode(), digest_size=32).digest()


class BinWords:
    """A stream of words for each bin, determined by the key of a draw and the bin's pair alone.

    The words do not depend on which bins are drawn together, on their order or on the worker. To everyone without the
    key, the words of all bins of all inputs look independent and uniform, if BLAKE2b is a pseudo-random function.

    Args:
        key: 32 bytes, of one draw.
        pairs: S[b], distinct.
    """

    def __init__(self, key: bytes, pairs: npt.NDArray[np.bytes_]) -> None:
        self._key = key
        self._pairs = np.ascontiguousarray(pairs).view(np.uint8).reshape(len(pairs), -1)
        self._rows: npt.NDArray[np.intp] = np.arange(len(pairs))
        self._blocks = np.empty((len(pairs), _BLOCK_WORDS), dtype="<u8")
        self._taken = np.zeros(len(pairs), dtype=np.int64)

    def at(self, rows: npt.NDArray[np.intp]) -> BinWords:
        """Return the streams of these rows' bins, in this order; words taken from them are taken from `self` too."""
        part = BinWords.__new__(BinWords)
        part.__dict__.update(self.__dict__, _rows=self._rows[rows])
        return part

    def words(self, count: int) -> UInt64Array:
        """Return uint64[b], the next word of each bin; ValueError: `count` is not the number of bins."""
        rows = self._rows
        if count != len(rows):
            raise ValueError(f"count is {count}, must be {len(rows)}: one word for each bin")
        taken = self._taken[rows]
        for row in rows[taken % _BLOCK_WORDS == 0].tolist():
            number = int(self._taken[row]) // _BLOCK_WORDS
            salt = number.to_bytes(16, "little")
            made = hashlib.blake2b(self._pairs[row].tobytes(), key=self._key, salt=salt, person=_OF_BINS)
            self._blocks[row] = np.frombuffer(made.digest(), dtype="<u8")
        drawn = self._blocks[rows, taken % _BLOCK_WORDS]
        self._taken[rows] = taken + 1
        return drawn.astype(np.uint64, copy=False)


def in_drawn_order(key: bytes, records: list[bytes]) -> list[bytes]:
    """Return distinct records in an order that depends only on the key of a draw and on the set of records.

    To everyone without the key, every order is equally likely.
    """
    return sorted(records, key=lambda record: hashlib.blake2b(record, key=key, person=_OF_ORDER).digest())
