"""[J] Figures 2 and 5: which p is best for an item of a given share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from experiments.figure import Figure, Panel, Point, Settings
from experiments.judging import Claim
from experiments.rows import Row, find, select
from experiments.sketch_forms import apple_keep, corrected_choice, other_cell, printed_choice, sketch_variance
from hushcount.maths.objectives import Objective
from hushcount.maths.probability import spending_probability
from hushcount.oracles.catalogue import build, plan

_SEED = "0" * 64
_CASES = ((1000, 500), (1500, 50))
_SHARES = (1 / 2, 1 / 10, 1 / 50)
_BUDGET = 5.0
_N = 100_000
_GRID = tuple(float(p) for p in np.linspace(0.5, 0.98, 49))


def _case(cells: int, rows: int) -> str:
    return f"m={cells:,}, k={rows}"


def _share(share: float) -> str:
    return f"f/n = 1/{round(1 / share)}"


def _normalised(cells: int, rows: int, share: float, p: float, printed: bool) -> float:
    q = other_cell(p, cells, _BUDGET)
    return float(sketch_variance(p, q, cells, rows, _N, share * _N, printed=printed)) / _N


def _curve(cells: int, rows: int, share: float) -> list[Row]:
    place = (_case(cells, rows), _share(share))

    def row(p: float, measured: float | None = None) -> Row:
        predicted = _normalised(cells, rows, share, p, False)
        printed = _normalised(cells, rows, share, p, True)
        return Row(*place, p, measured, predicted, printed, law="curve" if measured is None else "exact")

    points = [*_GRID, apple_keep(_BUDGET)]
    found = [row(p) for p in points]
    for size in np.unique(np.geomspace(8, 0.3 * cells, 12).astype(int)):
        mechanism = build("gcms", _BUDGET, None, {"k": rows, "m": cells, "s": int(size), "seed": _SEED})
        found.append(row(mechanism.responder.p, float(mechanism.variance(_N, share)) / _N))
    return sorted(found, key=lambda each: each.x)


def _optima(rows: Sequence[Row], panel: str, share: float) -> tuple[float, float, float, float]:
    """Return the best p by the printed and the corrected formula, and the excess variance of Apple's p and of 1/2."""
    cells, count = next(case for case in _CASES if _case(*case) == panel)
    curve = select(rows, panel, _share(share))
    best = min(row.predicted or math.inf for row in curve)
    apple = find(curve, panel, _share(share), apple_keep(_BUDGET)).predicted or math.nan
    half = find(curve, panel, _share(share), 0.5).predicted or math.nan
    return (
        printed_choice(_BUDGET, share, count),
        corrected_choice(_BUDGET, share, cells, count),
        apple / best - 1.0,
        half / best - 1.0,
    )


def _claims_2(rows: Sequence[Row]) -> list[Claim]:
    optima = {share: [_optima(rows, _case(*case), share) for case in _CASES] for share in _SHARES}
    rare = [each for share in _SHARES[1:] for each in optima[share]]
    middle = optima[0.5]
    return [
        Claim("for shares 1/10 and 1/50 the best p lies between OUE's (1/2) and Apple's (0.924), 10 % better than both",
              all(min(apple, half) > 0.1 for _, _, apple, half in rare)),
        Claim("Apple's p is not optimal for the share 1/2 either",
              all(apple > 0.01 for _, _, apple, _ in middle), False),
        Claim("the best p does not depend on m", all(abs(pair[0][1] - pair[1][1]) < 0.001 for pair in optima.values())),
    ]  # fmt: skip


def _tell_2(rows: Sequence[Row]) -> str:
    parts = []
    for share in _SHARES:
        printed, corrected, apple, half = _optima(rows, _case(*_CASES[0]), share)
        parts.append(
            f"for the share 1/{round(1 / share)} the best p is {corrected:.3f} (by the printed formula {printed:.3f}); "
            f"Apple's p, 0.924, has {apple:.1%} more variance, and p=1/2 has {half:.0%} more"
        )
    return "Variance of a count at epsilon 5, m=1,000, k=500: " + "; ".join(parts) + "."


