"""Keys of a window, from the keys of the run: what one window's release shows of its keys is of no use in the next.

Where a batch is one run, as in `hushcount shuffle`, the keys are the run's own.
"""

from __future__ import annotations

import hashlib
import struct

import numpy as np
from apache_beam.transforms.window import BoundedWindow, IntervalWindow

from hushcount.arrays import UInt64Array

_SPAN = struct.Struct("<qq")


def tag_keys_of(keys: UInt64Array, window: BoundedWindow) -> UInt64Array:
    """Return a window's keys of tags, of the shape of the run's."""
    derived = key_of(keys.astype("<u8").tobytes(), window)
    return np.frombuffer(derived, dtype="<u8").astype(np.uint64).reshape(keys.shape)


def key_of(key: bytes, window: BoundedWindow) -> bytes:
    """Return a window's key, as long as the run's: SHAKE-256 of that and the window, so that a retry has the same."""
    if not isinstance(window, IntervalWindow):
        return key
    span = _SPAN.pack(window.start.micros, window.end.micros)
    return hashlib.shake_256(span + key).digest(len(key))
