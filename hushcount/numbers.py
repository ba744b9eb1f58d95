"""Numbers: a client replaces a number by the name of its bin, or for a mean by its place in a range."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from hushcount.formats.canonical_json import number_text

MOST_BINS = 1024
_MOST_DIGITS = 40
"""Characters of the longest text that is read as a number; the text of a double has at most 25."""
_NUMBER = re.compile(r"-?(?:Infinity|[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)", re.ASCII)


def text_of_number(number: float) -> str:
    """Return a number's text as JavaScript's String writes it, so that both clients have one text for each number."""
    if math.isfinite(number):
        return number_text(float(number))
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def number_of(text: str) -> float | None:
    """Return the number that a text writes in decimal digits, rounded to the nearest double; None: it writes none."""
    if len(text) > _MOST_DIGITS or _NUMBER.fullmatch(text) is None:
        return None
    return float(text)


def begin_of(name: str) -> float | None:
    """Return the number at which a bin begins, by its name; None: it begins at no number, or is no bin."""
    return number_of(name.partition(" ")[0])


def position_of(text: str, low: float, high: float) -> float:
    """Return the place in 0..1 of a number between `low` and `high`; of a number outside them, that of the nearest end.

    A text that writes no number has the place 0, like the lowest number.
    """
    number = number_of(text)
    return 0.0 if number is None else (min(max(number, low), high) - low) / (high - low)


@dataclass(frozen=True)
class Bins:
    """Intervals that cover all numbers: below the first edge, from each edge to below the next, the last and above.

    Args:
        edges: at least one, in decimal digits, in rising order.
        unit: what the numbers count, such as "ms"; may be empty.
    """

    edges: tuple[str, ...]
    unit: str = ""

    def __len__(self) -> int:
        return len(self.edges) + 1

    @cached_property
    def values(self) -> tuple[float, ...]:
        """The edges as numbers."""
        return tuple(map(float, self.edges))

    @property
    def are_counts(self) -> bool:
        """Whether the bins are the counts 0, 1, 2 and so on, and the last one all higher counts."""
        return self.edges == count_edges(len(self.edges))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each bin, the lowest first; a bin of one count has the count's name."""
        return tuple(self.span(place, place) for place in range(len(self)))

    def span(self, first: int, last: int) -> str:
        """Return a name of the bins from place `first` to place `last` together."""
        unit = f" {self.unit}" if self.unit else ""
        is_lowest, is_highest = first == 0, last == len(self.edges)
        if is_lowest and is_highest:
            return "any number"
        if is_highest:
            return f"{self.edges[first - 1]}{unit} or more"
        if self.are_counts:
            return f"{first}{unit}" if first == last else f"{first} to {last}{unit}"
        return (
            f"below {self.edges[last]}{unit}" if is_lowest else f"{self.edges[first - 1]} to {self.edges[last]}{unit}"
        )

    def ends(self, first: int, last: int) -> tuple[float | None, float | None]:
        """Return the lower and the upper end of bins together; None where they have no end."""
        return (
            None if first == 0 else self.values[first - 1],
            None if last == len(self.edges) else self.values[last],
        )

    def name_of(self, text: str) -> str:
        """Return the name of the bin that has a number; "" if a text writes no number, so that it counts as "other".

        A number below all edges is in the first bin, and one above them is in the last; "NaN" writes no number.
        """
        number = number_of(text)
        return "" if number is None else self.names[bisect_right(self.values, number)]


def edges_between(low: float, high: float, bins: int, scale: str) -> tuple[str, ...]:
    """Return the edges of `bins` bins that end at about `high`, with three significant digits if the bins permit it.

    Args:
        low: lower end of the first bin; with `scale` "log", 0 means that the first bin ends at 1.
        high: upper end of the last bin but one, so that larger numbers have a bin of their own.
        bins: number of bins, from 2 to MOST_BINS.
        scale: "linear", bins of equal width; or "log", bins whose ends have equal ratios.

    Raises:
        ValueError: the range is empty, or "log" cannot begin there.
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"the range is {text_of_number(low)} to {text_of_number(high)}, must rise")
    if not 2 <= bins <= MOST_BINS:
        raise ValueError(f"bins is {bins}, must be from 2 to {MOST_BINS:,}")
    # From 0, the first of the equal ratios begins at 1.
    is_log, from_zero = scale == "log", scale == "log" and low == 0
    if is_log and low < 0:
        raise ValueError("bins with equal ratios must begin at 0 or above: give linear bins, or a file of edges")
    if from_zero and (high <= 1 or bins == 2):
        raise ValueError("bins with equal ratios from 0 begin with an edge at 1: give 3 bins or more that end above 1")
    first = 1.0 if from_zero else low
    parts = [place / (bins - 2) for place in range(bins - 1)] if from_zero else []
    parts = parts or [place / (bins - 1) for place in range(1, bins)]
    exact = [first * (high / first) ** part if is_log else low + (high - low) * part for part in parts]
    for digits in (3, 4, 6, 9, 15):
        edges = tuple(text_of_number(float(f"{edge:.{digits}g}")) for edge in exact)
        if are_rising(edges):
            return edges
    raise ValueError(f"the range is too narrow for {bins} bins: give fewer")


def count_edges(most: int) -> tuple[str, ...]:
    """Return the edges of a bin for each of the counts 0, 1, ... below `most`, and one for `most` or more."""
    return tuple(map(str, range(1, most + 1)))


def are_rising(edges: Sequence[str]) -> bool:
    """Return whether edges rise from one to the next."""
    return all(float(one) < float(other) for one, other in pairwise(edges))
