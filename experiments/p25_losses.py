"""[P25] Figures 2, 3 and 4: worst-case MSE, l1 and l2 loss over epsilon, for three data sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from experiments.figure import Figure, Panel, Point, Settings
from experiments.judging import Claim, laurent_massart
from experiments.loss_forms import binary, halved, loss_buckets, printed_l2, rare, worst_case_buckets
from experiments.measuring import Case, Sample, collect, generator, mean_row
from experiments.rows import Row, find, select
from experiments.sources import held_by_value
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import plan
from hushcount.oracles.simulation import Population

_MSE, _L1, _L2 = "worst-case MSE", "l1 loss", "l2 loss"
_OCMS = "OCMS+RR"
_OTHERS = {"HE": "he", "CMS+HE": "hcms", "RHR": "rhr"}
_EPSILONS = (1.0, 2.0, 3.0, 4.0, 5.0)
_SEED = "0" * 64


@dataclass(frozen=True)
class _Data:
    """A data set.

    Attributes:
        domain: d.
        interest: number of items, the first of the population, over which losses are summed.
        prior: f* of MSE-OCMS+RR.
        pool: k of CMS+HE; the papers' 65,536 would need a tally of 1 GiB, and the collision term is exact for any k.
        population: returns the values that clients hold, for given settings.
    """

    domain: int
    interest: int
    prior: float
    pool: int
    population: Callable[[Settings], Population]


def _zipf(settings: Settings) -> Population:
    """Draw 10,000 ranks r, by 1/r^2; rank r is the value 128 (r-1), so all have one mod of RHR up to epsilon 5."""
    items = np.arange(0, 100_000, 128, dtype=np.uint64)
    weights = 1.0 / np.arange(1, len(items) + 1) ** 2.0
    held = generator(settings.seed, "zipf").multinomial(10_000, weights / weights.sum())
    # The first 100 items are the most frequent of the distribution, not of the draw.
    return Population(items, held.astype(np.int64))


def _gaussian(settings: Settings) -> Population:
    """Draw 10,000 normal values of standard deviation 50, with an integer mean that is drawn from 1,000..9,000."""
    drawing = generator(settings.seed, "gaussian")
    values = np.rint(drawing.normal(drawing.integers(1000, 9001), 50.0, 10_000)).clip(0, 9999).astype(np.int64)
    return Population(np.arange(10_000, dtype=np.uint64), np.bincount(values, minlength=10_000).astype(np.int64))


def _kosarak(settings: Settings) -> Population:
    held = held_by_value(settings.files["kosarak"], 26_000)
    return Population(np.arange(26_000, dtype=np.uint64), held)


_ZIPF = _Data(100_000, 100, 1.0, 1024, _zipf)
_GAUSSIAN = _Data(10_000, 10_000, 0.0, 256, _gaussian)
_KOSARAK = _Data(26_000, 1000, 1.0, 4096, _kosarak)


def _sample(data: _Data, case: Case, settings: Settings) -> tuple[Sample, Population]:
    population = data.population(settings)
    stream = f"{case.oracle}-{case.epsilon:g}-{sorted(case.parameters.items())}"
    return collect(case, population, settings, stream, slice(data.interest)), population


def _worst(data: _Data, series: str, sample: Sample, epsilon: float, printed: float | None) -> Row:
    """The largest mean square, between the largest variance and the bound of [P25] appendix K at 95 %."""
    runs, items = len(sample.errors), data.interest
    largest = float(sample.variance.max())
    bound = laurent_massart(runs, 20.0 * items) * largest
    measured = float((sample.errors**2).mean(axis=0).max())
    return Row(_MSE, series, epsilon, measured, largest, printed, bound, law="largest", items=items, runs=runs)


def _losses(data: _Data, series: str, sample: Sample, epsilon: float, l2: float | None, l1: float | None) -> list[Row]:
    first = mean_row(_L1, series, epsilon, sample.l1, sample.predicted_l1)
    second = mean_row(_L2, series, epsilon, sample.l2, float(sample.variance.sum()))
    return [replace(first, bound=l1), replace(second, printed=l2)]


def _ocms(data: _Data, epsilon: float, settings: Settings) -> list[Row]:
    """Use MSE-OCMS+RR for the worst case and l-OCMS+RR for the losses, with the paper's own numbers of buckets."""
    worst = Case("ocms", epsilon, data.domain, {"B": worst_case_buckets(epsilon, data.prior)})
    sample, population = _sample(data, worst, settings)
    n, share = population.n, float(population.held[: data.interest].max()) / population.n
    printed = halved(epsilon) if data.prior > 0.5 else share + rare(epsilon)
    found = [_worst(data, _OCMS, sample, epsilon, printed / n)]
    smooth = Case("ocms", epsilon, data.domain, {"B": loss_buckets(epsilon, data.domain)})
    sample, _ = _sample(data, smooth, settings)
    l2 = printed_l2(epsilon, data.interest) / n
    return [*found, *_losses(data, _OCMS, sample, epsilon, l2, (data.interest * l2) ** 0.5)]


def _other(data: _Data, series: str, epsilon: float, settings: Settings) -> list[Row]:
    oracle = _OTHERS[series]
    fixed = {"k": data.pool, "m": 1024} if oracle == "hcms" else {}
    parameters = plan(oracle, epsilon, data.domain, fixed, Objective(), _SEED)
    parameters.pop("seed", None)
    sample, population = _sample(data, Case(oracle, epsilon, data.domain, parameters), settings)
    if series == "RHR":
        return [_worst(data, series, sample, epsilon, None), *_losses(data, series, sample, epsilon, None, None)]
    each = binary(epsilon) / population.n
    l1 = data.interest * each**0.5
    return [
        _worst(data, series, sample, epsilon, each),
        *_losses(data, series, sample, epsilon, data.interest * each, l1),
    ]


