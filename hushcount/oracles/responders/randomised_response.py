"""Randomised response: one cell, the true cell with probability p, else a uniform other cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushcount.arrays import Reports, UInt64Array
from hushcount.oracles.responders.base import Runs, Sized
from hushcount.randomness import Words, below, uniform
from hushcount.wire.fields import Field, Number


@dataclass(frozen=True)
class RandomisedResponse(Sized):
    """`Pr[report c | true cell c] = keep / 2**64`; every other cell has the same share of the rest; `size` is 1.

    Privacy: `ln(p (m-1) / (1-p))` for one report, replace-one.
    Reference: docs/mathematics.md section 3; Warner 1965, for m cells Kairouz et al. 2016.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size != 1:
            raise ValueError(f"s is {self.size}, must be 1: randomised response reports one cell")

    @property
    def fields(self) -> tuple[Field, ...]:
        return (Number("cell", self.width),)

    def respond(self, reports: Reports, cells: UInt64Array, words: Words) -> None:
        kept = below(self.keep, len(cells), words)
        step = uniform(self.width - 1, len(cells), words) + np.uint64(1)
        reports["cell"] = np.where(kept, cells, (cells + step) % np.uint64(self.width))

    def runs(self, reports: Reports) -> Runs:
        return Runs(reports["cell"].astype(np.uint64)[:, None], 1, self.width)