FIG2 = Figure(
    name="j-fig2",
    title="[J] Figure 2: choice of p in OUE, Apple's CMS and OCMS, epsilon 5",
    version=1,
    panels=[Panel(_case(*case), "p", "variance / n, users", log_y=True) for case in _CASES],
    points=lambda settings: [
        Point(f"{cells}-{round(1 / share)}", partial(_curve, cells, rows, share))
        for cells, rows in _CASES
        for share in _SHARES
    ],
    claims=_claims_2,
    tell=_tell_2,
)

_EPSILON, _ROWS = "k=200", "epsilon=5"
_BUDGETS = (1.0, 2.0, 3.0, 4.0, 5.0)
_POOLS = (2, 5, 20, 200)
_CELLS = 200
_REPORTS = 10_000


def _choices(panel: str, series: str, epsilon: float, pool: int, step: int) -> list[Row]:
    found = []
    for held in range(0, _REPORTS + 1, step):
        share = held / _REPORTS
        parameters = plan("gcms", epsilon, None, {"k": pool, "m": _CELLS}, Objective("target", share), _SEED)
        size = int(parameters["s"])
        spent = spending_probability(epsilon, _CELLS, np.array([max(1, size - 1), size, min(_CELLS - 1, size + 1)]))
        below, chosen, above = (float(p) for p in spent)
        # The best integer is next to the best real size; s = 1 has none below it.
        predicted, printed = corrected_choice(epsilon, share, _CELLS, pool), printed_choice(epsilon, share, pool)
        low, high = 0.999 * chosen / above, 1.001 * chosen / below
        found.append(Row(panel, series, held, chosen, predicted, printed, law="within", low=low, high=high))
    return found


def _points_5(settings: Settings) -> list[Point]:
    step = 500 if settings.quick else 250
    epsilons = [Point(f"epsilon-{e:g}", partial(_choices, _EPSILON, f"epsilon={e:g}", e, 200, step)) for e in _BUDGETS]
    pools = [Point(f"k-{k}", partial(_choices, _ROWS, f"k={k}", 5.0, k, step)) for k in _POOLS]
    return [*epsilons, *pools]


def _claims_5(rows: Sequence[Row]) -> list[Claim]:
    middle = _REPORTS / 2
    by_epsilon = [find(rows, _EPSILON, f"epsilon={e:g}", middle).predicted or 0.0 for e in _BUDGETS]
    by_share = [row.predicted or 0.0 for row in select(rows, _EPSILON, "epsilon=5")]
    by_pool = [find(rows, _ROWS, f"k={k}", middle) for k in _POOLS]
    rare = find(rows, _EPSILON, "epsilon=1", 0.0).predicted or 0.0
    quarter = find(rows, _EPSILON, "epsilon=1", _REPORTS / 4).predicted or 0.0
    return [
        Claim("the best p grows with epsilon and with the target",
              sorted(by_epsilon) == by_epsilon and sorted(by_share) == by_share),
        Claim("at small epsilon the best p for rare items is 1/2", abs(rare - 0.5) < 0.01),
        Claim("a larger k has a higher best p",
              (by_pool[-1].predicted or 0.0) > (by_pool[0].predicted or 0.0) + 0.01, False),
        Claim("at small epsilon the best p remains 1/2 over a wide range of targets", abs(quarter - 0.5) < 0.02, False),
    ]  # fmt: skip


def _tell_5(rows: Sequence[Row]) -> str:
    middle = _REPORTS / 2
    few, many = (find(rows, _ROWS, f"k={k}", middle) for k in (_POOLS[0], _POOLS[-1]))
    return (
        f"For the target n/2 at epsilon 5 the printed best p goes from {few.printed:.3f} (k=2) to {many.printed:.3f} "
        f"(k=200); by the corrected variance it is {few.predicted:.3f} for every k. "
        f"The planner takes p = {many.measured:.3f}, the best integer s."
    )


FIG5 = Figure(
    name="j-fig5",
    title="[J] Figure 5: the best p for each target count, n=10,000, m=200",
    version=1,
    panels=[Panel(_EPSILON, "target f, users", "best p"), Panel(_ROWS, "target f, users", "best p")],
    points=_points_5,
    claims=_claims_5,
    tell=_tell_5,
)
