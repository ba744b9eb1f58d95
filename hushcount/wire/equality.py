"""Find equal records by their first eight bytes, and compare only the few that may be equal as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import UInt64Array


def first_words(records: np.ndarray[Any, Any]) -> UInt64Array:
    """Return uint64[n], the first eight bytes of every record of S[n], in any layout."""
    leading = np.dtype({"names": ["word"], "formats": ["<u8"], "offsets": [0], "itemsize": records.itemsize})
    return np.ascontiguousarray(records.view(leading)["word"])


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


def in_others(records: npt.NDArray[np.bytes_], others: npt.NDArray[np.bytes_]) -> npt.NDArray[np.bool_]:
    """Return bool[n]: which records of S[n] are also in `others`, S[m], of the same length."""
    again = np.flatnonzero(recurring(np.concatenate([first_words(records), first_words(others)])))
    mine, theirs = again[again < len(records)], again[again >= len(records)] - len(records)
    result = np.zeros(len(records), dtype=np.bool_)
    result[mine] = np.isin(records[mine], others[theirs])
    return result
