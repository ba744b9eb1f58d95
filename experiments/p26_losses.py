"""[P26] Figures 1 and 2: l1 and l2 loss of the optimal algorithms over epsilon, and the strict lower bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from experiments.figure import Figure, Panel, Point, Settings
from experiments.judging import Claim
from experiments.loss_forms import folded_l2, symmetric_l2
from experiments.measuring import Case, collect, generator, mean_row
from experiments.rows import Row, find, select
from experiments.sources import held_by_value
from hushcount.arrays import FloatArray
from hushcount.maths.bounds import largest_l1, least_l2
from hushcount.maths.objectives import Objective
from hushcount.maths.primes import prime_at_least
from hushcount.oracles.catalogue import plan
from hushcount.oracles.parameters import integer
from hushcount.oracles.simulation import Population

_ORACLES = {"SS": "ss", "OCMS": "ocms-round", "WSS": "wss", "AIS (ours)": "ais"}
_EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
_L1, _L2 = "l1 loss", "l2 loss"
_TRUE_L1, _TRUE_L2 = "l1 loss of the distribution", "l2 loss of the distribution"
_SEED = "0" * 64


def _case(series: str, epsilon: float, domain: int) -> Case:
    oracle = _ORACLES[series]
    return Case(oracle, epsilon, domain, plan(oracle, epsilon, domain, {}, Objective(), _SEED))


def _closed_l2(case: Case, domain: int) -> float:
    """Return n l2 by a separate formula for each algorithm; the sum over all items is the same for all data."""
    if case.oracle == "ocms-round":
        return folded_l2(case.epsilon, domain)
    if case.oracle == "ais":
        return symmetric_l2(case.epsilon, integer(case.parameters, "s"), prime_at_least(domain), domain)
    size = int(str(case.parameters["design"]).split("-")[1]) if case.oracle == "wss" else integer(case.parameters, "s")
    return symmetric_l2(case.epsilon, size, domain, domain)


_D, _N = 100, 10_000
_WEIGHTS = 1.0 / np.arange(1, _D + 1) ** 2.0
_THETA = _WEIGHTS / _WEIGHTS.sum()


def _zipf(series: str, epsilon: float, settings: Settings) -> list[Row]:
    """Draw a new data set for each run; estimate its frequencies, and the distribution from which it was drawn."""
    case, drawing = _case(series, epsilon, _D), generator(settings.seed, f"zipf-{series}-{epsilon:g}")
    errors, shifts, variances = [], [], []
    for run in range(settings.runs):
        held = drawing.multinomial(_N, _THETA).astype(np.int64)
        population = Population(np.arange(_D, dtype=np.uint64), held)
        one = collect(case, population, replace(settings, runs=1), f"{series}-{epsilon:g}-{run}")
        errors.append(one.errors[0])
        shifts.append(held / _N - _THETA)
        variances.append(one.variance)
    spread = np.mean(variances, axis=0)
    drawn = _THETA * (1.0 - _THETA) / _N
    frequency, distribution = np.array(errors), np.array(errors) + np.array(shifts)
    bound = least_l2(epsilon, _D, _N)
    worst = bound + (1.0 - 1.0 / _D) / _N
    predicted = _closed_l2(case, _D) / _N
    return [
        *_rows((_L1, _L2), series, epsilon, frequency, spread, predicted, bound),
        *_rows((_TRUE_L1, _TRUE_L2), series, epsilon, distribution, spread + drawn, predicted + drawn.sum(), worst),
    ]


def _rows(
    panels: tuple[str, str], series: str, x: float, errors: FloatArray, variance: FloatArray, l2: float, bound: float
) -> list[Row]:
    first = mean_row(panels[0], series, x, np.abs(errors).sum(axis=1), float(np.sqrt(2 * variance / np.pi).sum()))
    second = mean_row(panels[1], series, x, (errors**2).sum(axis=1), l2)
    # The printed bound is that of [P26] Proposition 1, which omits d under the root.
    limits = largest_l1(bound, errors.shape[1]), largest_l1(bound, 1)
    return [replace(first, bound=limits[0], printed=limits[1]), replace(second, bound=bound)]


def _points_1(settings: Settings) -> list[Point]:
    epsilons = _EPSILONS[1::2] if settings.quick else _EPSILONS
    return [
        Point(f"{_ORACLES[series]}-{epsilon:g}", partial(_zipf, series, epsilon, settings))
        for series in _ORACLES
        for epsilon in epsilons
    ]


def _excess(rows: Sequence[Row], panel: str, series: str, x: float) -> float:
    row = find(rows, panel, series, x)
    return float((row.predicted or 0.0) / (row.bound or 1.0) - 1.0)


def _proposition_holds(rows: Sequence[Row]) -> bool:
    return all((row.measured or 0.0) < 1.1 * (row.printed or 0.0) for row in select(rows, _L1, "SS"))


def _claims_1(rows: Sequence[Row]) -> list[Claim]:
    xs = sorted({row.x for row in rows})
    first = {series: max(_excess(rows, _L2, series, x) for x in xs) for series in _ORACLES}
    drawn = [_excess(rows, _TRUE_L2, "SS", x) for x in xs]
    return [
        Claim("SS and WSS meet the lower bound of the l2 loss, to 0.4 %", max(first["SS"], first["WSS"]) < 0.004),
        Claim("OCMS meets that bound too, to 4 %", first["OCMS"] < 0.04),
        Claim("the l2 loss of the distribution meets its bound for these data", abs(min(drawn)) < 0.02, False),
        Claim("the least l1 loss is sqrt(2/pi times the least l2 loss), as Proposition 1 says",
              _proposition_holds(rows), False),
    ]  # fmt: skip


def _tell_1(rows: Sequence[Row]) -> str:
    xs = sorted({row.x for row in rows})
    parts = []
    for series in _ORACLES:
        over = [_excess(rows, _L2, series, x) for x in xs]
        parts.append(f"{series} {min(over):.3%} to {max(over):.3%}")
    last = find(rows, _TRUE_L2, "SS", xs[-1])
    return (
        f"Exact l2 loss of the frequencies above the strict bound: {', '.join(parts)}. For the distribution, the bound "
        f"adds (1-1/d)/n, the worst case of sampling. Zipf data add {(_THETA * (1.0 - _THETA)).sum():.2f}/n, so at "
        f"epsilon {xs[-1]:g} SS measures {last.measured:.3g}, below the bound {last.bound:.3g}. Each run draws its own "
        "data."
    )


FIG1 = Figure(
    name="p26-fig1",
    title="[P26] Figure 1: Zipf data, d=100, n=10,000",
    version=1,
    panels=[Panel(title, "epsilon", title, log_y=True) for title in (_L1, _L2, _TRUE_L1, _TRUE_L2)],
    points=_points_1,
    claims=_claims_1,
    tell=_tell_1,
    runs=100,
    quick_runs=5,
)

_DOMAIN = 26_000
# Over all runs, SS draws about this many of 26,000 cells for each of 167,856 reports: a minute or two at epsilon 1.
_CELLS_OF_ALL_RUNS = 15_000


def _kosarak(series: str, epsilon: float, settings: Settings) -> list[Row]:
    population = Population(np.arange(_DOMAIN, dtype=np.uint64), held_by_value(settings.files["kosarak"], _DOMAIN))
    case = _case(series, epsilon, _DOMAIN)
    runs = settings.runs
    if series == "SS":
        runs = min(runs, max(2, _CELLS_OF_ALL_RUNS // integer(case.parameters, "s")))
    sample = collect(case, population, replace(settings, runs=runs), f"kosarak-{series}-{epsilon:g}")
    bound = least_l2(epsilon, _DOMAIN, population.n)
    predicted = _closed_l2(case, _DOMAIN) / population.n
    return _rows((_L1, _L2), series, epsilon, sample.errors, sample.variance, predicted, bound)


def _points_2(settings: Settings) -> list[Point]:
    # Quick runs leave out the epsilons at which SS takes minutes.
    epsilons = _EPSILONS[-2:] if settings.quick else _EPSILONS[1:]
    return [
        Point(f"{_ORACLES[series]}-{epsilon:g}", partial(_kosarak, series, epsilon, settings))
        for series in ("SS", "OCMS", "AIS (ours)")
        for epsilon in epsilons
    ]


def _claims_2(rows: Sequence[Row]) -> list[Claim]:
    met = [abs(_excess(rows, _L2, row.series, row.x)) for row in select(rows, _L2) if row.series != "OCMS"]
    near = [_excess(rows, _L2, "OCMS", row.x) for row in select(rows, _L2, "OCMS")]
    return [
        Claim("SS meets the lower bound of the l2 loss, to 0.01 %", max(met) < 1e-4),
        Claim("OCMS meets that bound too, to 0.5 %", max(near) < 0.005),
        Claim("the least l1 loss is sqrt(2/pi times the least l2 loss), as Proposition 1 says",
              _proposition_holds(rows), False),
    ]  # fmt: skip


def _tell_2(rows: Sequence[Row]) -> str:
    parts = []
    for row in select(rows, _L2):
        if row.series == "SS":
            ours = find(rows, _L2, "OCMS", row.x)
            parts.append(
                f"epsilon {row.x:g} SS {(row.measured or 0) / (row.bound or 1):.4f} ({row.runs} runs), OCMS "
                f"{(ours.measured or 0) / (ours.bound or 1):.4f} (exact {1 + _excess(rows, _L2, 'OCMS', row.x):.4f})"
            )
    return (
        f"Measured l2 loss over the strict bound: {'; '.join(parts)}. SS has fewer runs where a report has thousands "
        "of cells."
    )


FIG2 = Figure(
    name="p26-fig2",
    title="[P26] Figure 2: mini Kosarak, d=26,000, n=167,856",
    version=1,
    panels=[Panel(title, "epsilon", title, log_y=True) for title in (_L1, _L2)],
    points=_points_2,
    claims=_claims_2,
    tell=_tell_2,
    runs=100,
    quick_runs=3,
    sources=("kosarak",),
)
