"""Opens and seals arrays between pages that nobody may touch: `python -m tests.sealed_lanes.guarded [planted]`.

A read or a write outside of an array ends the process by a signal.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterator
from itertools import product
from types import ModuleType

import numpy as np
from nacl.bindings import crypto_box_keypair

from sealed_lanes.arrays import Octets
from tests.sealed_lanes.faults import Fault, planted
from tests.sealed_lanes.libsodium import seal_rows

UNCLAMPED = Fault(
    "leftover lanes are not clamped",
    "boxes",
    'builder.select(builder.icmp_unsigned("<", row, self._last), row, self._last)',
    "row",
)
ROWS, LENGTHS = (1, 31, 32, 33), (0, 1, 100)
_PAGE = mmap.PAGESIZE
_FORBIDDEN = 0
"""PROT_NONE."""


class Guarded:
    """An array whose first or last byte is next to a forbidden page."""

    def __init__(self, size: int, at_end: bool) -> None:
        inner = max(1, -(-size // _PAGE)) * _PAGE
        self._first = ctypes.c_char.from_buffer(mmap.mmap(-1, inner + 2 * _PAGE))
        begin = ctypes.addressof(self._first)
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        for page in (begin, begin + _PAGE + inner):
            if protect(page, _PAGE, _FORBIDDEN):
                raise OSError(ctypes.get_errno(), "mprotect")
        self.size, self.address = size, begin + _PAGE + (inner - size if at_end else 0)

    def put(self, octets: Octets) -> None:
        ctypes.memmove(self.address, octets.tobytes(), self.size)

    def get(self) -> bytes:
        return ctypes.string_at(self.address, self.size)


def differing(compiled: ModuleType) -> Iterator[str]:
    """Yield what is opened or sealed otherwise than by libsodium."""
    lanes, scratch_of = compiled.Lanes(compiled._compiled()), compiled.SCRATCH
    public, secret = crypto_box_keypair()
    for at_end, rows, length in product((True, False), ROWS, LENGTHS):
        drawn = np.random.default_rng((rows, length))
        content, keys = (drawn.integers(0, 256, (rows, size), dtype=np.uint8) for size in (length, 32))
        boxes = seal_rows(content, public, keys)
        sealed, plain, verdicts, secrets = (
            Guarded(size, at_end) for size in (boxes.nbytes, content.nbytes, rows, keys.nbytes)
        )
        with compiled._Scratch() as scratch:
            scratch.broadcast(scratch_of.recipient, public)
            scratch.broadcast(scratch_of.scalar, secret)
            sealed.put(boxes)
            pointers = (sealed.address, plain.address, verdicts.address)
            lanes._call["open_boxes"](scratch.at(0), *pointers, rows, boxes.shape[1])
            if (plain.get(), verdicts.get()) != (content.tobytes(), b"\1" * rows):
                yield f"{rows} rows of {length} opened"
            secrets.put(keys)
            sealed.put(np.zeros_like(boxes))
            pointers = (plain.address, secrets.address, sealed.address, verdicts.address)
            lanes._call["seal_boxes"](scratch.at(0), *pointers, rows, length)
            if sealed.get() != boxes.tobytes():
                yield f"{rows} rows of {length} sealed"


def main() -> None:
    with planted(UNCLAMPED if sys.argv[1:] == ["planted"] else None) as modules:
        if found := list(differing(modules["compiled"])):
            raise SystemExit("; ".join(found))


if __name__ == "__main__":
    main()
