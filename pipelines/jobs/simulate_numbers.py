"""Simulated collections of numbers: what answers on them will be like, and whether their intervals hold the truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hushcount.arrays import UInt64Array
from hushcount.campaigns.dictionary import Dictionary, in_random_order, tally_items
from hushcount.campaigns.parts import NumberPart
from hushcount.errors import UsageError
from hushcount.maths.objectives import Objective
from hushcount.numbers import Bins, number_of, position_of
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.parameters import Parameters, Value
from hushcount.oracles.simulation import SeededWords
from hushcount.oracles.tally import Tally
from hushcount.questions.means import mean_in
from hushcount.questions.quantiles import Quantiles, Sums, quantiles, sums_in
from hushcount.randomness import SystemWords, Words
from pipelines.jobs.simulate import planned, read_counts, require_time

SHARES = (0.5, 0.9, 0.99)
"""Quantiles that are simulated: those that `ask quantile` shows without --at."""
_PEOPLE = 1 << 16
_AT_ONCE = 1 << 20
Ends = tuple[float | None, float | None]
"""Lower and upper end of some bins, in the unit of the numbers; None where they have no end."""
Track = Callable[[Iterable[int], int], Iterable[int]]
"""A function that takes the runs and their number, and returns the same runs; it can show progress on the way."""


@dataclass(frozen=True)
class Asked:
    """A question on numbers, answered by each simulated collection.

    Attributes:
        question: "mean", or the share of a quantile, as "50%".
        truth, estimate: the mean, twice; or the ends of the bin that has the quantile. The estimate, and the interval
            of 95 %, are those of the first collection.
        held: share of the collections with an interval that holds the truth.
    """

    question: str
    truth: Ends
    estimate: Ends
    interval: Ends
    held: float


@dataclass(frozen=True)
class NumberSimulation:
    """The output of `hushcount simulate` for numbers.

    Attributes:
        n: number of values.
        other: values that are no numbers: quantiles leave them out, and a mean has them at the lower end of its range.
        runs: number of collections.
        asked: the questions; their numbers are in the unit.
    """

    mechanism: str
    parameters: dict[str, Value]
    epsilon: float
    unit: str
    n: int
    other: int
    runs: int
    asked: tuple[Asked, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)


def simulate_numbers(  # noqa: PLR0913  # each is an option of `simulate`
    name: str,
    epsilon: float,
    values: Path,
    *,
    part: NumberPart,
    runs: int = 10,
    seed: int | None = None,
    settings: Parameters | None = None,
    objective: Objective | None = None,
    track: Track = lambda parts, runs: parts,
) -> NumberSimulation:
    """Let clients report the numbers of a file `runs` times, and answer for their mean, or for their quantiles.

    Args:
        part: range or bins, as a campaign file has them; all other arguments as in `simulate_values`.

    Raises:
        UsageError: the file cannot be read or holds no number, or a parameter is out of range.
    """
    counts = read_counts(values)
    other = sum(count for text, count in counts.items() if number_of(text) is None)
    if other == counts.total():
        raise UsageError(f"{values} holds no number: give one number a line, in decimal digits")
    parameters, mechanism_of = planned(name, epsilon, len(part.items) + 1, settings, objective, seed)
    require_time(mechanism_of(0), counts.total(), len(part.items), runs)
    answers = _means if part.mean else _quantiles
    found = answers(part.bins, counts, mechanism_of, seed, track(range(runs), runs))
    return NumberSimulation(
        mechanism=name,
        parameters=parameters,
        epsilon=mechanism_of(0).epsilon,
        unit=part.unit,
        n=counts.total(),
        other=other,
        runs=runs,
        asked=found,
    )


def even_quantiles(mechanism: Mechanism, bins: Bins, reports: int) -> Quantiles:
    """Return quantiles as so many reports will show them if the numbers are even over the bins.

    Errors are those of a simulated collection, which always is the same; counts are the expected ones.

    Args:
        mechanism: over the bins and "other"; without a pool, which has errors that are no sums over reports.
    """
    items = _items(bins)[:-1]
    drawn = sums_in(mechanism, _collected(mechanism, np.resize(items, _PEOPLE), SeededWords(0, 0)), bins, items)
    each, below = reports / _PEOPLE, np.arange(1.0, len(bins)) * (reports / len(bins))
    under, over, every = drawn.variances
    sums = Sums(reports, bins, below, reports - below, float(reports), (each * under, each * over, each * every))
    return quantiles(sums, SHARES)


def _means(
    bins: Bins, counts: Counter[str], mechanism_of: Callable[[int], Mechanism], seed: int | None, runs: Iterable[int]
) -> tuple[Asked, ...]:
    low, high = bins.values
    places = np.repeat([position_of(text, low, high) for text in counts], [*counts.values()])
    truth, found = low + (high - low) * float(places.mean()), []
    for run in runs:
        mechanism, words = mechanism_of(run), _words(seed, run)
        line = mechanism.encoder.line
        if line is None:
            raise UsageError("--mean has the mechanism line: leave --mechanism out")
        tally = _collected(mechanism, line.points(places, words.words(len(places))), words)
        found.append(mean_in(mechanism, tally).between(low, high).of_clients)
    ends = [one.interval(0.95) for one in found]
    held = float(np.mean([first <= truth <= last for first, last in ends]))
    return (Asked("mean", (truth, truth), (found[0].value, found[0].value), ends[0], held),)


def _quantiles(
    bins: Bins, counts: Counter[str], mechanism_of: Callable[[int], Mechanism], seed: int | None, runs: Iterable[int]
) -> tuple[Asked, ...]:
    items, held = _items(bins), Counter[str]()
    for text, count in counts.items():
        held[bins.name_of(text)] += count
    clients = np.repeat(items, [held[name] for name in (*bins.names, "")])
    upto = np.cumsum([held[name] for name in bins.names])
    truth = [int(np.argmax(upto >= share * upto[-1])) for share in SHARES]
    found = []
    for run in runs:
        mechanism = mechanism_of(run)
        tally = _collected(mechanism, clients, _words(seed, run))
        found.append(quantiles(sums_in(mechanism, tally, bins, items[:-1]), SHARES).found)
    return tuple(
        Asked(
            f"{share:.0%}",
            bins.ends(true, true),
            bins.ends(each[0].at, each[0].at),
            bins.ends(*each[0].alone),
            float(np.mean([one.alone[0] <= true <= one.alone[1] for one in each])),
        )
        for share, true, each in zip(SHARES, truth, zip(*found, strict=True), strict=True)
    )


def _items(bins: Bins) -> UInt64Array:
    """Return uint64[bins + 1]: the item of each bin, the lowest first, and "other", as a campaign has them."""
    return Dictionary(in_random_order(bins.names)).positions((*bins.names, ""))


def _words(seed: int | None, run: int) -> Words:
    return SystemWords() if seed is None else SeededWords(seed, run)


def _collected(mechanism: Mechanism, clients: UInt64Array, words: Words) -> Tally:
    """Return the tally of one report of each client; `clients`: uint64[n], their items."""
    items = tally_items(mechanism)
    counts = mechanism.new_tally(items)
    for start in range(0, len(clients), _AT_ONCE):
        mechanism.accumulate(counts, mechanism.encode(clients[start : start + _AT_ONCE], words), items)
    return Tally(counts, len(clients), items)
