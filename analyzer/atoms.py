"""Atoms after opening: those of which too few reports could be opened are counted together (docs/adr/0059)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from analyzer.tally_reports import Sums

Atom = tuple[tuple[int, ...], Sums]
"""The strata of an atom, ascending, and the sums of its reports."""


def joined(atoms: Sequence[Atom], minimum: int) -> list[Atom]:
    """Return the atoms that have the minimum batch; all others are one atom if they have it together, and else none.

    If each of the others were left out, a few reports that cannot be opened could hide many that can.
    """
    small = [one for one in atoms if one[1].reports < minimum]
    large = [one for one in atoms if one[1].reports >= minimum]
    reports = sum(sums.reports for _, sums in small)
    if reports < minimum:
        return large
    strata = tuple(sorted(chain.from_iterable(strata for strata, _ in small)))
    counts = np.stack([sums.counts for _, sums in small]).sum(axis=0)
    # Repeats are narrow integers.
    repeats = np.stack([sums.repeats for _, sums in small]).sum(axis=0, dtype=np.int64)
    return [*large, (strata, Sums(reports, counts, repeats))]
