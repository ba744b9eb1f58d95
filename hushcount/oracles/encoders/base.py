"""What an encoder is: in which cell an item falls, under a hash function drawn for each report."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol, runtime_checkable

from hushcount.arrays import Counts, Reports, UInt64Array
from hushcount.oracles.costs import DecodeCost
from hushcount.oracles.responders.base import Responder
from hushcount.randomness import Words
from hushcount.wire.fields import Field


class Encoder(Protocol):
    """A family of hash functions from items to cells: a frozen value of public parameters.

    Attributes:
        cells: how many cells a function has.
        domain: how many items there are, 0..domain-1; None where an item is any 61-bit fingerprint.
    """

    @property
    def cells(self) -> int: ...
    @property
    def domain(self) -> int | None: ...
    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields that name the function in a report; none where there is one function only."""
        ...

    @property
    def collision(self) -> Fraction:
        """The probability that two different items fall in one cell, over the function drawn.

        With blocks, that of two items of one block; items of different blocks never do.
        """
        ...

    @property
    def blocks(self) -> int:
        """In how many blocks items are put that never share a cell; 1 for none."""
        ...

    @property
    def by_item(self) -> bool:
        """Whether the tally has a column for each item that is asked for, and none can be asked for later."""
        ...

    @property
    def pool(self) -> int | None:
        """k, how many functions all reports share; None where each report draws its own or there is only one."""
        ...

    def tally_shape(self, items: UInt64Array) -> tuple[int, int]:
        """Return (rows, width) of the tally that serves these items."""
        ...

    def draw(self, reports: Reports, words: Words) -> None:
        """Fill this encoder's fields of `reports` with fresh functions. The only random method."""
        ...

    def log_functions(self) -> float:
        """Return the natural logarithm of the number of functions, all equally likely."""
        ...

    def cell(self, reports: Reports, items: UInt64Array) -> UInt64Array:
        """Return uint64[n]: the cell of each item under the function of the report of the same row."""
        ...

    def accumulate(self, tally: Counts, responder: Responder, reports: Reports, items: UInt64Array) -> None:
        """Add the reports to `tally`, int64[rows, width], in place."""
        ...

    def decode_cost(self, responder: Responder, reports: int, items: int) -> DecodeCost:
        """Return the cost of tallying so many reports and estimating so many items."""
        ...

    def scores(self, tally: Counts, items: UInt64Array, wanted: UInt64Array) -> Counts:
        """Return int64[len(wanted)]: the score of each wanted item in a tally made for `items`.

        The number of reports that support it; with blocks, less the number of those that oppose it.
        """
        ...


@runtime_checkable
class PoolEncoder(Encoder, Protocol):
    """An encoder whose k functions are fixed for the campaign, so that collisions are a bias."""

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


@runtime_checkable
class BlockEncoder(Encoder, Protocol):
    """An encoder that puts items in blocks that never share a cell."""

    def block_reports(self, tally: Counts, wanted: UInt64Array) -> Counts:
        """Return int64[len(wanted)]: how many reports named a cell of each wanted item's block."""
        ...

    def block_of(self, items: UInt64Array) -> UInt64Array:
        """Return the block of each item."""
        ...


def require_items(items: UInt64Array, domain: int) -> None:
    """Raise ValueError unless every item is in 0..domain-1."""
    if items.size and int(items.max()) >= domain:
        # The position of an item is as good as the item: it is not repeated.
        raise ValueError(f"an item is outside of the domain, 0..{domain - 1}")
