"""[J] Figure 7: how long a report of GCMS and of Apple's CMS is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from experiments.figure import Figure, Panel, Point, Settings
from experiments.judging import Claim
from experiments.loss_forms import subset_bits
from experiments.rows import Row, find, select
from experiments.sketch_forms import printed_size
from hushcount.maths.probability import probability_threshold
from hushcount.oracles.responders.subset import Subset
from hushcount.oracles.responders.unary import Unary
from hushcount.wire import fields

_LENGTH, _WIRE, _CMS = "information", "on the wire", "Apple's CMS"
_LOW, _HIGH = 1.0 - 1e-6, 1.0 + 1e-6
_CASES = tuple((epsilon, p) for epsilon in (3.0, 5.0) for p in (0.5, 0.6))
_LARGEST = 10_000


def _series(epsilon: float, p: float) -> str:
    return f"GCMS, epsilon={epsilon:g}, p={p:g}"


def _widths(quick: bool) -> list[int]:
    return [int(m) for m in np.linspace(100, _LARGEST, 5 if quick else 25)]


def _subset(epsilon: float, p: float, quick: bool) -> list[Row]:
    """Return the information of a report, which is tested, and its bits on the wire, which are more for large sets."""
    found = []
    for width in _widths(quick):
        size = printed_size(p, epsilon, width)
        layout = Subset(width, size, probability_threshold(p)).fields
        least, listed = subset_bits(width, size), size * math.log2(width)
        bits, wire = fields.report_bits(layout), 8.0 * fields.report_bytes(layout)
        # lgamma(10,000) has a relative error of 1e-11, and the bits are small differences of such values.
        found.append(
            Row(_LENGTH, _series(epsilon, p), width, bits, least, bound=listed, law="within", low=_LOW, high=_HIGH)
        )
        found.append(Row(_WIRE, _series(epsilon, p), width, wire, bound=listed))
    return found


def _unary(quick: bool) -> list[Row]:
    found = []
    for width in _widths(quick):
        layout, bits = Unary.symmetric(3.0, width).fields, float(width)
        found.append(Row(_LENGTH, _CMS, width, fields.report_bits(layout), bits, bits, law="exact"))
        found.append(Row(_WIRE, _CMS, width, 8.0 * fields.report_bytes(layout), bound=bits))
    return found


def _points(settings: Settings) -> list[Point]:
    subsets = [Point(f"{epsilon:g}-{p:g}", partial(_subset, epsilon, p, settings.quick)) for epsilon, p in _CASES]
    return [*subsets, Point("cms", partial(_unary, settings.quick))]


def _claims(rows: Sequence[Row]) -> list[Claim]:
    ours = [row for row in select(rows, _LENGTH) if row.series != _CMS]
    at_end = {case: find(rows, _LENGTH, _series(*case), _LARGEST).bound or 0.0 for case in _CASES}
    return [
        Claim("a report of GCMS is shorter than Apple's m bits", all((row.measured or 0.0) < row.x for row in ours)),
        Claim("GCMS takes s log2 m bits or fewer", all((row.measured or 0.0) <= (row.bound or 0.0) for row in ours)),
        Claim("a smaller p and a larger epsilon shorten a report of GCMS",
              all(at_end[epsilon, 0.5] < at_end[epsilon, 0.6] for epsilon in (3.0, 5.0))
              and all(at_end[5.0, p] < at_end[3.0, p] for p in (0.5, 0.6))),
    ]  # fmt: skip


def _tell(rows: Sequence[Row]) -> str:
    parts = []
    for case in _CASES:
        row = find(rows, _LENGTH, _series(*case), _LARGEST)
        parts.append(f"epsilon {case[0]:g}, p {case[1]:g}: {row.measured:,.0f} (s log2 m: {row.bound:,.0f})")
    ratio = min((row.measured or 0.0) / (row.bound or 1.0) for row in select(rows, _LENGTH) if row.series != _CMS)
    sent = [row for row in select(rows, _WIRE) if row.series != _CMS]
    least = [find(rows, _LENGTH, row.series, row.x).measured or 0.0 for row in sent]
    wide = sum((row.measured or 0.0) >= bits + 8.0 for row, bits in zip(sent, least, strict=True))
    told = f" On the wire {wide} of {len(sent)} are longer lists or bitmaps: their rank would need too large a table."
    told = told if wide else ""
    return (
        f"Bits of a report at m=10,000, where Apple's has 10,000: {'; '.join(parts)}. A report that is coded as a set "
        f"takes log2 C(m, s) bits, down to {ratio:.0%} of the paper's list.{told}"
    )


FIG7 = Figure(
    name="j-fig7",
    title="[J] Figure 7: bits of a report of GCMS and of Apple's CMS",
    version=1,
    panels=[Panel(title, "m, cells of a hash row", "bits") for title in (_LENGTH, _WIRE)],
    points=_points,
    claims=_claims,
    tell=_tell,
)
