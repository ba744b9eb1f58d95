"""What encoders share whose k functions are fixed for the campaign, so that collisions are a bias."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from hushcount.arrays import Counts, FloatArray, UInt64Array
from hushcount.maths.variance import Numbers, SupportLaw, supporting
from hushcount.oracles.encoders.base import Encoder, Scored
from hushcount.oracles.estimates import Estimate
from hushcount.oracles.evidence import SharedCells
from hushcount.oracles.random_cells import cell_sum
from hushcount.oracles.responders.base import Responder
from hushcount.oracles.tally import Tally

_FREQUENT = 50
"""An item that is this part of the variance of what others collide with has a law of its own.

No more than so many can be, of those that are held; of those that forged reports only seem to hold there is no end.
"""


class PoolEncoder(Encoder, Protocol):
    """An encoder of k fixed functions, its `rows`."""

    @property
    def rows(self) -> int: ...

    @property
    def pool_cells(self) -> int:
        """m, over how many cells the fixed functions spread the items."""
        ...

    def cell_scores(self, tally: Counts) -> Counts:
        """Return int64[k, m]: what each cell adds to the score of the items in it; `scores` is the sum over rows."""
        ...

    def cells_of(self, item: int) -> UInt64Array:
        """Return uint64[k]: the item's cell under every function."""
        ...

    def cell_squares(self, tally: Counts, reports: int, responder: Responder) -> float:
        """Estimate `sum over rows and cells of N^2`, N the clients of the row whose own cell it is; unbiased."""
        ...


class Pooled:
    """The laws and estimates of a `PoolEncoder`."""

    scatters = False

    def law(self: PoolEncoder, p: Numbers, q: Numbers) -> SupportLaw:
        return supporting(p, q, float(self.collision), 1.0 / (self.rows * (self.pool_cells - 1)))

    def near_users(self, items: UInt64Array, held: FloatArray) -> FloatArray | None:
        return None

    def estimate(self: PoolEncoder, scored: Scored) -> Estimate:
        n, held, noise = scored.tally.reports, scored.held, scored.noise()
        # Others hold at least one report each, so their squares add up to no less than their number.
        others = np.maximum(sum_of_squares(self, scored.tally, scored.responder) - held**2, n - held)
        collisions = np.sqrt(np.multiply(scored.law.clash, others))
        return Estimate(scored.count, noise, collisions, _shared_cells(self, scored))


def _shared_cells(encoder: PoolEncoder, scored: Scored) -> SharedCells:
    """Return what a pool's scores say, by the cells of others in this very tally."""
    matrix, m, gain = encoder.cell_scores(scored.tally.counts), encoder.pool_cells, float(scored.law.gain)
    law = cell_sum(matrix)
    # What an item adds to the cells is no collision of its own.
    part = scored.law.clash * np.maximum(scored.count, 0.0) ** 2 * gain**2
    largest = np.argsort(-part, kind="stable")[:_FREQUENT]
    places = largest[part[largest] > law.variance / _FREQUENT]
    frequent = {int(place): cell_sum(matrix, encoder.cells_of(int(scored.items[place]))) for place in places}
    n, own, widening = scored.tally.reports, float(scored.law.own), math.sqrt(m / (m - 1.0))
    return SharedCells(scored.scores, n, law, frequent, scored.count, gain, own, widening)


def sum_of_squares(encoder: PoolEncoder, tally: Tally, responder: Responder) -> float:
    """Estimate the sum over all items of their squared counts from a pool's tally alone, no dictionary needed.

    Over rows and functions the squared counts of cells, N_jc^2, add up to `n(1 - 1/k) + S/k + (n^2 - S)/(mk)` on
    average. Solved for S. Derived here; simulated in the tests.
    """
    k, m, n = encoder.rows, encoder.pool_cells, tally.reports
    squares = encoder.cell_squares(tally.counts, n, responder)
    return (squares - n * (1.0 - 1.0 / k) - n * n / (m * k)) * k / (1.0 - 1.0 / m)
