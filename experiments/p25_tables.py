"""[P25] Tables I and II: losses of eight mechanisms where d is large, and bits of a report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from experiments.figure import Figure, Panel, Point, Settings
from experiments.judging import Claim
from experiments.loss_forms import binary, folded_bits, halved, rare, subset_bits
from experiments.measuring import Case, collect, mean_row
from experiments.rows import Row, find, select
from hushcount.maths.objectives import Objective
from hushcount.maths.primes import prime_at_least
from hushcount.oracles.catalogue import CATALOGUE, build, plan
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.parameters import Parameters
from hushcount.oracles.simulation import Population

_L1, _L2, _MSE = "l1 loss", "l2 loss", "worst-case MSE"
# e^epsilon is a square, so that both 1+e and 1+sqrt(e), the best numbers of buckets, are integers.
_BASES = (4, 9, 16)
_SIMULATED, _LARGE, _N = 1000, 1_000_003, 20_000
_TOLERANCE = 0.02
_SEED = "0" * 64
_APPLE: Parameters = {"k": 1024, "m": 1024}
_Form = Callable[[float], float]


@dataclass(frozen=True)
class _Line:
    """A line of Table I.

    Attributes:
        oracle: ours.
        each: n l2 / d as printed, or None if the paper prints only an order of magnitude.
        worst: n times the worst-case MSE as printed.
        fixed: parameters that the planner does not choose; "e" and "root" stand for 1+e and 1+sqrt(e).
    """

    oracle: str
    each: _Form | None
    worst: _Form | None
    fixed: Mapping[str, int | str]


_LINES = {
    "HE": _Line("he", binary, binary, {}),
    "RHR": _Line("rhr", None, None, {}),
    "OLH": _Line("olh", rare, binary, {}),
    "l-OCMS+RR": _Line("ocms", rare, None, {"B": "e"}),
    "MSE-OCMS+RR": _Line("ocms", None, halved, {"B": "root"}),
    "CMS+HE": _Line("hcms", binary, binary, {"k": 1024, "m": 1024}),
    "SS": _Line("ss", rare, binary, {}),
    "a-RP": _Line("oue", rare, binary, {}),
    "RP": _Line("sue", halved, halved, {}),
}


def _case(line: _Line, base: int, domain: int) -> Case:
    epsilon = math.log(base)
    named = {"e": 1 + base, "root": 1 + math.isqrt(base)}
    fixed: Parameters = {key: named[value] if isinstance(value, str) else value for key, value in line.fixed.items()}
    parameters = plan(line.oracle, epsilon, domain, fixed, Objective(), _SEED)
    parameters.pop("seed", None)
    return Case(line.oracle, epsilon, domain, parameters)


def _losses(name: str, base: int, settings: Settings) -> list[Row]:
    """Simulated l1 and l2 loss of 1,000 items that are equally frequent."""
    line = _LINES[name]
    held = np.full(_SIMULATED, _N // _SIMULATED, dtype=np.int64)
    population = Population(np.arange(_SIMULATED, dtype=np.uint64), held)
    case = _case(line, base, _SIMULATED)
    sample = collect(case, population, settings, f"{name}-{base}")
    scale = _N / _SIMULATED
    second = mean_row(_L2, name, case.epsilon, scale * sample.l2, scale * float(sample.variance.sum()))
    root = math.sqrt(_N) / _SIMULATED
    first = mean_row(_L1, name, case.epsilon, root * sample.l1, root * sample.predicted_l1)
    printed = line.each(case.epsilon) if line.each else None
    return [replace(second, printed=printed), replace(first, bound=None if printed is None else math.sqrt(printed))]


def _worst(name: str, base: int) -> list[Row]:
    """The exact worst case of the product's mechanism at a large d, against the printed limit."""
    line = _LINES[name]
    case = _case(line, base, _LARGE)
    seed = {"seed": _SEED} if CATALOGUE[case.oracle].seeded else {}
    mechanism = build(case.oracle, case.epsilon, case.domain, {**case.parameters, **seed})
    measured = float(np.max(mechanism.variance(1, np.array([0.0, 1.0]))))
    if line.worst is None:
        return [Row(_MSE, name, case.epsilon, measured, bound=binary(case.epsilon))]
    printed = line.worst(case.epsilon)
    low, high = 1.0 - _TOLERANCE, 1.0 + _TOLERANCE
    return [Row(_MSE, name, case.epsilon, measured, printed, printed, law="within", low=low, high=high)]


