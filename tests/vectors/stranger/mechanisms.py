"""Every mechanism: its parameters, its function, its answer."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.vectors.stranger.basics import Refused, hashed, require
from tests.vectors.stranger.numbers import Layout, Words, flip, probability, spending, symmetric

P61 = (1 << 61) - 1
_POOL = ("k", "m", "seed")
TAKES = {
    **dict.fromkeys(("grr", "sue", "oue", "he", "hr"), ()),
    **dict.fromkeys(("ss", "ais"), ("s",)),
    **dict.fromkeys(("rappor", "apple-cms", "hcms"), _POOL),
    **dict.fromkeys(("blh", "olh", "ocms", "ocms-l2", "ocms-round"), ("B",)),
    "ocms-mse": ("f", "B"),
    "wss": ("design",),
    "rhr": ("b",),
    "line": ("m", "b"),
    "gcms": (*_POOL, "s"),
    "gcms-target": (*_POOL, "f", "s"),
}
MAY_TAKE = {"wss": ("s",), "gcms": ("p",)}
OPEN = {name for name, takes in TAKES.items() if "seed" in takes or "B" in takes or name == "ais"}


@dataclass(frozen=True)
class Mechanism:
    """A mechanism as the campaign says it; `domain` is None without a dictionary."""

    name: str
    epsilon: float
    domain: int | None
    parameters: dict[str, Any]

    def __getattr__(self, letter: str) -> int:
        value = self.parameters[letter]
        if isinstance(value, str) and re.fullmatch("[1-9][0-9]{15,19}", value) and int(value) >= 1 << 53:
            return int(value)
        require(isinstance(value, int) and not isinstance(value, bool), "wrong_type")
        return int(value)

    def check(self) -> None:
        """Refuse what no campaign may have."""
        require(self.name in TAKES, "unknown_mechanism")
        require(1e-4 <= self.epsilon <= 40, "epsilon_out_of_range")
        takes, given = TAKES[self.name], self.parameters
        require(set(given) <= {*takes, *MAY_TAKE.get(self.name, ())}, "unknown_parameter")
        require(self.domain is not None or self.name in OPEN, "needs_dictionary")
        require(self.domain is None or 2 <= self.domain < 1 << 31, "domain_out_of_range")
        require(set(takes) <= set(given), "missing_parameter")
        if "seed" in takes:
            require(1 <= self.k <= 1 << 18 and 2 <= self.m <= 1 << 24, "parameter_out_of_range")
            require(re.fullmatch("[0-9a-f]{64}", str(given["seed"])) is not None, "parameter_out_of_range")
        if "f" in takes:
            require(0 <= given["f"] <= 1, "parameter_out_of_range")
        if self.name in ("ss", "gcms", "gcms-target"):
            require(self.s * self.width <= 1 << 34, "parameter_out_of_range")
        if self.name == "line":
            require(self.domain == 2, "domain_out_of_range")
            require(2 <= self.m <= 256 and 0 <= self.b <= self.m, "parameter_out_of_range")
        elif "b" in takes:
            require(1 <= self.b <= (self.domain or 0).bit_length(), "parameter_out_of_range")
        if "B" in takes:
            require(2 <= self.B <= self.prime, "parameter_out_of_range")
        if "design" in takes:
            design(str(given["design"]))
        try:
            self.keep  # noqa: B018
        except Refused as refused:
            known = refused.reason in ("wrong_type", "spends_more")
            raise Refused(refused.reason if known else "parameter_out_of_range") from None

    @property
    def prime(self) -> int:
        """P."""
        return P61 if self.domain is None else prime_at_least(self.domain)

    @property
    def order(self) -> int:
        """K of the Hadamard encoder."""
        items = self.m if self.name == "hcms" else self.domain or 0
        return 1 << (-(-items // self.blocks) - 1).bit_length()

    @property
    def blocks(self) -> int:
        """Blocks of the Hadamard encoder."""
        return 1 << self.b - 1 if self.name == "rhr" else 1

    @property
    def width(self) -> int:
        """The number of cells."""
        if self.name == "wss":
            return int(design(str(self.parameters["design"]))["width"])
        if self.name in ("he", "hr", "rhr", "hcms"):
            return 2 * self.blocks
        if self.name == "line":
            return self.m + self.size - 1
        if "seed" in TAKES[self.name]:
            return self.m
        if "B" in TAKES[self.name]:
            return self.B
        return self.prime if self.name == "ais" else self.domain or 0

    @property
    def size(self) -> int:
        """The number of cells of an answer."""
        if self.name == "line":
            return 2 * self.b + 1
        return self.s if "s" in TAKES[self.name] else 1

    @property
    def keep(self) -> int:
        """The threshold of the own cell."""
        if self.name in ("sue", "rappor", "apple-cms"):
            return symmetric(self.epsilon)
        if self.name == "oue":
            return 1 << 63
        if self.name == "wss":
            odds = greatest_odds(str(self.parameters["design"]))
            return spending(self.epsilon, odds.numerator + odds.denominator, odds.denominator)
        size = self.size
        if "p" in self.parameters:
            p = self.parameters["p"]
            require(not isinstance(p, bool), "wrong_type")
            require(size / self.m < p < 1, "parameter_out_of_range")
            require(math.log(p * (self.m - size) / ((1 - p) * size)) <= self.epsilon, "spends_more")
            return probability(p)
        return spending(self.epsilon, self.width, size)

    @property
    def functions(self) -> list[tuple[int, int]]:
        """The encoder's fields, as (bound, least)."""
        if "B" in TAKES[self.name] or self.name == "ais":
            slope = (max(1, (self.prime - 1) // 2) + 1, 1)
            return [slope, (self.prime, 0)] if self.width < self.prime else [slope]
        rows = [(self.k, 0)] if "seed" in TAKES[self.name] else []
        return [*rows, (self.order, 0)] if self.name in ("he", "hr", "rhr", "hcms") else rows

    @property
    def layout(self) -> Layout:
        """The fields of a report."""
        if self.name in ("ss", "gcms", "gcms-target"):
            return Layout(self.functions, subset=(self.width, self.s))
        if self.name in ("sue", "oue", "rappor", "apple-cms"):
            return Layout(self.functions, bits=self.width)
        if self.name == "wss":
            return Layout([(len(rows_of(str(self.parameters["design"]))), 0)])
        return Layout([*self.functions, (self.width, 0)])

    def cell(self, item: int, function: list[int]) -> int:
        """Return the item's cell."""
        if "B" in TAKES[self.name] or self.name == "ais":
            slope, shift = (*function, 0)[:2]
            return (slope * item + shift) % self.prime % self.width
        if "seed" in TAKES[self.name]:
            item = pool_cell(str(self.parameters["seed"]), self.k, self.m, function[0], item)
        if self.name in ("he", "hr", "rhr", "hcms"):
            return hadamard_cell(item, self.blocks, function[-1])
        return self.width - 1 - item if self.name == "line" else item

    def report(self, item: int, words: Words) -> bytes:
        """Return a client's answer."""
        function = [words.uniform(bound - least) + least for bound, least in self.functions]
        own, m = self.cell(item, function), self.width
        if self.name in ("sue", "oue", "rappor", "apple-cms"):
            turned = flip(self.epsilon, self.keep) if self.name == "oue" else 2**64 - self.keep
            lanes = words.bits(turned, -(-m // 64))
            bits = sum(lane << 64 * place for place, lane in enumerate(lanes)) % (1 << m) & ~(1 << own)
            return self.layout.pack(function, bits | words.event(self.keep) << own)
        kept = words.event(self.keep)
        if self.name == "wss":
            return self.layout.pack([self._row(own, kept, words)])
        if self.name in ("ais", "line"):
            before, after = words.uniform(self.size), words.uniform(m - self.size)
            return self.layout.pack([*function, (own - before if kept else own + 1 + after) % m])
        if self.layout.subset is not None:
            place = words.uniform(self.s)
            cells = words.members(m, self.s, own)
            if kept:
                cells[place] = own
            return self.layout.pack(function, sorted(cells))
        step = words.uniform(m - 1)
        return self.layout.pack([*function, own if kept else (own + step + 1) % m])

    def _row(self, own: int, kept: bool, words: Words) -> int:
        named = str(self.parameters["design"])
        rows, turns = rows_of(named), design(named)["turns"]
        moved = own < turns
        chosen = []
        for holding in (True, False):
            several = [
                (row, weight) for row, (cells, weight) in enumerate(rows) if ((0 if moved else own) in cells) is holding
            ]
            drawn = words.uniform(sum(weight for _, weight in several))
            for row, weight in several:
                drawn -= weight
                if drawn < 0:
                    chosen.append(row)
                    break
        block, turn = divmod(chosen[0] if kept else chosen[1], turns)
        return int(block * turns + (turn + own * moved) % turns)


def prime_at_least(least: int) -> int:
    """Return the least prime at or above a number."""
    while least < 2 or any(least % factor == 0 for factor in range(2, math.isqrt(least) + 1)):
        least += 1
    return least


def _chacha20(key: bytes, counter: int) -> bytes:
    """Return a block of ChaCha20 (RFC 8439, section 2.3) with the pool's nonce."""
    begin = b"expand 32-byte k" + key + counter.to_bytes(4, "little") + b"LibsodiumDRG"
    first = [int.from_bytes(begin[place : place + 4], "little") for place in range(0, 64, 4)]
    state = list(first)
    for _ in range(10):
        for a, b, c, d in ROUND:
            for to, add, turned, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                state[to] = (state[to] + state[add]) % 2**32
                mixed = state[turned] ^ state[to]
                state[turned] = (mixed << by | mixed >> 32 - by) % 2**32
    return b"".join(((one + two) % 2**32).to_bytes(4, "little") for one, two in zip(first, state, strict=True))


ROUND = (
    (0, 4, 8, 12),
    (1, 5, 9, 13),
    (2, 6, 10, 14),
    (3, 7, 11, 15),
    (0, 5, 10, 15),
    (1, 6, 11, 12),
    (2, 7, 8, 13),
    (3, 4, 9, 14),
)


def coefficients(seed: str, k: int, row: int) -> list[int]:
    """Return c0, c1, c2 of a function of the pool."""
    made = []
    for power in range(3):
        block, place = divmod(k * power + row, 8)
        octets = _chacha20(bytes.fromhex(seed), block)
        made.append(int.from_bytes(octets[8 * place : 8 * place + 8], "little") % P61)
    return made


def pool_cell(seed: str, k: int, m: int, row: int, item: int) -> int:
    """Return the cell of an item under a function of the pool."""
    c0, c1, c2 = coefficients(seed, k, row)
    return (c0 + c1 * item + c2 * item * item) % P61 % m


def hadamard_cell(item: int, blocks: int, column: int) -> int:
    """Return the cell of an item under a column."""
    return 2 * (item % blocks) + (column & item // blocks).bit_count() % 2


@lru_cache(maxsize=16)
def design(named: str) -> dict[str, Any]:
    """Return a design as a file has it, with its blocks as lists of cells."""
    parts = re.fullmatch("([0-9]+)-([0-9]+)-([0-9a-f]{64})", named)
    if parts is None:
        raise Refused("unknown_design")
    width, size, digest = int(parts[1]), int(parts[2]), parts[3]
    path = Path(__file__).parents[3] / "hushcount" / "designs" / "designs.json"
    every = json.loads(path.read_text(encoding="ascii"))["designs"]
    known = [one for one in every if (one["width"], one["size"]) == (width, size)]
    for one in known:
        bitmaps = [int.from_bytes(bytes.fromhex(block), "little") for block in one["blocks"]]
        one["blocks"] = [[cell for cell in range(width) if bitmap >> cell & 1] for bitmap in bitmaps]
    if size == 2 and width % 2:
        pairs = [[0, step] for step in range(1, (width + 1) // 2)]
        known.append({"width": width, "size": 2, "turns": width, "blocks": pairs, "weights": [1] * len(pairs)})
    for one in known:
        whole = [one["width"], one["size"], one["turns"], one["blocks"], one["weights"]]
        if hashed(json.dumps(whole, separators=(",", ":")).encode(), "hushcount design").hex() == digest:
            return dict(one)
    raise Refused("unknown_design")


@lru_cache(maxsize=16)
def rows_of(named: str) -> list[tuple[set[int], int]]:
    """Return the cells and the weight of every row."""
    one = design(named)
    turns = one["turns"]
    return [
        ({(cell + turn) % turns if cell < turns else cell for cell in block}, weight)
        for block, weight in zip(one["blocks"], one["weights"], strict=True)
        for turn in range(turns)
    ]


def greatest_odds(named: str) -> Fraction:
    """Return the greatest (T - R') / R of two cells."""
    rows = rows_of(named)
    total = sum(weight for _, weight in rows)
    by_cell = [sum(weight for cells, weight in rows if cell in cells) for cell in range(design(named)["width"])]
    low, second = sorted(by_cell)[:2]
    return max(Fraction(total - second, low), Fraction(total - low, second))
