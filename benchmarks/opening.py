"""CPU time of each engine to open or seal a box of 100 plain bytes, and to multiply a point of the curve alone.

Times are of one thread, the least of a few runs. The time to compile the lanes, libraries included, is measured once.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from nacl._sodium import ffi, lib
from nacl.public import PrivateKey, SealedBox

from benchmarks.encode import cpu_us
from hushcount.arrays import Octets
from hushcount.wire.sealing import seal_rows
from keys.libsodium import open_rows

if TYPE_CHECKING:
    from sealed_lanes import Lanes

_PLAIN = 100


def figures(boxes: int, repeats: int) -> dict[str, float]:
    """Return the microseconds of each operation, by name."""
    key = PrivateKey.generate()
    public, secret = bytes(key.public_key), bytes(key)
    drawn = np.frombuffer(os.urandom(boxes * (_PLAIN + 32)), dtype=np.uint8)
    plain, secrets = drawn[: boxes * _PLAIN].reshape(boxes, -1), drawn[boxes * _PLAIN :].reshape(boxes, 32)
    sealed = seal_rows(plain, public, secrets)
    points, alone = np.ascontiguousarray(sealed[:, :32]), [row.tobytes() for row in sealed]
    open_box, seal_box, content = SealedBox(key).decrypt, SealedBox(key.public_key).encrypt, bytes(_PLAIN)
    ways: dict[str, Callable[[], object]] = {
        "a point: crypto_scalarmult": lambda: _scalarmult(secret, points),
        "open a box: crypto_box_seal_open": lambda: open_rows(sealed, public, secret),
        "open a box: PyNaCl's SealedBox.decrypt": lambda: [open_box(box) for box in alone],
        "seal a box: libsodium": lambda: seal_rows(plain, public, secrets),
        "seal a box: PyNaCl's SealedBox.encrypt": lambda: [seal_box(content) for _ in alone],
    }
    began = time.process_time()
    lanes = _lanes()
    made = time.process_time() - began
    if lanes is not None:
        ways = {
            "a point: lanes": lambda: lanes.products(secret, points),
            "open a box: lanes": lambda: lanes.open_rows(sealed, public, secret),
            "seal a box: lanes": lambda: lanes.seal_rows(plain, public, secrets),
            **ways,
        }
    found = {name: cpu_us(way, boxes, repeats) for name, way in sorted(ways.items())}
    return found if lanes is None else {**found, "make the code, once": made * 1e6}


def _lanes() -> Lanes | None:
    """Make the lanes, or print why that is not possible."""
    # Imported here, because the import is a part of the cost.
    from sealed_lanes import NoLanes, make_lanes

    try:
        return make_lanes()
    except NoLanes as reason:
        print(f"no lanes here: {reason}", file=sys.stderr)
        return None


def _scalarmult(secret: bytes, points: Octets) -> None:
    made, size = ffi.new("unsigned char[32]"), points.shape[1]
    source, multiply = ffi.from_buffer("unsigned char[]", points), lib.crypto_scalarmult
    for row in range(len(points)):
        multiply(made, secret, source + row * size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boxes", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    found = figures(chosen.boxes, chosen.repeats)
    if chosen.json:
        print(json.dumps(found, indent=2))
        return
    for name, us in found.items():
        print(f"{name:<40}{us:>14,.2f} us")


if __name__ == "__main__":
    main()
