"""Thresholds by integers of 600 bits, draws from given words, packing."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import comb, floor
from typing import Any

from tests.vectors.stranger.basics import ascending, require

ONE, _BITS = 1 << 64, 600


def _exp(epsilon: Fraction) -> int:
    """Return exp(epsilon) * 2**600, by its series of epsilon / 2**10, squared ten times."""
    extra = _BITS + 100
    x = floor(epsilon / 1024 * (1 << extra))
    total = term = 1 << extra
    for step in range(1, 200):
        term = term * x // step >> extra
        total += term
    for _ in range(10):
        total = total * total >> extra
    return total >> 100


def _epsilon(epsilon: float) -> Fraction:
    require(1e-4 <= epsilon <= 40, "epsilon_out_of_range")
    return Fraction(epsilon)


def spending(epsilon: float | Fraction, m: int, s: int) -> int:
    """Return keep of s of m cells."""
    exact = _epsilon(epsilon) if isinstance(epsilon, float | int) else epsilon
    require(m >= 2, "width_out_of_range")
    require(1 <= s < m, "size_out_of_range")
    weight = _exp(exact) * s
    keep = ONE * weight // (weight + (m - s << _BITS))
    require(keep * m > ONE * s, "says_nothing")
    return keep


def symmetric(epsilon: float) -> int:
    """Return keep of symmetric unary."""
    return spending(_epsilon(epsilon) / 2, 2, 1)


def flip(epsilon: float, keep: int) -> int:
    """Return flip of a given keep."""
    exact = _epsilon(epsilon)
    require(0 < keep < ONE, "keep_out_of_range")
    own = keep << _BITS
    other = (ONE - keep) * _exp(exact)
    return -(-ONE * own // (own + other))


def probability(p: float) -> int:
    """Return the threshold of a given p."""
    require(0 <= p <= 1, "probability_out_of_range")
    return floor(Fraction(p) * ONE)


@dataclass
class Words:
    """Given words, each taken once."""

    left: list[int] = field(default_factory=list)

    def one(self) -> int:
        """Take a word."""
        return self.left.pop(0)

    def event(self, threshold: int) -> bool:
        """Draw an event."""
        return self.one() < threshold

    def uniform(self, n: int) -> int:
        """Draw an integer below n."""
        while (word := self.one()) >= ONE - ONE % n:
            pass
        return word % n

    def bits(self, threshold: int, lanes: int) -> list[int]:
        """Draw lanes of 64 bits."""
        made, undecided = [0] * lanes, [ONE - 1] * lanes
        for digit in range(63, 55, -1):
            for lane in range(lanes):
                word = self.one()
                if threshold >> digit & 1:
                    made[lane] |= undecided[lane] & ~word
                    undecided[lane] &= word
                else:
                    undecided[lane] &= ~word
        for lane in range(lanes):
            for bit in range(64):
                if undecided[lane] >> bit & 1 and self.one() >> 8 < threshold % (1 << 56):
                    made[lane] |= 1 << bit
        return made

    def members(self, m: int, s: int, own: int) -> list[int]:
        """Draw s of the other cells, in the order of drawing."""
        while True:
            halves = [half for _ in range(-(-s // 2)) for word in [self.one()] for half in (word % 2**32, word >> 32)]
            cells: list[int] = []
            fair = True
            for step in range(s):
                n = m - s + step
                product = halves[step] * n
                fair &= product % 2**32 >= 2**32 % n
                cells.append(n - 1 if product >> 32 in cells else product >> 32)
            if fair:
                return [cell + (cell >= own) for cell in cells]


@dataclass(frozen=True)
class Layout:
    """Number fields as (bound, least), and at most one subset (m, s) or list of bits."""

    numbers: list[tuple[int, int]]
    subset: tuple[int, int] | None = None
    bits: int = 0

    @property
    def form(self) -> str:
        """The form of the subset."""
        m, s = self.subset or (1, 1)
        if (
            4 * s * (m - s + 1) <= 2**26
            and 4 * s * (m - s + 1) * max(1, -(-(comb(m, s) - 1).bit_length() // 32)) <= 2**26
        ):
            return "rank"
        return "list" if s * self._each < m else "bitmap"

    @property
    def _each(self) -> int:
        return max(1, ((self.subset or (1, 1))[0] - 1).bit_length())

    @property
    def digits(self) -> int:
        """What the numbers take."""
        product = 1
        for bound, least in self.numbers:
            product *= bound - least
        return product

    @property
    def answers(self) -> int:
        """The integer of a report is below this."""
        if self.subset is None:
            return self.digits << self.bits
        m, s = self.subset
        return self.digits * {"rank": comb(m, s), "list": 1 << s * self._each, "bitmap": 1 << m}[self.form]

    @property
    def octets(self) -> int:
        """The length of a report."""
        return -(-(self.answers - 1).bit_length() // 8)

    def pack(self, numbers: list[int], big: Any = None) -> bytes:
        """Return the bytes of a report; `big` are cells, or bits as an integer."""
        total = big or 0
        if self.subset is not None:
            shifts = {"list": self._each, "bitmap": 0, "rank": 0}[self.form]
            if self.form == "rank":
                total = sum(comb(cell, place + 1) for place, cell in enumerate(big))
            elif self.form == "list":
                total = sum(cell << shifts * place for place, cell in enumerate(big))
            else:
                total = sum(1 << cell for cell in big)
        for (bound, least), value in reversed(list(zip(self.numbers, numbers, strict=True))):
            total = total * (bound - least) + value - least
        return int(total).to_bytes(self.octets, "little")

    def unpack(self, octets: bytes) -> tuple[list[int], Any]:
        """Return a report's numbers, and its cells or bits."""
        require(len(octets) == self.octets, "wrong_length")
        total = int.from_bytes(octets, "little")
        require(total < self.answers, "not_below_answers")
        numbers = []
        for bound, least in self.numbers:
            total, digit = divmod(total, bound - least)
            numbers.append(digit + least)
        return numbers, total if self.subset is None else self._cells(total)

    def _cells(self, total: int) -> list[int]:
        m, s = self.subset or (1, 1)
        if self.form == "rank":
            cells: list[int] = []
            for size in range(s, 0, -1):
                cell = size - 1
                while comb(cell + 1, size) <= total:
                    cell += 1
                total -= comb(cell, size)
                cells.insert(0, cell)
            return cells
        if self.form == "bitmap":
            require(total.bit_count() == s, "wrong_number_of_cells")
            return [cell for cell in range(m) if total >> cell & 1]
        cells = [total >> self._each * place & (1 << self._each) - 1 for place in range(s)]
        require(ascending(cells), "not_ascending")
        require(cells[-1] < m, "cell_out_of_range")
        return cells
