"""Bins: how many reports hold the same pair of hash and sealed value.

Honest clients that hold a value make the same pair, byte for byte, so a bin has one sealed value and nothing is drawn.
A forged pair, another sealed value under the same hash, is a bin of its own and takes nothing from the honest one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Bins:
    """Counts of a set of bins.

    Attributes:
        pairs: S[b], ascending and distinct, each a hash and a sealed value.
        counts: int64[b].
        copies: how many reports were left out of the counts, as copies of others.
    """

    pairs: npt.NDArray[np.bytes_]
    counts: npt.NDArray[np.int64]
    copies: int = 0
