"""Pairs as a client makes them: the binding, the hash, and the value sealed to the analyzer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from hushcount.discovery.pairs import HASH_BYTES, DiscoveryFormat
from hushcount.randomness import SystemWords
from hushcount.wire.sealing import SEAL_BYTES, Octets, Sealer


def pairs(form: DiscoveryFormat, recipient: Sealer, values: Sequence[str | None], threads: int) -> Octets:
    """Return uint8[n, L]: the plain content of a discovery report of each value; None has a hash that no other has."""
    wanted, rows = _each_once(values)
    return _pairs(form, recipient, wanted, threads)[rows]


def _pairs(form: DiscoveryFormat, recipient: Sealer, values: list[str | None], threads: int) -> Octets:
    """Return uint8[n, L]: the binding, hash and inner box of each value."""
    named = [_hash_and_key(form, value) for value in values]
    heads = _rows((form.binding + bin_hash for bin_hash, _ in named), len(form.binding) + HASH_BYTES)
    inner = _rows((form.binding + form.pad(value) for value in values), form.sealed_value_bytes - SEAL_BYTES)
    return np.concatenate([heads, recipient.seal_many_alike(inner, [key for _, key in named], threads)], axis=1)


def _hash_and_key(form: DiscoveryFormat, value: str | None) -> tuple[bytes, bytes]:
    """Return a value's hash and the key of its inner box; of None, random ones that no other report has."""
    if value is None:
        fresh = SystemWords().words(8).tobytes()
        return fresh[:HASH_BYTES], fresh[HASH_BYTES:]
    return form.hash(value), form.hash_key


def _rows(parts: Iterable[bytes], length: int) -> Octets:
    return np.frombuffer(b"".join(parts), dtype=np.uint8).reshape(-1, length)


def _each_once(values: Sequence[str | None]) -> tuple[list[str | None], npt.NDArray[np.intp]]:
    """Return the different values, and the index of each; every None counts as another value."""
    places: dict[str, int] = {}
    wanted: list[str | None] = []
    rows = np.empty(len(values), dtype=np.intp)
    for row, value in enumerate(values):
        rows[row] = len(wanted) if value is None else places.setdefault(value, len(wanted))
        if rows[row] == len(wanted):
            wanted.append(value)
    return wanted, rows
