"""Simulated people: which values they have, by a stated law, and how many of them have each value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hushcount.arrays import IntArray
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary
from hushcount.campaigns.parts import NumberPart
from hushcount.errors import UsageError
from hushcount.numbers import position_of
from hushcount.oracles.simulation import SeededWords
from hushcount.randomness import SystemWords
from hushcount.report_making import measured
from hushcount.strata import COLUMN, OTHER
from pipelines.jobs.simulate import read_counts

UNLISTED = tuple(f"unlisted-{number}" for number in range(1, 6))
"""Values of people in no dictionary, which discovery may find."""
UNLISTED_SHARE = 0.1
_OPEN = tuple(f"value-{number}" for number in range(1, 31))


@dataclass(frozen=True, eq=False)
class Law:
    """How values are drawn: each person's value is drawn by itself.

    Attributes:
        name: the law in one sentence.
        values: all possible values.
        weights: float64[d], in proportion to the probability of each value.
    """

    name: str
    values: tuple[str, ...]
    weights: np.ndarray[tuple[int], np.dtype[np.float64]]

    def draw(self, people: int, seed: int | None) -> IntArray:
        """Return int64[people], the index of each person's value. Randomness: the system's, or repeatable by a seed."""
        words = (SystemWords() if seed is None else SeededWords(seed, 0)).words(people)
        upper = np.cumsum(self.weights) / self.weights.sum()
        uniform = (words >> np.uint64(11)) * 2.0**-53
        return np.minimum(np.searchsorted(upper, uniform, side="right"), len(self.values) - 1).astype(np.int64)


def zipf(dictionary: Dictionary | None, *, unlisted: bool) -> Law:
    """Return Zipf's law: the value of rank r has a share in proportion to 1/r, in the order of the dictionary.

    Args:
        dictionary: the campaign's; None: any text is a value, and 30 made-up values take the dictionary's place.
        unlisted: whether a tenth of the people have one of five values that no dictionary lists, also by Zipf's law.
    """
    listed = _OPEN if dictionary is None else tuple(dictionary.items)
    name = f"Zipf's law over {len(listed):,} values: the value of rank r has a share in proportion to 1/r"
    weights = _shares(len(listed))
    if dictionary is None or not unlisted:
        return Law(name, listed, weights)
    others = tuple(value for value in UNLISTED if value not in dictionary)
    parts = ((1.0 - UNLISTED_SHARE) * weights, UNLISTED_SHARE * _shares(len(others)))
    name += f"; {UNLISTED_SHARE:.0%} of the people have one of {len(others)} values that are not listed"
    return Law(name, listed + others, np.concatenate(parts))


def of_edges(part: NumberPart) -> Law:
    """Return the law of numbers that are, evenly often, one of the edges of the bins, or of the ends of a range."""
    return Law(f"each of {len(part.edges):,} edges evenly often", part.edges, np.ones(len(part.edges)))


def as_in(path: Path, axes: Sequence[str] = ()) -> Law:
    """Return the law of a file with one value a line, or of a .csv with item and count.

    Args:
        axes: of the campaign. Their coordinates follow a value, with tabs between; a .csv has a column `by.AXIS` for
            each.

    Raises:
        UsageError: the file has no value, an empty one, or more coordinates in a line than there are axes.
    """
    counts = read_counts(path, [f"{COLUMN}{axis}" for axis in axes])
    if (most := max(value.count("\t") for value in counts)) > len(axes) > 0:
        raise UsageError(f"{path} has {most} coordinates in a line, must have those of {', '.join(axes)}")
    if "" in counts:
        raise UsageError(f"{path} has an empty value: give one value a line")
    name = f"the shares of {len(counts):,} values in {path}"
    return Law(name, tuple(counts), np.array(list(counts.values()), dtype=np.float64))


def counted(values: Sequence[str], drawn: IntArray) -> list[tuple[str, int]]:
    """Return each value that somebody has, and how many people have it, the most frequent first."""
    held = np.bincount(drawn, minlength=len(values))
    order = np.argsort(-held, kind="stable")
    return [(values[index], int(held[index])) for index in order if held[index]]


def _shares(number: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    weights = 1.0 / np.arange(1, number + 1)
    return weights / weights.sum()


def of_values(campaign: Campaign, truth: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return how many people have each value, in whatever stratum, the most frequent first; of an address its item."""
    found: Counter[str] = Counter()
    for line, count in truth:
        found[_item(campaign, measured(campaign, line).value)] += count
    return found.most_common()


def _item(campaign: Campaign, value: str) -> str:
    return value if campaign.url is None else campaign.item_of(value) or OTHER


def table_of(
    campaign: Campaign, truth: Sequence[tuple[str, int]]
) -> tuple[tuple[str, ...], list[tuple[str | int, ...]]]:
    """Return columns and rows of the true counts: of each value, in each stratum if the campaign has axes."""
    if campaign.axes is None:
        return ("item", "count"), [*of_values(campaign, truth)]
    axes, rows = campaign.axes.strata.axes, Counter[tuple[str, ...]]()
    for line, count in truth:
        one = measured(campaign, line)
        by = dict(one.by)
        cell = (_item(campaign, one.value), *(axis.coordinates[axis.place(by.get(axis.name))] for axis in axes))
        rows[cell] += count
    return ("item", *(f"{COLUMN}{axis.name}" for axis in axes), "count"), [
        (*cell, count) for cell, count in rows.most_common()
    ]


def of_numbers(part: NumberPart, truth: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the true count of each bin in which somebody is, the lowest first, and of "other"; or the true mean."""
    if part.mean:
        low, high = part.bins.values
        people = sum(count for _, count in truth)
        place = sum(count * position_of(text, low, high) for text, count in truth) / max(people, 1)
        return [(f"mean {low + (high - low) * place:.6g} {part.unit}".rstrip(), people)]
    found: Counter[str] = Counter()
    for text, count in truth:
        found[part.bins.name_of(text)] += count
    return [(name or "other", found[name]) for name in (*part.bins.names, "") if found[name]]
