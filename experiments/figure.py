"""What a figure is: points to measure, claims to check, a sentence and a drawing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from experiments.judging import Claim
from experiments.rows import Row


@dataclass(frozen=True)
class Settings:
    """How a figure is run.

    Attributes:
        runs: collections of each simulated point.
        seed: of data and simulations.
        quick: few runs and few points, for a first look.
        files: data files by their short name, see `experiments.sources`.
        threads: how many runs at once.
    """

    runs: int
    seed: int
    quick: bool
    files: Mapping[str, Path] = field(default_factory=dict)
    threads: int = 2


@dataclass(frozen=True)
class Point:
    """A part of a figure that is measured and stored separately, so that a killed run continues after it.

    Attributes:
        name: letters, digits and "-._", different for each point of a figure.
        measure: returns its rows.
    """

    name: str
    measure: Callable[[], list[Row]]


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: as in `Row.panel`.
        x, y: labels of the axes.
        log_x, log_y: whether an axis is logarithmic.
    """

    title: str
    x: str
    y: str
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper.

    Attributes:
        name: on the command line.
        title: what it shows.
        version: raise it if a change of the code changes the figure's rows.
        panels: the axes.
        points: returns the points to measure.
        claims: statements of the paper about it, checked against the rows.
        tell: returns one or two sentences with its numbers.
        runs: default number of runs, as in the paper if that names it; 0 if nothing is drawn at random.
        quick_runs: number of runs with --quick.
        sources: short names of the data files that it needs.
    """

    name: str
    title: str
    version: int
    panels: Sequence[Panel]
    points: Callable[[Settings], list[Point]]
    claims: Callable[[Sequence[Row]], list[Claim]]
    tell: Callable[[Sequence[Row]], str]
    runs: int = 0
    quick_runs: int = 0
    sources: tuple[str, ...] = ()
