"""The numbers of `hushcount campaign new`: a range for a mean or for bins, a file of edges, or a count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from hushcount.campaigns.parts import NumberPart
from hushcount.errors import UsageError
from hushcount.formats.models import explain
from hushcount.numbers import MOST_BINS, Bins, count_edges, edges_between, text_of_number
from pipelines.console.options import USUAL_BINS
from pipelines.files.item_files import read_listed

_SCALES = ("linear", "log")
_DIGITS = 9
_PARTS = 4
"""Bins into which the interval of a quantile is cut for the next epoch."""
MEAN = "line"
"""The mechanism that is taken for a mean."""


def number_part(
    number: str | None, bins: str | None, unit: str | None, most_count: int | None, mean: bool
) -> NumberPart | None:
    """Return the section that options of `campaign new` ask for; None if values are no numbers.

    Args:
        number: range, as in 0:60000.
        bins: "linear:N" or "log:N" of the range; or, without a range, a file of edges, one a line.
        unit: of the numbers.
        most_count: the last bin has this count and all higher ones.
        mean: clients report for the mean of the range.

    Raises:
        UsageError: an option is invalid, or contradicts another one.
    """
    if mean and (number is None or bins is not None):
        raise UsageError("--mean needs a range and no bins: give --number LOW:HIGH, and leave --bins and --count out")
    if most_count is not None:
        if number is not None or bins is not None:
            raise UsageError("--count has bins of its own: leave --number and --bins out")
        edges = count_edges(most_count)
    elif number is not None:
        edges = (
            tuple(map(text_of_number, _range(number))) if mean else _edges(number, USUAL_BINS if bins is None else bins)
        )
    elif bins is not None:
        edges = read_listed(Path(bins)).items
    elif unit is not None:
        raise UsageError(f"unit is {unit!r}, but values are no numbers: give --number LOW:HIGH, --bins FILE or --count")
    else:
        return None
    try:
        return NumberPart(edges=edges, unit=unit or "", mean=mean)
    except ValidationError as error:
        raise UsageError(f"these bins are invalid: {explain(error)}") from None


def _edges(number: str, bins: str) -> tuple[str, ...]:
    scale, _, many = bins.partition(":")
    if scale not in _SCALES or not (many.isascii() and many.isdigit() and len(many) < _DIGITS):
        raise UsageError(
            f"bins is {bins!r}, must be linear:N or log:N, N from 2 to {MOST_BINS:,}; for a file of edges leave "
            "--number out"
        )
    low, high = _range(number)
    try:
        return edges_between(low, high, int(many), scale)
    except ValueError as error:
        raise UsageError(f"bins are {bins} of {number}: {error}") from None


def _range(number: str) -> tuple[float, float]:
    """Return the ends of a range."""
    try:
        low, high = map(float, number.split(":"))
    except ValueError:
        low = high = 0.0
    if not -math.inf < low < high < math.inf:
        raise UsageError(f"number is {number!r}, must be a lowest and a highest number, as in 0:60000")
    return low, high


def edges_near(bins: Bins, intervals: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Return the edges of an epoch's bins that are narrow around the quantiles of the epoch before (docs/adr/0060).

    Each interval is cut into four bins, of equal ratios if it is above 0, and else of equal width; a cut is left out if
    an end of another interval, or a cut of one, is nearer than half of such a bin. The lowest and the highest edge
    stay, so that a quantile that moves away is still seen.

    Args:
        bins: of the epoch before.
        intervals: first and last place of the bins that may have each quantile.

    Raises:
        UsageError: no interval can be cut, because each is a single count, or lies below or above all edges.
    """
    edges, last = bins.values, len(bins.values) - 1
    spans = [(max(first - 1, 0), min(then, last)) for first, then in intervals]
    if bins.are_counts or all(first == then for first, then in spans):
        raise UsageError(
            "these quantiles are of single counts, or below or above all edges: give --number LOW:HIGH or --bins FILE "
            "of another range to the next epoch"
        )
    found = {edges[place]: bins.edges[place] for place in (0, last, *(place for span in spans for place in span))}
    for low, high in sorted({(edges[first], edges[then]) for first, then in spans if first < then}):
        place, scale = (math.log, "log") if low > 0 else (float, "linear")
        half = (place(high) - place(low)) / _PARTS / 2.0
        cuts: tuple[str, ...] = ()
        # An interval that is too narrow for different edges is not cut.
        with suppress(ValueError):
            cuts = edges_between(low, high, _PARTS + 1, scale)[:-1]
        for edge in cuts:
            near = (abs(place(other) - place(float(edge))) < half for other in found if low <= other <= high)
            if not any(near):
                found[float(edge)] = edge
    return tuple(found[edge] for edge in sorted(found))
