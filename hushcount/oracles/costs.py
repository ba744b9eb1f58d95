"""What it costs to decode: operations and estimated seconds of one thread, for plans."""

from __future__ import annotations

from dataclasses import dataclass

CELL_NS = 3.0
BIT_NS = 0.9
HASH_NS = 40.0
BUTTERFLY_NS = 2.0
"""Nanoseconds to count a supported cell, to count a bit, to hash an item into a row and look it up, and of one step of
the fast transform, as `hushcount simulate` measured them on one thread of a 2-core server. Estimates, no promises."""


@dataclass(frozen=True)
class DecodeCost:
    """What decoding takes.

    Attributes:
        way: "walk", "group" or "candidates" of affine reports; "cells" where cells are tallied; "definition".
        operations: how often its inner loops run.
        seconds: of one thread of the reference machine; others differ, by much without wide vector units.
    """

    way: str
    operations: float
    seconds: float


@dataclass(frozen=True)
class CountCost:
    """What it takes to add the cells of reports to a tally.

    Attributes:
        operations: cells or bits that are counted.
        nanoseconds: of one thread.
    """

    operations: float
    nanoseconds: float

    @classmethod
    def of_cells(cls, cells: float) -> CountCost:
        """Return the cost of counting so many cells by their names."""
        return cls(cells, cells * CELL_NS)

    @classmethod
    def of_bits(cls, bits: float) -> CountCost:
        """Return the cost of counting the cells of reports that hold a bit for each."""
        return cls(bits, bits * BIT_NS)


def cells_cost(count: CountCost, items: int, transform: float = 0.0, hashes: float = 0.0) -> DecodeCost:
    """Return the cost of an encoder that tallies cells and then looks up each item.

    Args:
        count: of the reports.
        items: that are asked for.
        transform: steps of the fast transform.
        hashes: of items into rows.
    """
    nanoseconds = count.nanoseconds + transform * BUTTERFLY_NS + hashes * HASH_NS + items
    return DecodeCost("cells", count.operations + transform + hashes + items, nanoseconds * 1e-9)
