"""Search for balanced designs by linear programming; the designs that the package ships were found by it.

    python -m experiments.designs 90 24    # prints a file of designs: one of 90 cells, with 24 cells a row

To use a design, put it into `hushcount/designs/designs.json`, because every party has to know it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from hushcount.arrays import FloatArray, IntArray
from hushcount.designs.balanced import Design, constructed_design, turns_of
from hushcount.errors import HushcountError

ATTEMPTS = 8
LARGEST_IMBALANCE = 1e-9
_TOTAL = 1 << 50
"""Approximate weight of all blocks, so large that rounding to integers unbalances a design by only about 1e-13."""


def search_design(width: int, size: int, seed: int = 0) -> Design:
    """Find a design of at most `m(m-1)/2 + 1` rows, by the first of up to 8 samples of blocks that allows one.

    Blocks are sampled, and each is turned over an odd number of cells. So of the paper's `m(m-1)/2` equations only
    `floor(m/2)` remain, one for each distance of two cells. A vertex of the solutions has no more blocks than there are
    equations. The paper's own search samples `m**2` subsets; the law and the bound on the rows are the same here. At
    width 50 the paper's search took 140 s and this one takes 0.1 s; it takes 0.5 s at width 500 and 5 s at 1000. A
    design that needs no search (1, 2 or m-1 cells a row, or a prime width) is constructed.

    Args:
        width: m, the number of cells, 2..1024.
        size: s, cells of a row, 1..m-1.
        seed: of the sampled blocks, which are public and need no secret randomness; the same seed and libraries find
            the same design.

    Raises:
        UsageError: a value is out of range.
        HushcountError: no sample allowed a design.

    Reference: [P26] section 5.3 and Theorem 4.1.
    """
    known = constructed_design(width, size)
    if known is not None:
        return known
    generator = np.random.default_rng(seed)
    for attempt in range(ATTEMPTS):
        # With twice as many random blocks as equations, half of all samples allow a solution (Wendel 1962).
        count = max(16, 2 * (width // 2) * (attempt + 2))
        design = _solve(width, _uniform_blocks(width, size, count, generator), generator)
        if design is not None:
            return design
    raise HushcountError(
        f"no design of width {width} and size {size} in {ATTEMPTS} attempts with seed {seed}: try another seed, or use "
        "mechanism ais, which needs no design"
    )


def _uniform_blocks(width: int, size: int, count: int, generator: np.random.Generator) -> IntArray:
    """Return int64[count, size]: uniform subsets, ascending."""
    return np.sort(np.argsort(generator.random((count, width)), axis=1)[:, :size], axis=1)


def _solve(width: int, blocks: IntArray, generator: np.random.Generator) -> Design | None:
    """Return a design made of some of the blocks, or None if no choice of them makes one."""
    size, turns = blocks.shape[1], turns_of(width)
    members = np.zeros((len(blocks), width))
    np.put_along_axis(members, blocks, 1.0, axis=1)
    covers = _orbit_covers(members, turns)
    wanted = size * (size - 1) / (width * (width - 1)) * turns
    weights = _vertex(covers.T, wanted, generator)
    if weights is None:
        return None
    used = np.flatnonzero(weights)
    staying = members[used, -1] > 0.0 if turns == width - 1 else None
    rounded = _integers(weights[used], width, size, staying)
    kept = rounded > 0
    if not kept.any():
        return None
    chosen = tuple(map(tuple, blocks[used[kept]].tolist()))
    design = Design(width, size, turns, chosen, tuple(rounded[kept].tolist()))
    return design if design.imbalance <= LARGEST_IMBALANCE else None


def _orbit_covers(members: FloatArray, turns: int) -> FloatArray:
    """Return float64[blocks, floor(m/2)]: how often a block's turns hold a pair of cells, for each distance of a pair.

    If a cell stays, the last column is for the pairs with that cell.
    """
    spectrum = np.abs(np.fft.rfft(members[:, :turns], axis=1)) ** 2
    distances = np.rint(np.fft.irfft(spectrum, turns, axis=1))[:, 1 : (turns + 1) // 2]
    beside = members[:, turns:] * (members.sum(axis=1, keepdims=True) - 1.0)
    return np.hstack([distances, beside])


def _vertex(covers: FloatArray, wanted: float, generator: np.random.Generator) -> FloatArray | None:
    """Return the weights of a random vertex of `covers @ weights = wanted, weights >= 0`, or None.

    A vertex has at most as many positive weights as equations.
    """
    from scipy.optimize import linprog

    target = np.full(len(covers), wanted)
    solved = linprog(generator.random(covers.shape[1]), A_eq=covers, b_eq=target, bounds=(0, None), method="highs-ds")
    if solved.status != 0:
        return None
    # The solver's tolerance is only 1e-7: solve the equations again, for the positive weights alone.
    used = np.flatnonzero(solved.x > 0.0)
    exact, *_ = np.linalg.lstsq(covers[:, used], target, rcond=None)
    exact += np.linalg.lstsq(covers[:, used], target - covers[:, used] @ exact, rcond=None)[0]
    if len(used) > len(covers) or exact.min() < 0.0:
        return None
    weights = np.zeros(covers.shape[1])
    weights[used] = exact
    return weights


def _integers(weights: FloatArray, width: int, size: int, staying: npt.NDArray[np.bool_] | None) -> IntArray:
    """Return int64 weights in the proportions of `weights`.

    If a cell stays, the blocks that hold it get exactly `s/m` of the whole, so that all cells have the same weight.
    """
    whole = _TOTAL // width * width
    if staying is None:
        return _rounded(weights, whole)
    rounded = np.zeros(len(weights), dtype=np.int64)
    rounded[staying] = _rounded(weights[staying], whole // width * size)
    rounded[~staying] = _rounded(weights[~staying], whole // width * (width - size))
    return rounded


def _rounded(weights: FloatArray, whole: int) -> IntArray:
    """Return int64 weights that sum to `whole`: rounded down, except those with the largest remainders, rounded up."""
    sum_ = sum(map(Fraction, weights.tolist()), Fraction())
    exact = [Fraction(weight) * whole / sum_ for weight in weights.tolist()]
    down = np.array([int(share) for share in exact], dtype=np.int64)
    remainders = np.array([float(share - int(share)) for share in exact])
    down[np.argsort(-remainders, kind="stable")[: whole - int(down.sum())]] += 1
    return down


def file_text(designs: Sequence[Design]) -> str:
    """Return the text of a file of designs, one a line."""
    parts = [
        {
            "width": design.width,
            "size": design.size,
            "turns": design.turns,
            "digest": design.digest,
            "blocks": [bitmap.tobytes().hex() for bitmap in np.packbits(design.members, axis=1, bitorder="little")],
            "weights": list(design.weights),
        }
        for design in designs
    ]
    lines = ",\n".join(map(json.dumps, parts))
    return f'{{"format": 1, "designs": [\n{lines}\n]}}\n'


if __name__ == "__main__":
    sys.stdout.write(file_text([search_design(*map(int, sys.argv[1:]))]))
