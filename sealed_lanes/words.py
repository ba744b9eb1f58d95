"""Words with proved bounds: an operation that may overflow is refused while the code is made, before the code runs.

A program is written once, in `Word`s, and a machine executes the program: `emit` writes instructions for eight lanes,
and the tests compute one lane with Python's integers. Lanes never exchange data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

WORD = 1 << 64
FACTOR = 1 << 52
"""Each factor of a product must be below this bound, because the instruction ignores higher bits."""
NEEDED = ("avx512f", "avx512ifma")
"""The processor features that the code needs; LLVM and Linux use the same names for these features."""

Vector = Any
"""A machine's value: an LLVM value of eight 64-bit words, or one integer."""
Index = Any
"""A machine's loop counter."""


class ProofError(Exception):
    """A program may overflow, so no code is made from it."""


class Machine(Protocol):
    """The instructions of a program, on 64-bit words modulo 2**64, each lane by itself."""

    def constant(self, value: int) -> Vector: ...
    def add(self, a: Vector, b: Vector) -> Vector: ...
    def subtract(self, a: Vector, b: Vector) -> Vector: ...
    def both(self, a: Vector, b: Vector) -> Vector:
        """Return the bitwise AND."""

    def differ(self, a: Vector, b: Vector) -> Vector:
        """Return the bitwise XOR."""

    def left(self, a: Vector, bits: int) -> Vector: ...
    def right(self, a: Vector, bits: int) -> Vector: ...
    def rotate_right(self, a: Vector, bits: int) -> Vector: ...

    def low(self, total: Vector, a: Vector, b: Vector) -> Vector:
        """Return total + (a b mod 2**52), where only the lower 52 bits of a and b count."""

    def high(self, total: Vector, a: Vector, b: Vector) -> Vector:
        """Return total + floor(a b / 2**52), where only the lower 52 bits of a and b count."""

    def repeat(
        self, times: int, vectors: Sequence[Vector], body: Callable[[Index, list[Vector]], list[Vector]]
    ) -> list[Vector]:
        """Apply the body to the vectors `times` times, and return the result; the body's index counts from 0."""


@dataclass(frozen=True)
class Word:
    """A vector; each lane is from `least` to `most`, whatever the input."""

    machine: Machine
    vector: Vector
    most: int
    least: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.most < WORD:
            raise ProofError(f"a word may be from {self.least} to {self.most}, must be from 0 to 2**64 - 1")

    def __add__(self, other: Word) -> Word:
        made = self.machine.add(self.vector, other.vector)
        return Word(self.machine, made, self.most + other.most, self.least + other.least)

    def __sub__(self, other: Word) -> Word:
        """Return the difference; ProofError if it may be negative."""
        made = self.machine.subtract(self.vector, other.vector)
        return Word(self.machine, made, self.most - other.least, self.least - other.most)

    def __and__(self, bits: int) -> Word:
        made = self.machine.both(self.vector, self.machine.constant(bits))
        return Word(self.machine, made, min(self.most, bits))

    def __xor__(self, other: Word) -> Word:
        made = self.machine.differ(self.vector, other.vector)
        return Word(self.machine, made, (1 << max(self.most, other.most).bit_length()) - 1)

    def __lshift__(self, bits: int) -> Word:
        _require_shift(bits)
        return Word(self.machine, self.machine.left(self.vector, bits), self.most << bits, self.least << bits)

    def __rshift__(self, bits: int) -> Word:
        _require_shift(bits)
        return Word(self.machine, self.machine.right(self.vector, bits), self.most >> bits, self.least >> bits)

    def wrapping_add(self, other: Word) -> Word:
        """Return the sum modulo 2**64, which the hashes need."""
        return Word(self.machine, self.machine.add(self.vector, other.vector), WORD - 1)

    def rotated(self, bits: int) -> Word:
        """Return all 64 bits, rotated to the right."""
        _require_shift(bits)
        return Word(self.machine, self.machine.rotate_right(self.vector, bits), WORD - 1)

    def plus_low(self, a: Word, b: Word) -> Word:
        """Return this word plus the lower 52 bits of the product a b."""
        _require_factors(a, b)
        made = self.machine.low(self.vector, a.vector, b.vector)
        return Word(self.machine, made, self.most + min(FACTOR - 1, a.most * b.most), self.least)

    def plus_high(self, a: Word, b: Word) -> Word:
        """Return this word plus the product a b divided by 2**52, rounded down."""
        _require_factors(a, b)
        made = self.machine.high(self.vector, a.vector, b.vector)
        return Word(self.machine, made, self.most + a.most * b.most // FACTOR, self.least)

    def plus_product(self, a: Word, factor: int) -> Word:
        """Return this word plus the product of a and `factor`; ProofError if the product may have more than 52 bits."""
        if a.most * factor >= FACTOR:
            raise ProofError(f"a product may be {a.most * factor}, must be below 2**52: its upper bits would be lost")
        return self.plus_low(a, constant(self.machine, factor))


def _require_shift(bits: int) -> None:
    if not 0 <= bits < 64:
        raise ProofError(f"a shift is by {bits} bits, must be by 0 to 63")


def _require_factors(*factors: Word) -> None:
    for factor in factors:
        if factor.most >= FACTOR:
            raise ProofError(f"a factor may be {factor.most}, must be below 2**52")


def constant(machine: Machine, value: int) -> Word:
    """Return the same value in every lane."""
    return Word(machine, machine.constant(value), value, value)


@dataclass(frozen=True)
class Mask:
    """A vector; each lane is all ones or 0.

    `mask_of` makes a mask; a mask that was stored in memory can also be loaded.
    """

    vector: Vector


def mask_of(bit: Word) -> Mask:
    """Return all ones in lanes where a word is 1, and 0 in lanes where the word is 0."""
    if bit.most > 1:
        raise ProofError(f"a bit may be {bit.most}, must be at most 1")
    return Mask(bit.machine.subtract(bit.machine.constant(0), bit.vector))


def choice(mask: Mask, a: Word, b: Word) -> Word:
    """Return a in lanes where the mask is all ones, and b in lanes where the mask is 0."""
    machine = a.machine
    change = machine.both(mask.vector, machine.differ(a.vector, b.vector))
    return Word(machine, machine.differ(b.vector, change), max(a.most, b.most), min(a.least, b.least))


def repeated(
    times: int, words: Sequence[Word], most: int, body: Callable[[Index, list[Word]], Sequence[Word]]
) -> list[Word]:
    """Repeat a body on words.

    Args:
        most: the invariant, which is a bound that no word exceeds before the loop or after a turn.

    Raises:
        ProofError: the body may break the invariant, or `times` is below 1.
    """
    if times < 1:
        raise ProofError(f"a loop has {times} turns, must have at least 1")
    machine = words[0].machine

    def require(state: Sequence[Word]) -> list[Vector]:
        if (worst := max(word.most for word in state)) > most:
            raise ProofError(f"a word of a loop may be {worst}, must be at most its invariant, {most}")
        return [word.vector for word in state]

    def turn(index: Index, vectors: list[Vector]) -> list[Vector]:
        return require(body(index, [Word(machine, vector, most) for vector in vectors]))

    return [Word(machine, vector, most) for vector in machine.repeat(times, require(words), turn)]
