"""How far forgers could move the answer to a question."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hushcount.arrays import FloatArray
from hushcount.oracles.influence import forged_part, influence
from hushcount.questions.counted import Counted, Group


def forged_moves(
    before: Sequence[Counted], after: Sequence[Counted], groups: Sequence[Group], was: FloatArray, now: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return (down, up), float64[g], positive: how far `FORGERS` of all clients could move each difference of shares.

    These clients forge in every result of both sides, each time with the reports that move the difference most. A part
    f of a side's reports that adds x users each, in place of honest reports, moves a share by `f (x - share)`. For
    items both bounds are reached; for groups they are upper bounds (`influence`).

    Args:
        before, after: results of each side.
        was, now: float64[g], the share of each group before and after.
    """
    (lowered, raised), (lower, higher) = _of_side(before, groups, was), _of_side(after, groups, now)
    return lower + raised, higher + lowered


def _of_side(results: Sequence[Counted], groups: Sequence[Group], share: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (down, up), float64[g]: how far forgers could move the share of each group on one side."""
    down, up, part = np.zeros(len(groups)), np.zeros(len(groups)), 0.0
    reports = sum(one.reports for one in results)
    for one in results:
        forged = one.reports / reports * forged_part(one.campaign.asked)
        distinct, place = np.unique(one.sizes(groups), return_inverse=True)
        bounds = [influence(one.campaign.require_frequency(), int(size)) for size in distinct]
        down += forged * np.array([bound.down for bound in bounds])[place]
        up += forged * np.array([bound.up for bound in bounds])[place]
        part += forged
    held = part * np.clip(share, 0.0, 1.0)
    return down + held, np.maximum(up - held, 0.0)
