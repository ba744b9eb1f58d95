"""Work on chunks of rows in threads; this is useful for compiled code and libraries that release the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

S = TypeVar("S", npt.NDArray[np.uint8], npt.NDArray[np.uint64])
P = TypeVar("P")
T = TypeVar("T")


def in_chunks(work: Callable[[S], T], rows: S, threads: int) -> list[T]:
    """Call `work` on consecutive chunks of an array; return the results in order."""
    if threads <= 1 or len(rows) < 2 * threads:
        return [work(rows)]
    return at_once(lambda span: work(rows[span]), spans(len(rows), threads), threads)


def spans(count: int, parts: int) -> list[slice]:
    """Return 0..count-1 in at most `parts` consecutive spans of nearly the same length, none of them empty."""
    step = max(1, -(-count // parts))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def at_once(work: Callable[[P], T], parts: Sequence[P], threads: int) -> list[T]:
    """Call `work` on each part; return the results in order."""
    if threads <= 1 or len(parts) < 2:
        return [work(part) for part in parts]
    # The import is here because a client that seals one report needs no threads and should not wait for the import.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, parts))


def available_threads() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
