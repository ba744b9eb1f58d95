"""The machine of as many lanes as there are rows, in numpy's words: fast enough for thousands of points."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sealed_lanes import ladder
from sealed_lanes.arrays import Octets, UInt64Array
from sealed_lanes.words import WORD, Mask, Word

_HALF = 26


class Many:
    """Carries a program out on uint64 arrays, which wrap as words do."""

    def constant(self, value: int) -> UInt64Array:
        # An array, because numpy warns of scalars that wrap.
        return np.array([value % WORD], dtype=np.uint64)

    def add(self, a: UInt64Array, b: UInt64Array) -> UInt64Array:
        return a + b

    def subtract(self, a: UInt64Array, b: UInt64Array) -> UInt64Array:
        return a - b

    def both(self, a: UInt64Array, b: UInt64Array) -> UInt64Array:
        return a & b

    def differ(self, a: UInt64Array, b: UInt64Array) -> UInt64Array:
        return a ^ b

    def left(self, a: UInt64Array, bits: int) -> UInt64Array:
        return a << np.uint64(bits)

    def right(self, a: UInt64Array, bits: int) -> UInt64Array:
        return a >> np.uint64(bits)

    def rotate_right(self, a: UInt64Array, bits: int) -> UInt64Array:
        return self.right(a, bits) | self.left(a, 64 - bits)

    def low(self, total: UInt64Array, a: UInt64Array, b: UInt64Array) -> UInt64Array:
        # The lower 52 bits of a product depend on those of its factors alone.
        return total + (a * b & _ones(2 * _HALF))

    def high(self, total: UInt64Array, a: UInt64Array, b: UInt64Array) -> UInt64Array:
        (a1, a0), (b1, b0) = _halves(a), _halves(b)
        middle = a1 * b0 + a0 * b1 + self.right(a0 * b0, _HALF)
        return total + a1 * b1 + self.right(middle, _HALF)

    def repeat(
        self,
        times: int,
        vectors: Sequence[UInt64Array],
        body: Callable[[int, list[UInt64Array]], list[UInt64Array]],
    ) -> list[UInt64Array]:
        state = list(vectors)
        for index in range(times):
            state = body(index, state)
        return state


MACHINE = Many()


def _ones(bits: int) -> np.uint64:
    return np.uint64((1 << bits) - 1)


def _halves(a: UInt64Array) -> tuple[UInt64Array, UInt64Array]:
    """Return the lower 52 bits as two times 26."""
    return a >> np.uint64(_HALF) & _ones(_HALF), a & _ones(_HALF)


def words(rows: Octets) -> list[Word]:
    """Return words of 64 bits, which may have any value, a lane for each row."""
    return [Word(MACHINE, column, WORD - 1) for column in np.ascontiguousarray(rows).view("<u8").T]


def octets(made: Sequence[Word], rows: int) -> Octets:
    columns = [np.broadcast_to(word.vector, rows) for word in made]
    return np.stack(columns, axis=1).astype("<u8").view(np.uint8)


def products(scalars: Octets, points: Octets) -> Octets:
    """Return X25519 of each row of uint8[n, 32] and of a scalar, one for all or one a row, by the lanes' program."""
    masks: list[Mask] = []
    ladder.write_masks(words(np.atleast_2d(scalars)), lambda _, mask: masks.append(mask))
    return octets(ladder.quotients([ladder.product(words(points), lambda index: masks[index])])[0], len(points))
