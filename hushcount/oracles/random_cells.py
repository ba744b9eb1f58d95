"""The law of the score in a pool of an item that nobody holds: the sum of a random cell of each row of the tally.

The functions draw the cells of an item that nobody holds at random, independently of the tally. The content of these
random cells, noise and collisions together, comes from other items only. So the tally gives the exact law of the score,
without any assumption about the other items.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hushcount.arrays import FloatArray, IntArray

_STEP = 0.1
"""The grid's step, as a part of the rows' mean standard deviation: rounding adds at most 0.25 % to the variance."""
_FAR = 35.0
"""The exponent of Bernstein's bound: sums outside the window have a probability below 2 exp(-35)."""
_ROUNDING = 1e-13
"""Added to every tail, for the rounding errors of the transform."""
_BLOCK = 256
_NEGLIGIBLE = 1e-18
_SHORT = 1 << 12
"""If fewer sums than this are possible, the grid needs no rounding and no window."""
_CHUNK = 1 << 22
_WIDE = 1 << 10
"""A row that spans more grid steps than this is transformed by itself."""


@dataclass(frozen=True, eq=False)
class CellSum:
    """The law of the sum of one random cell of each row.

    Attributes:
        mean, variance: of the sum; `start + i step` are the tabulated sums.
        tail: float64[g], descending: an upper bound of the probability of `start + i step` or more.
        head: float64[g], ascending: an upper bound of the probability of `start + i step` or less.
        least: m^-k, the probability of one choice of a cell in each row; no tail of the law is smaller unless it is 0.
    """

    mean: float
    variance: float
    start: float
    step: float
    tail: FloatArray
    head: FloatArray
    least: float

    def at_least(self, sums: FloatArray | IntArray) -> FloatArray:
        """Return the probability of each sum or more, 1e-13 at least."""
        places = np.floor((np.asarray(sums, dtype=np.float64) - self.start) / self.step + 1e-9)
        inside = np.clip(places, 0, len(self.tail) - 1).astype(np.int64)
        return np.where(places < 0, 1.0, np.where(places >= len(self.tail), _ROUNDING, self.tail[inside]))

    def deviations(self, tail: float) -> tuple[float, float]:
        """Return (below, above): distances from the mean that the sum reaches with probability at most `tail` each."""
        above = self.start + self.step * int(np.searchsorted(-self.tail, -tail)) - self.mean
        below = self.mean - (self.start + self.step * (int(np.searchsorted(self.head, tail, side="right")) - 1))
        return max(0.0, below), max(0.0, above)


