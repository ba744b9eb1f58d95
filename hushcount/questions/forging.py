"""How far forgers could move the answer to a question."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hushcount.arrays import FloatArray, IntArray
from hushcount.oracles.influence import forged_part, influence
from hushcount.questions.counted import Counted


def forged_moves(
    before: Sequence[Counted], after: Sequence[Counted], sizes: IntArray, was: FloatArray, now: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return (down, up), float64[g], positive: how far `FORGERS` of all clients could move each difference of shares.

    These clients forge in every result of both sides, each time with the reports that move the difference most. A part
    f of a side's reports that adds x users each, in place of honest reports, moves a share by `f (x - share)`. For
    items both bounds are reached; for groups they are upper bounds (`influence`).

    Args:
        before, after: results of each side.
        sizes: int64[g], the number of items of each group.
        was, now: float64[g], the share of each group before and after.
    """
    (lowered, raised), (lower, higher) = _of_side(before, sizes, was), _of_side(after, sizes, now)
    return lower + raised, higher + lowered


def _of_side(results: Sequence[Counted], sizes: IntArray, share: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (down, up), float64[g]: how far forgers could move the share of each group on one side."""
    distinct, place = np.unique(sizes, return_inverse=True)
    down, up, part = np.zeros(len(distinct)), np.zeros(len(distinct)), 0.0
    reports = sum(one.reports for one in results)
    for one in results:
        forged = one.reports / reports * forged_part(one.campaign.asked)
        bounds = [influence(one.campaign.require_frequency(), int(size)) for size in distinct]
        down += [forged * bound.down for bound in bounds]
        up += [forged * bound.up for bound in bounds]
        part += forged
    held = part * np.clip(share, 0.0, 1.0)
    return down[place] + held, np.maximum(up[place] - held, 0.0)
