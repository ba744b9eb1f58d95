"""The machine of one lane in Python's integers: what the emitted code must do, on every computer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sealed_lanes import ladder
from sealed_lanes.words import WORD, Mask, Word

_FACTOR = (1 << 52) - 1


class Integers:
    """Carries a program out on integers below 2**64."""

    def constant(self, value: int) -> int:
        return value

    def add(self, a: int, b: int) -> int:
        return (a + b) % WORD

    def subtract(self, a: int, b: int) -> int:
        return (a - b) % WORD

    def both(self, a: int, b: int) -> int:
        return a & b

    def differ(self, a: int, b: int) -> int:
        return a ^ b

    def left(self, a: int, bits: int) -> int:
        return (a << bits) % WORD

    def right(self, a: int, bits: int) -> int:
        return a >> bits

    def rotate_right(self, a: int, bits: int) -> int:
        return (a >> bits) | (a << 64 - bits) % WORD

    def low(self, total: int, a: int, b: int) -> int:
        return (total + ((a & _FACTOR) * (b & _FACTOR) & _FACTOR)) % WORD

    def high(self, total: int, a: int, b: int) -> int:
        return (total + ((a & _FACTOR) * (b & _FACTOR) >> 52)) % WORD

    def repeat(self, times: int, vectors: Sequence[int], body: Callable[[int, list[int]], list[int]]) -> list[int]:
        state = list(vectors)
        for index in range(times):
            state = body(index, state)
        return state


MACHINE = Integers()


def words(octets: bytes) -> list[Word]:
    """Return words of 64 bits, which may have any value."""
    return [Word(MACHINE, int.from_bytes(octets[at : at + 8], "little"), WORD - 1) for at in range(0, len(octets), 8)]


def octets(made: Sequence[Word]) -> bytes:
    return b"".join(word.vector.to_bytes(8, "little") for word in made)


def product(scalar: bytes, point: bytes) -> bytes:
    """Return X25519 of a scalar and a point by the program of the lanes."""
    masks: list[Mask] = []
    ladder.write_masks(words(scalar), lambda _, mask: masks.append(mask))
    return octets(ladder.quotients([ladder.product(words(point), lambda index: masks[index])])[0])