def cell_sum(matrix: IntArray, without: npt.NDArray[np.uint64] | None = None) -> CellSum:
    """Return the law of the sum over the rows of `matrix`, int64[k, m], of a uniform cell of each, independently.

    The law is the inverse Fourier transform of the product of the rows' characteristic functions. The law is exact if
    counts need no rounding; if counts need rounding, they are rounded to a grid so that every row keeps its mean. m is
    at least 2. `without`, uint64[k], is a cell of each row to leave out.
    """
    if without is not None and matrix.shape[1] > 2:
        kept = np.arange(matrix.shape[1])[None, :] != without[:, None]
        matrix = matrix[kept].reshape(len(matrix), -1)
    lowest, variance = matrix.min(axis=1), float(matrix.var(axis=1).sum())
    spans = matrix.max(axis=1) - lowest
    step = 1 if spans.sum() < _SHORT else max(1, int(_STEP * math.sqrt(variance) / math.sqrt(len(matrix))))
    spans = -(-spans // step)
    mean, total = float((matrix.mean(axis=1) - lowest).sum()), int(spans.sum())
    size = 1 << max(1, min(total, int(2.0 * _reach(matrix) / step) + 4)).bit_length()
    first = 0 if total < size else int(mean / step) - size // 2
    transform = _transform(matrix - lowest[:, None], spans, step, size)
    weights = np.roll(np.maximum(np.fft.irfft(transform, size), 0.0), -(first % size))
    offset = float(lowest.sum())
    tail, head = (np.minimum(1.0, sums + _ROUNDING) for sums in (np.cumsum(weights[::-1])[::-1], np.cumsum(weights)))
    least = float(matrix.shape[1]) ** -len(matrix)
    return CellSum(offset + mean, variance, offset + first * step, float(step), tail, head, least)


def _reach(matrix: IntArray) -> float:
    """Return a distance from the mean that the sum exceeds with a probability below `2 exp(-35)`.

    The rows are split in two parts. Rows with the farthest cells add the distance of their farthest cell, all other
    rows add Bernstein's bound; of all such splits the one with the least distance is used. By Bernstein's bound alone,
    one cell that a forger filled would make the window many times too wide.
    """
    means = matrix.mean(axis=1)
    far = np.maximum(matrix.max(axis=1) - means, means - matrix.min(axis=1))
    order = np.argsort(-far)
    sure = np.concatenate([[0.0], np.cumsum(far[order])])
    variances = np.concatenate([np.cumsum(matrix.var(axis=1)[order][::-1])[::-1], [0.0]])
    slope = np.concatenate([far[order], [0.0]]) * _FAR / 3.0
    return float((sure + slope + np.sqrt(slope**2 + 2.0 * _FAR * variances)).min())


def _transform(offsets: IntArray, spans: IntArray, step: int, size: int) -> npt.NDArray[np.complex128]:
    """Return the characteristic function of the sum at the frequencies 0..size/2, with 0 from where it is negligible.

    `offsets` are cells minus their row's lowest cell. `spans` are the rows' largest offsets, in steps, all shorter than
    the grid.
    """
    found = np.zeros(size // 2 + 1, dtype=np.complex128)
    groups: list[tuple[int, IntArray]] = []
    alone: list[int] = []
    # Rows of similar spans are transformed together, so that a row with one high cell does not widen all others.
    octaves = np.ceil(np.log2(spans + 1)).astype(np.int64)
    for octave in np.unique(octaves).tolist():
        width, members = 1 << octave, np.flatnonzero(octaves == octave)
        # The table of waves is as long as a row, so a few long rows are transformed faster one by one.
        if width > min(_WIDE, 2 * len(members)):
            alone.extend(members.tolist())
        else:
            groups.append((width, members))
    values = np.arange(max((width for width, _ in groups), default=1))
    for start in range(0, len(found), _BLOCK):
        places = np.arange(start, min(start + _BLOCK, len(found)))
        angles = (-2.0 * np.pi / size) * ((values[:, None] * places[None, :]) % size)
        waves = np.exp(1j * angles)
        product = np.ones(len(places), dtype=np.complex128)
        for width, members in groups:
            rows = max(1, _CHUNK // max(width, _BLOCK))
            for row in range(0, len(members), rows):
                laws = _row_laws(offsets[members[row : row + rows]], step, width)
                product *= (laws @ waves[:width]).prod(axis=0)
        found[places] = product
        if size > _SHORT and np.abs(product).max() < _NEGLIGIBLE:
            break
    for row in alone:
        found *= np.fft.rfft(_row_laws(offsets[[row]], step, int(spans[row]) + 1)[0], size)
    return found


def _row_laws(offsets: IntArray, step: int, width: int) -> FloatArray:
    """Return float64[rows, width]: the law of a uniform cell of each row, rounded to steps so that means are kept."""
    cells = offsets.shape[1]
    places, rest = np.divmod(offsets, step)
    index = places + width * np.arange(len(offsets))[:, None]
    shape = len(offsets) * width
    laws = np.bincount(index.ravel(), (1.0 - rest / step).ravel() / cells, shape)
    if step > 1:
        upper = np.minimum(places + 1, width - 1) + width * np.arange(len(offsets))[:, None]
        laws += np.bincount(upper.ravel(), (rest / step).ravel() / cells, shape)
    return np.asarray(laws, dtype=np.float64).reshape(-1, width)
