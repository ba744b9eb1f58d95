"""How often intervals of means hold the truth: python -m benchmarks.calibration_means.

The same clients answer again and again, and each collection gives the interval of their mean. For the interval of a
change, two collections of other clients are drawn from one law.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Literal

import numpy as np

from hushcount.arrays import FloatArray
from hushcount.maths.line import best_line
from hushcount.oracles.encoders.line import Line
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.responders.interval import Interval
from hushcount.oracles.simulation import SeededWords
from hushcount.oracles.tally import Tally
from hushcount.questions.means import Mean, change_of, mean_in

BAND = 0.935, 0.965
"""Shares of intervals of 95 % that must hold the truth."""
RUNS = 4_000
"""Intervals of each setting: a true coverage of 95 % is measured outside of BAND with probability 1e-5."""
Shape = Literal["log-normal", "even", "one place", "both ends"]


@dataclass(frozen=True, eq=False)
class Setting:
    """Clients with places in 0..1.

    Attributes:
        shape: of the places; "one place": 60 % of the clients have 0.31, and the others any place.
    """

    epsilon: float
    reports: int
    shape: Shape

    def places(self, seed: int) -> FloatArray:
        """Return float64[reports]: places of clients that are drawn."""
        random, n = np.random.default_rng(seed), self.reports
        if self.shape == "log-normal":
            return np.minimum(random.lognormal(-2.5, 1.0, n), 1.0)
        even = random.random(n)
        if self.shape == "one place":
            return np.where(random.random(n) < 0.6, 0.31, even)
        return np.round(even) if self.shape == "both ends" else even

    @cached_property
    def line(self) -> Line:
        """The line as it is planned."""
        points, spare = best_line(self.epsilon)
        return Line(points, spare, self.responder(points, spare).p)

    def responder(self, points: int, spare: int) -> Interval:
        """Return the responder of a line."""
        return Interval.spending(self.epsilon, points + 2 * spare, 2 * spare + 1)

    def mean(self, places: FloatArray, run: int) -> Mean:
        """Return the mean of one collection."""
        line, words = self.line, SeededWords(7, run)
        mechanism = Mechanism(line, self.responder(line.domain, line.spare))
        items = line.points(places, words.words(self.reports))
        counts = mechanism.new_tally(items)
        mechanism.accumulate(counts, mechanism.encode(items, words), items)
        return mean_in(mechanism, Tally(counts, self.reports, items))

    def drawn(self, run: int) -> Mean:
        """Return the mean of one collection of clients that are drawn for it."""
        return self.mean(self.places(run + 1), run)


def held(setting: Setting, runs: Sequence[int]) -> tuple[float, float]:
    """Return the share of intervals that hold the clients' mean, and of those that hold the change of 0."""
    places = setting.places(0)
    truth = float(places.mean())
    found = [setting.mean(places, run).of_clients.interval(0.95) for run in runs]
    steps = [change_of(setting.drawn(2 * run), setting.drawn(2 * run + 1)).interval(0.95) for run in runs]
    return (
        float(np.mean([low <= truth <= high for low, high in found])),
        float(np.mean([low <= 0.0 <= high for low, high in steps])),
    )


_SHAPES: tuple[Shape, ...] = ("log-normal", "even", "one place", "both ends")
SETTINGS = tuple(Setting(*one) for one in product((0.5, 1.0, 2.0, 4.0, 6.0), (300, 3_000), _SHAPES))


def main() -> int:
    """Print a line for each setting; return 1 if a share is outside of BAND."""
    outside = 0
    print(f"{'eps':>4} {'n':>7} {'shape':11} {'mean':>6} {'change':>7}   95 % intervals that hold the truth, in %")
    for setting in SETTINGS:
        shares = held(setting, range(RUNS))
        outside += not all(BAND[0] <= share <= BAND[1] for share in shares)
        mean, change = (100.0 * share for share in shares)
        print(f"{setting.epsilon:4g} {setting.reports:7,} {setting.shape:11} {mean:6.1f} {change:7.1f}", flush=True)
    print(f"{len(SETTINGS)} settings, {outside} outside of {100 * BAND[0]:g} to {100 * BAND[1]:g} %")
    return int(outside > 0)


if __name__ == "__main__":
    sys.exit(main())
