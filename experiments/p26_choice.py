"""[P26] section 5.4: the table for choosing an optimal algorithm, with numbers in place of orders of magnitude."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from experiments.figure import Figure, Panel, Point
from experiments.judging import Claim
from experiments.loss_forms import (
    folded_bits,
    folded_l2,
    mixed_l2,
    printed_excess,
    rounding_excess,
    subset_bits,
    symmetric_l2,
)
from experiments.rows import Row, find, select
from hushcount.maths.bounds import least_l2
from hushcount.maths.objectives import Objective
from hushcount.maths.primes import prime_at_least
from hushcount.oracles.catalogue import build, plan
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.parameters import Parameters

_SYSTEMS = {"SS": "ss", "OCMS": "ocms-round", "WSS": "wss", "AIS (ours)": "ais"}
_PRECISION, _BITS = "l2 loss over the strict bound", "bits of a report"
_MIXED = "OCMS by Corollary 5.1"
_EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
_D = 100
_PRIME = prime_at_least(_D)
_ALMOST = 1e-6


def _closed(series: str, epsilon: float, parameters: Parameters) -> tuple[float, float]:
    """Return n l2 and the bits of a report, by formulas that the product's code does not use."""
    if series == "OCMS":
        buckets = int(parameters["B"])
        bits = folded_bits(_PRIME, buckets) if buckets < _PRIME else math.log2((_PRIME - 1) // 2 * _PRIME)
        return folded_l2(epsilon, _D), bits
    if series == "WSS":
        size = int(str(parameters["design"]).split("-")[1])
        return symmetric_l2(epsilon, size, _D, _D), math.log2(_D * (_D - 1) / 2 + 1)
    size = int(parameters["s"])
    if series == "SS":
        return symmetric_l2(epsilon, size, _D, _D), subset_bits(_D, size)
    return symmetric_l2(epsilon, size, _PRIME, _D), math.log2((_PRIME - 1) // 2 * _PRIME)


def _printed_bits(series: str, epsilon: float) -> float | None:
    """Return the printed bits of a report: section 5.1's bound for SS, and the table's entries for the others."""
    if series == "SS":
        size = _D / (math.exp(epsilon) + 1.0)
        return size * math.log2(math.e * _D / size)
    return {"OCMS": 2.0 * epsilon * math.log2(2 * _D), "WSS": 2.0 * math.log2(_D)}.get(series)


def _rows(series: str) -> list[Row]:
    found = []
    for epsilon in _EPSILONS:
        parameters = plan(_SYSTEMS[series], epsilon, _D, {}, Objective(), "0" * 64)
        mechanism = build(_SYSTEMS[series], epsilon, _D, parameters)
        least = least_l2(epsilon, _D, 1)
        l2, bits = _closed(series, epsilon, parameters)
        precision = _D * float(mechanism.variance(1, 1.0 / _D)) / least
        printed = printed_excess(epsilon, _D) if series == "OCMS" else 1.0
        if series == "SS":
            printed = rounding_excess(epsilon, _D, printed=True)
        near = (1.0 - _ALMOST, 1.0 + _ALMOST)
        found.append(
            Row(_PRECISION, series, epsilon, precision, l2 / least, printed, 1.0, "within", low=near[0], high=near[1])
        )
        found.append(_length(series, epsilon, mechanism, bits))
        if series == "OCMS":
            found.append(Row(_PRECISION, _MIXED, epsilon, printed=mixed_l2(epsilon, _D) / least))
    return found


def _length(series: str, epsilon: float, mechanism: Mechanism, bits: float) -> Row:
    # Theorem 4.1 bounds the rows of a design from above; the smallest design may have fewer rows.
    low = 0.0 if series == "WSS" else 1.0 - _ALMOST
    printed = _printed_bits(series, epsilon)
    return Row(_BITS, series, epsilon, mechanism.report_bits, bits, printed, law="within", low=low, high=1.0 + _ALMOST)


def _claims(rows: Sequence[Row]) -> list[Claim]:
    subset = [row.measured or 0.0 for name in ("SS", "WSS") for row in select(rows, _PRECISION, name)]
    sketch = {row.x: row for row in select(rows, _PRECISION, "OCMS")}
    lengths = select(rows, _BITS, "OCMS")
    designs = select(rows, _BITS, "WSS")
    mixed = [(row.printed or 0.0) / (sketch[row.x].measured or 1.0) for row in select(rows, _PRECISION, _MIXED)]
    return [
        Claim("SS and WSS have the least l2 loss, within 0.4 % as sizes are integers", max(subset) < 1.004),
        Claim("Corollary 3.2 bounds SS's loss at an integer size",
              all((row.measured or 0.0) <= row.printed for row in select(rows, _PRECISION, "SS") if row.printed)),
        Claim("WSS takes 2 log2 d bits at most", all((row.measured or 0.0) <= (row.printed or 0.0) for row in designs)),
        Claim("OCMS is at most 0.09 % above the bound at epsilon 1, d = 100",
              (sketch[1.0].measured or 2.0) < 1.00095, False),
        Claim("Corollary 5.2 bounds OCMS's loss",
              all((row.measured or 0.0) <= row.printed for row in sketch.values() if row.printed), False),
        Claim("Corollary 5.1 gives OCMS's loss, to 0.01 %", all(abs(each - 1.0) < 1e-4 for each in mixed), False),
        Claim("OCMS takes 2 epsilon log2(2d) bits at most",
              all((row.measured or 0.0) <= (row.printed or 0.0) for row in lengths), False),
    ]  # fmt: skip


def _tell(rows: Sequence[Row]) -> str:
    one = {name: find(rows, _PRECISION, name, 1.0) for name in _SYSTEMS}
    parts = [
        f"{name} {(row.measured or 1) - 1:.3%} and {find(rows, _BITS, name, 1.0).measured:.1f} bits"
        for name, row in one.items()
    ]
    short = find(rows, _BITS, "OCMS", 0.5)
    mixed = find(rows, _PRECISION, _MIXED, 3.0)
    return (
        f"At d=100, epsilon 1, l2 loss above the strict bound and report: {', '.join(parts)}. Corollary 5.2 prints "
        f"{(one['OCMS'].printed or 1) - 1:.2%} for OCMS. At epsilon 3 OCMS is at {mixed.printed:.4f} by Corollary 5.1, "
        f"in fact at {find(rows, _PRECISION, 'OCMS', 3.0).measured:.4f}. At epsilon 0.5 the printed 2 epsilon log2(2d) "
        f"is {short.printed:.1f} bits, but OCMS takes {short.measured:.1f}."
    )


TABLE = Figure(
    name="p26-table",
    title="[P26] section 5.4: choosing an optimal algorithm, d=100",
    version=2,
    panels=[Panel(_PRECISION, "epsilon", "l2 / least l2"), Panel(_BITS, "epsilon", "bits", log_y=True)],
    points=lambda settings: [Point(_SYSTEMS[series], partial(_rows, series)) for series in _SYSTEMS],
    claims=_claims,
    tell=_tell,
)
