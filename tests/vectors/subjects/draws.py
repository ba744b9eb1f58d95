"""The draws that one report takes, in their order, and words that lead them to every edge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.responders.interval import Interval
from hushcount.oracles.responders.randomised_response import RandomisedResponse
from hushcount.oracles.responders.subset import Subset
from hushcount.oracles.responders.unary import Unary
from hushcount.oracles.responders.weighted_design import WeightedDesign
from hushcount.randomness import WORD_VALUES
from tests.vectors.subjects.script import word

LAST = WORD_VALUES - 1
HALF = 1 << 32


@dataclass(frozen=True)
class Uniform:
    """An integer below `bound`."""

    bound: int

    def words(self, edge: str, *name: object) -> list[int]:
        """Rejected words first, where there are any; then the greatest that is taken."""
        limit = WORD_VALUES - WORD_VALUES % self.bound
        if edge in ("kept", "turned"):
            return [limit, LAST, limit - 1] if limit < WORD_VALUES else [LAST]
        return [0] if edge == "zeros" else [self._taken(limit, *name)]

    def _taken(self, limit: int, *name: object) -> int:
        return next(drawn for again in range(64) if (drawn := word("uniform", again, *name)) < limit)


@dataclass(frozen=True)
class Below:
    """Whether a word is below the threshold."""

    threshold: int

    def words(self, edge: str, *_: object) -> list[int]:
        """Just below it, at it, and the ends."""
        return [{"kept": self.threshold - 1, "turned": self.threshold, "zeros": 0, "ones": LAST}[edge]]


@dataclass(frozen=True)
class Members:
    """A subset of `size` of the other `width - 1` cells, by Floyd's method."""

    width: int
    size: int

    def words(self, edge: str, *name: object) -> list[int]:
        """A list with one rejected half first, then halves at the edge, or that draw cell 0 at every step."""
        bounds = range(self.width - self.size, self.width)
        good = [self._fair(bound, *name, place) for place, bound in enumerate(bounds)]
        if edge == "zeros":
            # The first cell every time: each step but the first takes its last cell instead.
            return _words([1] * self.size) if all(bound < HALF // 2 for bound in bounds) else _words(good)
        edges = [(place, found) for place, bound in enumerate(bounds) if (found := _edges(bound)) is not None]
        if not edges:
            return _words(good)
        place, (rejected, taken) = edges[-1 if edge == "kept" else 0]
        first, second = list(good), list(good)
        first[place], second[place] = rejected, taken
        return [*_words(first), *_words(second)]

    def _fair(self, bound: int, *name: object) -> int:
        drawn = (word("member", again, *name) % HALF for again in range(64))
        return next(half for half in drawn if half * bound % HALF >= HALF % bound)


def _edges(bound: int) -> tuple[int, int] | None:
    """Return the half word that is only just rejected and one that is only just taken; None if the bound has none."""
    unfair = HALF % bound
    if not unfair or bound % 2 == 0:
        return None
    inverse = pow(bound, -1, HALF)
    return (unfair - 1) * inverse % HALF, unfair * inverse % HALF


def _words(halves: list[int]) -> list[int]:
    """Return the words whose low half, then whose high half, are these; the last high half is left over."""
    padded = [*halves, 0xABAD_CAFE] if len(halves) % 2 else halves
    return [low | high << 32 for low, high in zip(padded[::2], padded[1::2], strict=True)]


@dataclass(frozen=True)
class BitWords:
    """64 bits for each of the lanes, each set with probability `threshold / 2**64`."""

    threshold: int
    lanes: int

    def words(self, edge: str, *name: object) -> list[int]:
        """Digits that leave some bits of every lane undecided, then the words that decide them, at the edge."""
        undecided = {"kept": 1, "turned": 1 << 63 | 1, "zeros": 1 << 40, "ones": 0}[edge]
        drawn = []
        for digit in range(63, 55, -1):
            for lane in range(self.lanes):
                other = word("bits", digit, lane, *name)
                # The bits that stay undecided have the threshold's own digit; all others one that is drawn.
                same = undecided if self.threshold >> digit & 1 else 0
                drawn.append(other & ~undecided & LAST | same)
        # By chance other bits stay undecided as well: whoever adds words at the end decides them.
        rest = self.threshold & (1 << 56) - 1
        edge_words = [(rest << 8) - 1 if rest else 0, min(rest << 8, LAST)]
        open_bits = self._open(drawn)
        return [*drawn, *(edge_words[place % 2] for place in range(open_bits))]

    def _open(self, drawn: list[int]) -> int:
        number = 0
        for lane in range(self.lanes):
            undecided = LAST
            for place, digit in enumerate(range(63, 55, -1)):
                one = drawn[place * self.lanes + lane]
                undecided &= one if self.threshold >> digit & 1 else ~one & LAST
            number += undecided.bit_count()
        return number


Draw = Uniform | Below | Members | BitWords


def draws(mechanism: Mechanism, item: int) -> Iterator[Draw]:
    """Yield what one report takes, in order: the encoder's function, then the responder's answer."""
    yield from (Uniform(field.values) for field in mechanism.encoder.fields)
    responder = mechanism.responder
    if isinstance(responder, Unary):
        yield BitWords(responder.flip, -(-responder.width // 64))
    yield Below(responder.keep)  # type: ignore[attr-defined]
    if isinstance(responder, RandomisedResponse):
        yield Uniform(responder.width - 1)
    elif isinstance(responder, Interval):
        yield Uniform(responder.size)
        yield Uniform(responder.width - responder.size)
    elif isinstance(responder, Subset):
        yield Uniform(responder.size)
        yield Members(responder.width, responder.size)
    elif isinstance(responder, WeightedDesign):
        design = responder._design
        holding = design.cell_weights[item]
        yield Uniform(holding)
        yield Uniform(design.total - holding)
