"""[J] Figures 4 and 6: the error of GCMS and OCMS compared with Apple's CMS, computed, and simulated at some points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from experiments.figure import Figure, Panel, Point, Settings
from experiments.judging import Claim
from experiments.measuring import Case, collect, mean_row
from experiments.rows import Law, Row, find, select
from experiments.sketch_forms import (
    apple_keep,
    corrected_choice,
    other_cell,
    printed_choice,
    printed_size,
    sketch_variance,
)
from hushcount.arrays import FloatArray
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import build, plan
from hushcount.oracles.parameters import Parameters
from hushcount.oracles.simulation import Population

_SEED = "0" * 64


def _alike(n: int, held: int) -> Population:
    """Each of n/held items is held by equally many people: each run measures the errors of all these items."""
    items = n // held
    return Population(np.arange(1, items + 1, dtype=np.uint64), np.full(items, held, dtype=np.int64))


def _law(case: Case, n: int, held: int, printed: bool) -> float:
    """Return the closed form of a case's variance if `held` users hold each item, in users squared."""
    responder = build(case.oracle, case.epsilon, None, {**case.parameters, "seed": _SEED}).responder
    cells, rows = int(case.parameters["m"]), int(case.parameters["k"])
    others = float(n - held) * held
    return float(sketch_variance(responder.p, responder.q, cells, rows, n, held, others, printed))


def _squares(case: Case, n: int, held: int, settings: Settings, stream: str) -> FloatArray:
    """Return float64[runs]: the mean squared error of a count, users squared."""
    return np.asarray((n * collect(case, _alike(n, held), settings, stream).errors) ** 2).mean(axis=1)


_N = 100_000
_HELD = (1000, 10_000)
_BITS = ((128, 4096), (1024, 65_536))
_EPSILONS = tuple(float(e) for e in np.linspace(0.5, 10.0, 39))
_SIMULATED = (1.0, 2.0, 4.0)


def _panel(held: int) -> str:
    return f"f={held:,}"


def _label(name: str, bits: int, pool: int) -> str:
    return f"{name}, {bits} bits, k={pool}"


def _curve_4(held: int, bits: int, rows: int) -> list[Row]:
    found = []
    for epsilon in _EPSILONS:
        half, cells = 0.5, _cells(epsilon, bits)
        keep = apple_keep(epsilon)
        for name, p, q, width in (
            ("GCMS", half, other_cell(half, cells, epsilon), cells),
            ("CMS", keep, 1.0 - keep, bits),
        ):
            values = [
                math.sqrt(float(sketch_variance(p, q, width, rows, _N, held, (_N - held) * held, printed))) / held
                for printed in (False, True)
            ]
            found.append(Row(_panel(held), _label(name, bits, rows), epsilon, predicted=values[0], printed=values[1]))
    return found


def _cells(epsilon: float, bits: int) -> int:
    """Return the largest m at which a report of GCMS with p = 1/2 takes at most `bits` bits, s times log2 m."""
    low, high = 2, 1 << 24
    while high - low > 1:
        middle = (low + high) // 2
        fits = printed_size(0.5, epsilon, middle) * math.log2(middle) <= bits
        low, high = (middle, high) if fits else (low, middle)
    return low


def _simulated_4(name: str, held: int, epsilon: float, settings: Settings) -> list[Row]:
    bits, rows = _BITS[0]
    if name == "GCMS":
        cells = _cells(epsilon, bits)
        case = Case("gcms", epsilon, None, {"k": rows, "m": cells, "s": printed_size(0.5, epsilon, cells)})
    else:
        case = Case("apple-cms", epsilon, None, {"k": rows, "m": bits})
    values = _squares(case, _N, held, settings, f"{name}-{held}-{epsilon:g}")
    predicted, printed = (math.sqrt(_law(case, _N, held, errs)) / held for errs in (False, True))
    row = mean_row(_panel(held), _label(name, bits, rows), epsilon, values / held**2, predicted, "root")
    return [_with_printed(row, printed)]


def _with_printed(row: Row, printed: float) -> Row:
    return Row(**{**row.__dict__, "printed": printed})


def _points_4(settings: Settings) -> list[Point]:
    curves = [
        Point(f"curve-{held}-{bits}", partial(_curve_4, held, bits, rows)) for held in _HELD for bits, rows in _BITS
    ]
    simulated = [
        Point(f"{name}-{held}-{epsilon:g}", partial(_simulated_4, name, held, epsilon, settings))
        for held in _HELD
        for name in ("GCMS", "CMS")
        for epsilon in _SIMULATED
    ]
    return [*curves, *simulated]


def _crossing(rows: Sequence[Row], held: int, bits: int, pool: int) -> float:
    """Return the least epsilon of the grid at which Apple's CMS is better; infinity if it is never better."""
    curves = [
        {row.x: row.predicted or 0.0 for row in select(rows, _panel(held), _label(name, bits, pool)) if not row.tested}
        for name in ("GCMS", "CMS")
    ]
    return min((x for x, ours in curves[0].items() if ours > curves[1][x]), default=math.inf)


def _claims_4(rows: Sequence[Row]) -> list[Claim]:
    crossings = {held: [_crossing(rows, held, *case) for case in _BITS] for held in _HELD}
    return [
        Claim("GCMS has less variance than Apple's CMS at equal bits where epsilon is not too large (3 or less)",
              all(each > 3.0 for found in crossings.values() for each in found)),
        Claim("Apple's CMS is better only for large f and very high epsilon: f=1,000 needs a higher one than f=10,000",
              all(rare >= common for rare, common in zip(crossings[1000], crossings[10_000], strict=True))),
    ]  # fmt: skip


