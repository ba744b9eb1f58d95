"""Find equal records by their first eight bytes, and compare only the few that may be equal as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import UInt64Array


def first_words(records: np.ndarray[Any, Any]) -> UInt64Array:
    """Return uint64[n], the first eight bytes of every record of S[n], in any layout."""
    leading = np.dtype({"names": ["word"], "formats": ["<u8"], "offsets": [0], "itemsize": records.itemsize})
    return np.ascontiguousarray(records.view(leading)["word"])


def in_any(records: npt.NDArray[np.bytes_], blocks: Iterable[bytes]) -> npt.NDArray[np.bool_]:
    """Return bool[n]: which records of S[n] a block of such records has. Blocks are read one by one and not kept."""
    words = first_words(records)
    ordered = np.sort(words)
    read = (np.frombuffer(block, dtype=records.dtype) for block in blocks)
    alike = np.concatenate([records[:0], *(block[_among(first_words(block), ordered)] for block in read)])
    maybe = np.flatnonzero(_among(words, np.sort(first_words(alike))))
    result = np.zeros(len(records), dtype=np.bool_)
    result[maybe] = np.isin(records[maybe], alike)
    return result


def _among(words: UInt64Array, ordered: UInt64Array) -> npt.NDArray[np.bool_]:
    """Return bool[n]: which of n words are among sorted others."""
    if not len(ordered):
        return np.zeros(len(words), dtype=np.bool_)
    return ordered[np.minimum(np.searchsorted(ordered, words), len(ordered) - 1)] == words


def run_starts(ordered: np.ndarray[Any, Any]) -> npt.NDArray[np.intp]:
    """Return where the runs of equal neighbours begin in an array."""
    begins = np.ones(len(ordered), dtype=np.bool_)
    begins[1:] = ordered[1:] != ordered[:-1]
    return np.flatnonzero(begins)


def recurring(records: np.ndarray[Any, Any]) -> npt.NDArray[np.bool_]:
    """Return bool[n]: which records of S[n], at least 8 bytes each, share their first eight bytes with another."""
    first = first_words(records)
    order = np.argsort(first)
    ordered = first[order]
    equal = ordered[1:] == ordered[:-1]
    result = np.zeros(len(records), dtype=np.bool_)
    result[order[1:][equal]] = True
    result[order[:-1][equal]] = True
    return result


def first_of_equal(records: np.ndarray[Any, Any]) -> npt.NDArray[np.intp]:
    """Return the ascending indices of one record of every distinct value of S[n]."""
    stays = ~recurring(records)
    again = np.flatnonzero(~stays)
    if len(again):
        stays[again[np.unique(records[again], return_index=True)[1]]] = True
    return np.flatnonzero(stays)