def _points_1(settings: Settings) -> list[Point]:
    bases = _BASES[:2] if settings.quick else _BASES
    losses = [
        Point(f"losses-{name}-{base}", partial(_losses, name, base, settings))
        for name in _LINES
        if name != "MSE-OCMS+RR"
        for base in bases
    ]
    worst = [
        Point(f"worst-{name}-{base}", partial(_worst, name, base))
        for name in _LINES
        if name != "l-OCMS+RR"
        for base in bases
    ]
    return [*losses, *worst]


def _constant(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the least and the largest of RHR's n l2 min(epsilon, epsilon^2) / d."""
    found = [(row.measured or 0.0) * min(row.x, row.x**2) for row in select(rows, _L2, "RHR")]
    return min(found), max(found)


def _text_of_3_4(epsilon: float) -> float:
    """Return n MSE as the text of [P25] section 3.4 prints it; Theorem 3.6 and Table I have `sqrt(e) - 1`."""
    return math.exp(epsilon / 2.0) / math.expm1(epsilon) ** 2


def _claims_1(rows: Sequence[Row]) -> list[Claim]:
    asymptotic = [row for row in select(rows, _L2) if row.printed is not None]
    least = all(
        row.predicted <= 1.001 * min(other.predicted or math.inf for other in select(rows, _L2) if other.x == row.x)
        for row in select(rows, _L2, "l-OCMS+RR")
        if row.predicted
    )
    rhr = select(rows, _MSE, "RHR")
    low, high = _constant(rows)
    text = [(row, _text_of_3_4(row.x)) for row in select(rows, _MSE, "MSE-OCMS+RR")]
    return [
        Claim("the worst-case MSE of OCMS+RR is sqrt(e)/(n (e-1)^2), as the text of section 3.4 says",
              all(abs((row.measured or 0.0) / printed - 1.0) < _TOLERANCE for row, printed in text), False),
        Claim("the l2 losses approach the printed ones, to 3 % at d = 1,000",
              all(abs((row.predicted or 0.0) / (row.printed or 1.0) - 1.0) < 0.03 for row in asymptotic)),
        Claim("the l1 losses stay below the printed bounds",
              all((row.measured or 0.0) < row.bound for row in select(rows, _L1) if row.bound)),
        Claim("OCMS+RR leads in l2 loss, to 0.1 %", least),
        Claim("RHR's worst-case MSE is no less than HE's",
              all((row.measured or 0.0) > (row.bound or 0.0) for row in rhr)),
        Claim("RHR's l2 loss is d / (n min(epsilon, epsilon^2)) to a constant, between 0.5 and 8",
              low > 0.5 and high < 8.0),
    ]  # fmt: skip


def _tell_1(rows: Sequence[Row]) -> str:
    x = math.log(9)
    ours, simple = (find(rows, _L2, name, x) for name in ("l-OCMS+RR", "HE"))
    worst = find(rows, _MSE, "MSE-OCMS+RR", x)
    low, high = _constant(rows)
    return (
        f"At epsilon ln 9 and d=1,000, n l2/d: l-OCMS+RR {ours.measured:.4f} (printed limit {ours.printed:.4f}), HE "
        f"{simple.measured:.3f} ({simple.printed:.3f}); n MSE of MSE-OCMS+RR {worst.measured:.4f} (table "
        f"{worst.printed:.4f}; the text of section 3.4 prints {_text_of_3_4(x):.4f}). RHR's constant is {low:.2f} "
        f"to {high:.2f}."
    )


TABLE1 = Figure(
    name="p25-table1",
    title="[P25] Table I: losses where d is much larger than e",
    version=1,
    panels=[
        Panel(_L2, "epsilon", "n l2 / d", log_y=True),
        Panel(_L1, "epsilon", "sqrt(n) l1 / d", log_y=True),
        Panel(_MSE, "epsilon", "n MSE", log_y=True),
    ],
    points=_points_1,
    claims=_claims_1,
    tell=_tell_1,
    runs=100,
    quick_runs=5,
)

_BITS = "bits"
_DOMAINS = (100, 1000, 10_000)
_EPSILONS = (1.0, 3.0)


def _information(name: str, epsilon: float, domain: int) -> tuple[Mechanism, float, float]:
    """Return the mechanism, the bits of its report by a separate formula, and the bits that Table II prints."""
    oracle = {"OLH": "olh", "MSE-OCMS+RR": "ocms-mse", "l-OCMS+RR": "ocms-l2", "CMS+HE": "hcms", "RAPPOR": "sue"}.get(
        name, name.lower()
    )
    given = plan(oracle, epsilon, domain, _APPLE if oracle == "hcms" else {}, Objective(), _SEED)
    mechanism = build(oracle, epsilon, domain, given)
    if name in ("HE", "RHR"):
        blocks = 1 << (int(given.get("b", 1)) - 1)
        order = 1 << (-(-domain // blocks) - 1).bit_length()
        return mechanism, math.log2(order * 2 * blocks), math.log2(domain) + (epsilon if name == "RHR" else 0.0)
    if name == "SS":
        return mechanism, subset_bits(domain, int(given["s"])), domain / (1.0 + math.exp(epsilon))
    if name == "RAPPOR":
        return mechanism, float(domain), float(domain)
    if name == "CMS+HE":
        return mechanism, math.log2(1024 * 1024 * 2), domain * math.log2(1024)
    bits = folded_bits(prime_at_least(domain), int(given["B"]))
    factor = 0.5 if name == "MSE-OCMS+RR" else 1.0
    printed = max(2.0 * math.log2(domain) + factor * epsilon, 3.0 * factor * epsilon + 6.0)
    return mechanism, bits, domain * epsilon if name == "OLH" else printed


_NAMES = ("HE", "RHR", "OLH", "MSE-OCMS+RR", "l-OCMS+RR", "CMS+HE", "SS", "RAPPOR")


def _bits(name: str, epsilon: float) -> list[Row]:
    found = []
    for domain in _DOMAINS:
        mechanism, predicted, printed = _information(name, epsilon, domain)
        found.append(
            Row(f"{_BITS}, epsilon={epsilon:g}", name, domain, mechanism.report_bits, predicted, printed,
                law="within", low=1 - 1e-6, high=1 + 1e-6)
        )  # fmt: skip
    return found


def _claims_2(rows: Sequence[Row]) -> list[Claim]:
    logarithmic = [row for row in rows if row.series in ("HE", "RHR", "MSE-OCMS+RR", "l-OCMS+RR")]
    subsets = [row for row in rows if row.series == "SS"]
    panel = rows[0].panel
    ends = [
        [find(rows, panel, name, d).measured or 0.0 for d in (_DOMAINS[0], _DOMAINS[-1])] for name in ("OLH", "CMS+HE")
    ]
    growth = [last / first for first, last in ends]
    return [
        Claim("HE, RHR and OCMS+RR take the printed number of bits, within 2 bits",
              all(abs((row.measured or 0.0) - (row.printed or 0.0)) < 2.0 for row in logarithmic)),
        Claim("OLH and CMS take bits in proportion to d", min(growth) > 50.0, False),
        Claim("SS takes d/(1+e) bits", all((row.measured or 0.0) <= (row.printed or 0.0) for row in subsets), False),
    ]  # fmt: skip


def _tell_2(rows: Sequence[Row]) -> str:
    panel = f"{_BITS}, epsilon=1"
    last = [find(rows, panel, name, _DOMAINS[-1]) for name in _NAMES]
    parts = [f"{row.series} {row.measured:,.1f} ({row.printed:,.1f})" for row in last]
    return (
        f"Bits of a report at epsilon 1, d=10,000, and as printed: {', '.join(parts)}. SS needs log2 C(d, s), not "
        "d/(1+e). OLH and CMS+HE send no value for each item, because their functions come from small families."
    )


TABLE2 = Figure(
    name="p25-table2",
    title="[P25] Table II: bits of a report",
    version=1,
    panels=[Panel(f"{_BITS}, epsilon={e:g}", "d", "bits", log_x=True, log_y=True) for e in _EPSILONS],
    points=lambda settings: [
        Point(f"{name}-{epsilon:g}", partial(_bits, name, epsilon)) for epsilon in _EPSILONS for name in _NAMES
    ],
    claims=_claims_2,
    tell=_tell_2,
)
