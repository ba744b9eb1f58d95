"""Propose the window and the least epsilon that show the share that matters, and say what each epsilon shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from hushcount.campaigns.dictionary import Dictionary
from hushcount.collection.windows import duration_text
from hushcount.errors import UsageError
from hushcount.maths.figures import odds_of
from hushcount.oracles.catalogue import ANY_SEED, CATALOGUE, build
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.sight import Sight, least_share, percent, sight_of
from hushcount.planning.planner import ASKED, MOST_REPORTS, Candidate, Task, make_plan

GRID = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""The epsilons that are proposed. Above 4 a report changes odds by more than a factor of 55: nobody is led there."""
DAY, WEEK = timedelta(days=1), timedelta(days=7)
_SKETCHES = tuple(name for name, oracle in CATALOGUE.items() if oracle.open_domain and oracle.seeded)
_SKETCH_MIB = 64.0
_KEPT = 32
"""Plans that are kept in memory: of each epsilon of GRID, for a day and for a week, and those of answers."""


@dataclass(frozen=True)
class Aim:
    """What an operator wants to see, and in how many reports.

    Attributes:
        listed: number of listed values; None: any text is a value.
        people: the least number of people who report in a window of the length `span`.
        share: the smallest share of people that matters.
        minimum_batch: the fewest reports in a release.
    """

    listed: int | None
    people: int
    span: timedelta
    share: float
    minimum_batch: int

    @classmethod
    def of(cls, known: Dictionary | None, people: int, span: timedelta, share: float, minimum_batch: int) -> Aim:
        """Return the aim for a dictionary; None: any text is a value."""
        return cls(None if known is None else len(known.items), people, span, share, minimum_batch)

    def people_in(self, window: timedelta) -> int:
        """Return the number of people in a window, at least 1, on the assumption that each day has other people."""
        return min(MOST_REPORTS, max(1, int(self.people * (window / self.span))))

    def assumption(self, window: timedelta) -> str | None:
        """Return the assumption of `people_in` as a sentence; None if the number was given for such a window."""
        if window == self.span:
            return None
        said, here = (duration_text(span) for span in (self.span, window))
        return (
            f"{self.people:,} people in {said} make {self.people_in(window):,} in {here} only if they are other people "
            f"each time. If the same people return, give --clients with --window {here}"
        )

    def best(self, epsilon: float, window: timedelta) -> Candidate:
        """Return the mechanism with the least error; UsageError if no mechanism fits.

        In an open domain the mechanism has a sketch: its tally of a batch can later give counts of values that
        discovery finds only in later batches.
        """
        return _best(self._domain, epsilon, self.people_in(window))

    def sight(self, epsilon: float, window: timedelta) -> Sight:
        """Return what a window shows at an epsilon."""
        return sight_of(self._mechanism(epsilon, window), self.people_in(window), self._looks, self.share)

    def epsilon(self, window: timedelta) -> float:
        """Return the least epsilon of GRID at which the share shows; the largest if it shows at none."""
        return next((epsilon for epsilon in GRID if self._shows(epsilon, window)), GRID[-1])

    def window(self) -> timedelta:
        """Return the span, if it is not a day; a week if only a week has a minimum batch or shows the share at 4."""
        if self.span != DAY:
            return self.span
        day, week = (
            (self.people_in(window) >= self.minimum_batch, self._shows(GRID[-1], window)) for window in (DAY, WEEK)
        )
        return WEEK if week > day else DAY

    def offers(self, window: timedelta) -> list[str]:
        """Return a line for each epsilon of GRID: the least share that shows, and what a report reveals."""
        lines = []
        for epsilon in GRID:
            least = self._least_share(epsilon, window)
            shows = "no item shows" if least is None else f"items of {percent(least)} show"
            lines.append(f"  {epsilon:g}: {shows}; a report changes odds by {odds_of(epsilon)}")
        return lines

    @property
    def _domain(self) -> int | None:
        return None if self.listed is None else self.listed + 1

    @property
    def _looks(self) -> int:
        return ASKED if self.listed is None else self.listed

    def _mechanism(self, epsilon: float, window: timedelta) -> Mechanism:
        return _mechanism(self._domain, epsilon, self.people_in(window))

    def _least_share(self, epsilon: float, window: timedelta) -> float | None:
        return _least_share(self._domain, epsilon, self.people_in(window), self._looks)

    def _shows(self, epsilon: float, window: timedelta) -> bool:
        least = self._least_share(epsilon, window)
        return least is not None and least <= self.share


# Each prompt, the deployment and its JSON ask for the same plans, and a plan takes a quarter of a second.
@lru_cache(maxsize=_KEPT)
def _best(domain: int | None, epsilon: float, people: int) -> Candidate:
    task = Task(None, max_tally_mib=_SKETCH_MIB, mechanisms=_SKETCHES) if domain is None else Task(domain)
    try:
        return make_plan(task, epsilon, people).chosen
    except ValueError as error:
        raise UsageError(str(error)) from None


def _mechanism(domain: int | None, epsilon: float, people: int) -> Mechanism:
    best = _best(domain, epsilon, people)
    # Any seed of a pool serves, because nothing here depends on the pool's functions.
    seed = {"seed": ANY_SEED} if CATALOGUE[best.mechanism].seeded else {}
    return build(best.mechanism, epsilon, domain, {**best.parameters, **seed})


@lru_cache(maxsize=_KEPT)
def _least_share(domain: int | None, epsilon: float, people: int, looks: int) -> float | None:
    return least_share(_mechanism(domain, epsilon, people), people, looks)
