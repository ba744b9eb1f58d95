"""Simulated collections of a named frequency oracle, and the rows that they give."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from experiments.figure import Settings
from experiments.rows import Law, Row
from hushcount.arrays import FloatArray
from hushcount.oracles.catalogue import CATALOGUE, build
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.parameters import Parameters
from hushcount.oracles.simulation import Population, fresh_functions, simulate

_ALL = slice(None)


@dataclass(frozen=True, eq=False)
class Sample:
    """The errors of many collections.

    Attributes:
        errors: float64[runs, c], of every estimated share in every run.
        variance: float64[c], exact, with the collisions of pools that are drawn anew for each run.
    """

    errors: FloatArray
    variance: FloatArray

    @property
    def l1(self) -> FloatArray:
        """float64[runs]."""
        return np.abs(self.errors).sum(axis=1)

    @property
    def l2(self) -> FloatArray:
        """float64[runs]."""
        return (self.errors**2).sum(axis=1)

    @property
    def predicted_l1(self) -> float:
        """The sum over all items of the mean absolute error of a normal estimate with the item's exact variance."""
        return float(np.sqrt(2.0 * self.variance / np.pi).sum())


@dataclass(frozen=True)
class Case:
    """A frequency oracle with all parameters except the seed of a pool, which is drawn anew for each run.

    Attributes:
        oracle: its name in the catalogue.
        epsilon: local budget.
        domain: d, or None for an open domain.
        parameters: all except the seed.
    """

    oracle: str
    epsilon: float
    domain: int | None
    parameters: Parameters


def collect(case: Case, population: Population, settings: Settings, stream: str, interest: slice = _ALL) -> Sample:
    """Collect the population's values `settings.runs` times.

    Args:
        case: the frequency oracle to simulate.
        population: the items, and how many clients hold each.
        settings: runs, seed and threads.
        stream: name of the point, so that no two points share random words.
        interest: the items to keep errors of.
    """
    seed = stream_seed(settings.seed, stream)

    def mechanism_of(run: int) -> Mechanism:
        if not CATALOGUE[case.oracle].seeded:
            return build(case.oracle, case.epsilon, case.domain, case.parameters)
        parameters = {**case.parameters, "seed": fresh_functions(seed, run)}
        return build(case.oracle, case.epsilon, case.domain, parameters)

    parts = list(simulate(mechanism_of, population, settings.runs, seed, interest, settings.threads))
    return Sample(np.array([part.error for part in parts]), np.mean([part.variance for part in parts], axis=0))


def stream_seed(seed: int, stream: str) -> int:
    """Return a different seed for each named part of a figure."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{stream}".encode(), digest_size=8).digest(), "big")


def generator(seed: int, stream: str) -> np.random.Generator:
    """Return a generator for synthetic data; nothing here is on a privacy path."""
    return np.random.default_rng(stream_seed(seed, stream))


def mean_row(panel: str, series: str, x: float, values: FloatArray, predicted: float, law: Law = "mean") -> Row:
    """Return the row of a mean of runs.

    Args:
        values: float64[runs], one for each run; squares where `law` is "root".
        predicted: prediction of the mean, or of its root where `law` is "root".
    """
    mean = float(values.mean())
    return Row(
        panel,
        series,
        x,
        measured=float(np.sqrt(mean)) if law == "root" else mean,
        predicted=predicted,
        law=law,
        runs=len(values),
        spread=float(values.std(ddof=1)) / mean,
    )