def _points(data: _Data, settings: Settings) -> list[Point]:
    epsilons = _EPSILONS[::2] if settings.quick else _EPSILONS
    ours = [Point(f"ocms-{epsilon:g}", partial(_ocms, data, epsilon, settings)) for epsilon in epsilons]
    others = [
        Point(f"{oracle}-{epsilon:g}", partial(_other, data, series, epsilon, settings))
        for series, oracle in _OTHERS.items()
        for epsilon in epsilons
    ]
    return [*ours, *others]


def _best(rows: Sequence[Row], panel: str, series: str) -> bool:
    """Whether no other mechanism has a smaller predicted loss at any epsilon."""
    return all(
        (row.predicted or 0.0) <= min(other.predicted or 0.0 for other in select(rows, panel) if other.x == row.x)
        for row in select(rows, panel, series)
    )


def _above(rows: Sequence[Row], panel: str, worse: str, better: str) -> bool:
    """Whether one mechanism has the larger predicted loss at every epsilon."""
    return all(
        (row.predicted or 0.0) > (find(rows, panel, better, row.x).predicted or 0.0)
        for row in select(rows, panel, worse)
    )


def _common_claims(rows: Sequence[Row]) -> list[Claim]:
    bounded = [row for row in select(rows, _L1) if row.bound is not None]
    pairs = [(row, find(rows, panel, "CMS+HE", row.x)) for panel in (_L1, _L2) for row in select(rows, panel, "HE")]
    return [
        Claim("OCMS+RR has the least worst-case MSE", _best(rows, _MSE, _OCMS)),
        Claim("OCMS+RR has the least l1 and l2 loss", _best(rows, _L1, _OCMS) and _best(rows, _L2, _OCMS)),
        Claim("the l1 loss stays below its upper bound",
              all((row.measured or 0.0) < (row.bound or 0.0) for row in bounded)),
        Claim("HE and CMS+HE have the same losses, within 5 %",
              all(abs((a.predicted or 0.0) / (b.predicted or 1.0) - 1.0) < 0.05 for a, b in pairs)),
    ]  # fmt: skip


def _zipf_claims(rows: Sequence[Row]) -> list[Claim]:
    text = "RHR is the worst in all measures where all values have the same mod"
    worst = all(_above(rows, panel, "RHR", "HE") for panel in (_MSE, _L1, _L2))
    return [*_common_claims(rows), Claim(text, worst)]


def _gaussian_claims(rows: Sequence[Row]) -> list[Claim]:
    between = all(_above(rows, panel, "HE", "RHR") for panel in (_MSE, _L1, _L2))
    return [*_common_claims(rows), Claim("RHR lies between OCMS+RR and HE in all measures", between, False)]


def _kosarak_claims(rows: Sequence[Row]) -> list[Claim]:
    losses = [
        (row.measured or 0.0) / (find(rows, _L2, _OCMS, row.x).measured or 1.0) for row in select(rows, _L2, "RHR")
    ]
    return [
        *_common_claims(rows),
        Claim("RHR's l2 loss is of the order of OCMS+RR's, less than 2.5 times as large", max(losses) < 2.5),
        Claim(
            "RHR has the largest worst-case MSE, because 48 % of users hold one value", _above(rows, _MSE, "RHR", "HE")
        ),
    ]


def _tell(rows: Sequence[Row]) -> str:
    worst = select(rows, _MSE)
    under = sum((row.measured or 0.0) <= (row.bound or 0.0) for row in worst)
    parts = [
        f"at epsilon {x:g} OCMS+RR measures MSE {find(rows, _MSE, _OCMS, x).measured:.3g} (printed "
        f"{find(rows, _MSE, _OCMS, x).printed:.3g}), l2 {find(rows, _L2, _OCMS, x).measured:.4g} (printed "
        f"{find(rows, _L2, _OCMS, x).printed:.4g}), HE {find(rows, _L2, 'HE', x).measured:.4g}, RHR "
        f"{find(rows, _L2, 'RHR', x).measured:.4g}"
        for x in (worst[0].x, max(row.x for row in worst))
    ]
    return f"{'; '.join(parts)}. {under} of {len(worst)} worst-case MSEs lie below the paper's 95 % bound."


def _tell_pool(pool: int, rows: Sequence[Row]) -> str:
    told = _tell(rows)
    return f"{told[0].upper()}{told[1:]} CMS+HE runs with k={pool:,} in place of 65,536; its prediction is for this k."


_PANELS = [Panel(title, "epsilon", title, log_y=True) for title in (_MSE, _L1, _L2)]


def _figure(
    number: int, data: _Data, title: str, claims: Callable[[Sequence[Row]], list[Claim]], *sources: str
) -> Figure:
    return Figure(
        name=f"p25-fig{number}",
        title=f"[P25] Figure {number}: {title}",
        version=1,
        panels=_PANELS,
        points=partial(_points, data),
        claims=claims,
        tell=partial(_tell_pool, data.pool),
        runs=100,
        quick_runs=5,
        sources=sources,
    )


FIG2 = _figure(2, _ZIPF, "Zipf data of one mod, d=100,000, n=10,000, first 100 values", _zipf_claims)
FIG3 = _figure(3, _GAUSSIAN, "Gaussian data, d=10,000, n=10,000, all values, f*=0", _gaussian_claims)
FIG4 = _figure(4, _KOSARAK, "mini Kosarak, d=26,000, n=167,856, values 0..999", _kosarak_claims, "kosarak")
