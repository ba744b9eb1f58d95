"""Interval: a cyclic window of s consecutive cells, sent as its start alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hushcount.arrays import Reports, UInt64Array
from hushcount.oracles.responders.base import BaseLaw, Runs, Sized
from hushcount.randomness import Words, below, uniform
from hushcount.wire.fields import Field, Number


@dataclass(frozen=True)
class Interval(Sized):
    """With probability `keep / 2**64` a uniform window with the true cell, else a uniform window without it.

    Privacy: `ln(p (m-s) / ((1-p) s))` for one report, replace-one.
    Reference: docs/mathematics.md section 4. Neighbouring cells are reported together, so the encoder must scatter the
    items. The affine encoder scatters the items; only with the affine encoder is `q` the same for every pair of items.
    """

    @property
    def fields(self) -> tuple[Field, ...]:
        return (Number("start", self.width),)

    def respond(self, reports: Reports, cells: UInt64Array, words: Words) -> None:
        width = np.uint64(self.width)
        kept = below(self.keep, len(cells), words)
        holding = cells + width - uniform(self.size, len(cells), words)
        missing = cells + np.uint64(1) + uniform(self.width - self.size, len(cells), words)
        reports["start"] = np.where(kept, holding, missing) % width

    def runs(self, reports: Reports) -> Runs:
        return Runs(reports["start"].astype(np.uint64)[:, None], self.size, self.width)

    def base_law(self, scattered: bool) -> BaseLaw:
        if scattered:
            return super().base_law(scattered)
        return BaseLaw(Fraction(self.size, self.width), Fraction(max(0, 2 * self.size - self.width), self.width))
