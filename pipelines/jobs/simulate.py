"""hushcount simulate: collect the same values many times in memory, and compare the losses with their prediction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hushcount.campaigns.dictionary import Dictionary, items_of, other_item, read_items
from hushcount.errors import UsageError
from hushcount.formats.lines import require_fit
from hushcount.formats.reading import TABLE_BYTES, read_file
from hushcount.items import canonical, fault_of_item, may_be_item
from hushcount.maths.bounds import largest_l1, least_l2
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import build, frequency_oracle, plan
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.parameters import Parameters, Value
from hushcount.oracles.simulation import Losses, Population, fresh_functions, gather, simulate
from hushcount.threads import available_threads
from pipelines.files.csv_cells import csv_header, numbered_csv_rows
from pipelines.files.item_files import read_listed

MOST_VALUES = 10**9
_MOST_SECONDS = 30 * 86400.0
_MOST_DIGITS = 100
_REPORT_SECONDS = 5e-8
"""Seconds that the fastest mechanism takes to encode a report."""
Track = Callable[[Iterable[Losses], int], Iterable[Losses]]
"""A function that takes the runs and their number, and returns the same runs; it can show progress on the way."""


@dataclass(frozen=True)
class SimulationResult:
    """The output of `hushcount simulate`. Losses are in shares of the reports, as [P26] section 6 defines them.

    Attributes:
        n, d: number of reports; number of items, with "other" if values are outside the dictionary.
        other: number of values outside the dictionary.
        l1, l2: sum of the items' absolute (l1) or squared (l2) errors, as the mean of all runs.
        worst_mse: the largest mean squared error of an item.
        predicted_l2: the expected l2, from the exact variance for these values; collisions are averaged over new pools.
        lower_bound_l2: lower bound of l2 for every unbiased estimator, [P26] Theorem 3.8.
        l1_at_bound: the l1 loss if l2 is `lower_bound_l2` and all items have equal variance, [P26] Corollary 2.1.
            `l1_at_bound` is no bound of l1.
        l2_ratio_to_bound, l2_ratio_to_predicted: None if the divisor is 0, as at a large epsilon, where estimates do
            not vary.
        bias_z_max: the largest mean error of an item, in standard deviations of the mean of all runs.
        encode_us_per_report, tally_us_per_report, decode_seconds: CPU time.
    """

    mechanism: str
    parameters: dict[str, Value]
    epsilon: float
    n: int
    d: int
    other: int
    runs: int
    l1: float
    l2: float
    worst_mse: float
    predicted_l2: float
    lower_bound_l2: float
    l1_at_bound: float
    l2_ratio_to_bound: float | None
    l2_ratio_to_predicted: float | None
    bias_z_max: float
    encode_us_per_report: float
    tally_us_per_report: float
    decode_seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)


def simulate_values(  # noqa: PLR0913  # each is an option of `simulate`
    name: str,
    epsilon: float,
    values: Path,
    *,
    dictionary: Path | None = None,
    runs: int = 10,
    seed: int | None = None,
    settings: Parameters | None = None,
    objective: Objective | None = None,
    track: Track = lambda parts, runs: parts,
) -> SimulationResult:
    """Encode, tally and estimate the values `runs` times.

    Args:
        name: name of the mechanism.
        epsilon: local budget of one report.
        values: file with one value a line, text or .gz; or a .csv with the columns item (or value) and count.
        dictionary: file of known items, one a line; None: the values in `values`.
        runs: number of collections; each collection draws new functions for a pool.
        seed: seed that makes the simulation repeatable; None: the system's random generator is used.
        settings: fixed parameters of the mechanism; all other parameters are planned.
        objective: what the plan minimises; the l2 loss by default.
        track: shows progress.

    Raises:
        UsageError: a file cannot be read, or a parameter is out of range; the message names the file or parameter.
    """
    frequency_oracle(name)
    if runs < 1:
        raise UsageError(f"runs is {runs}, must be at least 1")
    counts = read_counts(values)
    listed = _items_in(values, counts) if dictionary is None else read_listed(dictionary)
    counted = [counts[item] for item in listed.items]
    other = sum(counts.values()) - sum(counted)
    domain = len(counted) + (1 if other else 0)
    parameters, mechanism_of = planned(name, epsilon, domain, settings, objective, seed)
    mechanism = mechanism_of(0)
    items = items_of(mechanism, listed, listed.items)
    if other:
        items, counted = np.append(items, np.uint64(other_item(mechanism))), [*counted, other]
    population = Population(items, np.array(counted, dtype=np.int64))
    require_time(mechanism, population.n, len(items), runs)
    parts = simulate(mechanism_of, population, runs, seed, threads=available_threads())
    losses = gather(iter(track(parts, runs)))
    n, d = population.n, len(population.items)
    l2, predicted = float(losses.l2.mean()), float(losses.variance.sum())
    bound = least_l2(mechanism.epsilon, d, n)
    return SimulationResult(
        mechanism=name,
        parameters=parameters,
        epsilon=mechanism.epsilon,
        n=n,
        d=d,
        other=other,
        runs=runs,
        l1=float(losses.l1.mean()),
        l2=l2,
        worst_mse=float(losses.square.max()),
        predicted_l2=predicted,
        lower_bound_l2=bound,
        l1_at_bound=largest_l1(bound, d),
        l2_ratio_to_bound=l2 / bound if bound > 0.0 else None,
        l2_ratio_to_predicted=l2 / predicted if predicted > 0.0 else None,
        bias_z_max=float(np.abs(losses.bias_z).max()),
        encode_us_per_report=losses.encode_seconds / (runs * n) * 1e6,
        tally_us_per_report=losses.tally_seconds / (runs * n) * 1e6,
        decode_seconds=losses.decode_seconds / runs,
    )


def planned(
    name: str,
    epsilon: float,
    domain: int,
    settings: Parameters | None,
    objective: Objective | None,
    seed: int | None,
) -> tuple[dict[str, Value], Callable[[int], Mechanism]]:
    """Return the planned parameters of a mechanism, and the mechanism of each run by its number.

    Each run draws new functions for a pool unless the settings fix a seed; the parameters then lack it.

    Raises:
        UsageError: a parameter is out of range.
    """
    fixed = settings or {}
    try:
        parameters = plan(name, epsilon, domain, fixed, objective or Objective(), fresh_functions(seed, 0))
    except ValueError as error:
        raise UsageError(str(error)) from None
    fresh = "seed" in parameters and "seed" not in fixed
    if fresh:
        parameters.pop("seed")

    def mechanism_of(run: int) -> Mechanism:
        seeds = {"seed": fresh_functions(seed, run)} if fresh else {}
        return build(name, epsilon, domain, {**parameters, **seeds})

    return parameters, mechanism_of


def require_time(mechanism: Mechanism, n: int, items: int, runs: int) -> None:
    """Raise UsageError if so many collections of n reports would take more than a month."""
    seconds = runs * (mechanism.decode_cost(n, items).seconds + n * _REPORT_SECONDS)
    if seconds > _MOST_SECONDS:
        raise UsageError(
            f"runs is {runs:,}: so many collections of {n:,} reports take about {seconds / 86400:,.0f} days of one "
            f"thread, must take at most {_MOST_SECONDS / 86400:.0f}: give fewer runs or values"
        )


def read_counts(values: Path, more: Sequence[str] = ()) -> Counter[str]:
    """Return how often each value occurs in a file of values; UsageError if it has none, or too many.

    Args:
        more: further columns that a .csv must have; their texts come after the value, with tabs between.
    """
    counts: Counter[str] = Counter()
    for _, value, count in _rows(values, more):
        counts[value] += count
    if not counts.total():
        raise UsageError(f"{values} holds no values: give one value a line")
    if counts.total() > MOST_VALUES:
        raise UsageError(f"{values} holds {counts.total():,} values, must hold at most {MOST_VALUES:,}")
    return counts


def _items_in(path: Path, counts: Counter[str]) -> Dictionary:
    """Return the values in `counts`; raises UsageError, which names the lines with values that may not be items."""
    occurring = sorted(value for value in counts if value)
    if not all(map(may_be_item, occurring)):
        unfit = ((line, fault_of_item(value)) for line, value, _ in _rows(path) if value)
        require_fit(((line, fault) for line, fault in unfit if fault is not None), str(path))
    return Dictionary(tuple(occurring))


def _rows(path: Path, more: Sequence[str] = ()) -> Iterator[tuple[int, str, int]]:
    """Yield number, value and count of each line, or of each row of a .csv.

    If a row is not valid, the error is raised after the last row.
    """
    if path.suffix != ".csv":
        yield from ((line, value, 1) for line, value in enumerate(read_items(path), start=1))
        return
    raw, faults = read_file(path, "values", TABLE_BYTES), []
    header = csv_header(raw, str(path))
    column = next((name for name in ("item", "value") if name in header), None)
    if column is None or not {"count", *more} <= {*header}:
        raise UsageError(f"{path} must have the columns {', '.join(('item (or value)', *more))} and count")
    for line, row in numbered_csv_rows(raw, str(path), (column, *more, "count")):
        count = row["count"]
        if count.isdecimal() and len(count) <= _MOST_DIGITS:
            yield line, canonical("\t".join(row[name] for name in (column, *more))), int(count)
        else:
            faults.append((line, f"has the count {count[:_MOST_DIGITS]!r}, must be a whole number"))
    require_fit(faults, str(path))