def _tell_4(rows: Sequence[Row]) -> str:
    parts = [
        f"f={held:,}, {bits} bits: "
        + (f"from epsilon {where:g}" if math.isfinite(where := _crossing(rows, held, bits, pool)) else "never up to 10")
        for held in _HELD
        for bits, pool in _BITS
    ]
    over = [row.printed / row.measured for row in rows if row.tested and row.measured and row.printed]
    return (
        "Apple's CMS is better than GCMS with p=1/2: "
        + "; ".join(parts)
        + ". Simulated at 128 bits, k=4,096, 10 or 100 "
        f"items a run; the printed standard deviation is {min(over):.2f} to {max(over):.2f} times the measured one."
    )


FIG4 = Figure(
    name="j-fig4",
    title="[J] Figure 4: GCMS (p=1/2) and Apple's CMS at equal report length, n=100,000",
    version=1,
    panels=[Panel(_panel(held), "epsilon", "standard deviation / f", log_y=True) for held in _HELD],
    points=_points_4,
    claims=_claims_4,
    tell=_tell_4,
    runs=100,
    quick_runs=5,
)

_POOL, _CELLS_6, _BUDGET, _REPORTS = 65_536, 1024, 4.0, 1_000_000
_SMALL = 20_000
# Noise grows with n, collisions grow with n^2/k: if k is reduced in proportion to n, the scaled variance is the same.
_SMALL_POOL = round(_POOL * _SMALL / _REPORTS)
_TARGETS = (0.01, 0.1, 0.25, 0.5)
_VARIANCE, _OURS, _APPLE = "variance", "OCMS", "Apple's CMS"


def _curve_6(step: int) -> list[Row]:
    found = []
    for percent in range(1, 100, step):
        share = percent / 100.0
        held, others = share * _REPORTS, (1.0 - share) * share * _REPORTS**2
        keep = apple_keep(_BUDGET)
        choices = (
            (_OURS, corrected_choice(_BUDGET, share, _CELLS_6, _POOL), printed_choice(_BUDGET, share, _POOL)),
            (_APPLE, keep, keep),
        )
        for name, corrected, printed in choices:
            values = []
            for p, errs in ((corrected, False), (printed, True)):
                q = 1.0 - p if name == _APPLE else other_cell(p, _CELLS_6, _BUDGET)
                values.append(float(sketch_variance(p, q, _CELLS_6, _POOL, _REPORTS, held, others, errs)))
            found.append(Row(_VARIANCE, name, held, predicted=values[0], printed=values[1]))
    return found


def _simulated_6(name: str, share: float, settings: Settings) -> list[Row]:
    pool: Parameters = {"k": _SMALL_POOL, "m": _CELLS_6}
    if name == _OURS:
        sized = plan("gcms", _BUDGET, None, pool, Objective("target", share), _SEED)
        case = Case("gcms", _BUDGET, None, {**pool, "s": sized["s"]})
    else:
        case = Case("apple-cms", _BUDGET, None, pool)
    held, scale = round(share * _SMALL), _REPORTS / _SMALL
    values = scale * _squares(case, _SMALL, held, settings, f"{name}-{share:g}")
    law: Law = "mean"
    row = mean_row(_VARIANCE, name, share * _REPORTS, values, scale * _law(case, _SMALL, held, False), law)
    return [_with_printed(row, scale * _law(case, _SMALL, held, True))]


def _points_6(settings: Settings) -> list[Point]:
    simulated = [
        Point(f"{'ocms' if name == _OURS else 'apple'}-{share:g}", partial(_simulated_6, name, share, settings))
        for name in (_OURS, _APPLE)
        for share in _TARGETS
    ]
    return [Point("curve", partial(_curve_6, 3)), *simulated]


def _gains(rows: Sequence[Row], printed: bool) -> dict[float, float]:
    """Return by how much Apple's variance is above ours, at each target of the curve."""
    gains = {}
    for row in select(rows, _VARIANCE, _OURS):
        if not row.tested:
            apple = find(select(rows, _VARIANCE, _APPLE), _VARIANCE, _APPLE, row.x)
            pair = (apple.printed, row.printed) if printed else (apple.predicted, row.predicted)
            gains[row.x] = (pair[0] or 0.0) / (pair[1] or 1.0) - 1.0
    return gains


def _claims_6(rows: Sequence[Row]) -> list[Claim]:
    gains = _gains(rows, False)
    return [
        Claim("OCMS has less variance than Apple's CMS at every target", min(gains.values()) > -1e-9),
        Claim("OCMS has significantly less variance (5 %) at every target", min(gains.values()) > 0.05, False),
    ]


def _tell_6(rows: Sequence[Row]) -> str:
    gains, printed = _gains(rows, False), _gains(rows, True)
    worst = min(gains, key=lambda held: gains[held])
    return (
        f"Apple's variance is {gains[_REPORTS / 100]:.0%} above that of OCMS for the target n/100, "
        f"and {min(gains.values()):.2%} above it for the target {worst:,.0f}, where the printed formulas say "
        f"{printed[worst]:.0%}. Simulated with n={_SMALL:,} and k={_SMALL_POOL:,}, where the scaled variance is the "
        "same."
    )


FIG6 = Figure(
    name="j-fig6",
    title="[J] Figure 6: variance of OCMS, p chosen for each target, n=1,000,000, k=65,536, m=1,024, epsilon 4",
    version=1,
    panels=[Panel(_VARIANCE, "target f, users", "variance, users squared", log_y=True)],
    points=_points_6,
    claims=_claims_6,
    tell=_tell_6,
    runs=300,
    quick_runs=5,
)
