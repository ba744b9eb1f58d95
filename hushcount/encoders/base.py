"""What an encoder is: in which cell an item falls, under a hash function drawn for each report."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hushcount.fields import Field, Reports
from hushcount.randomness import UInt64Array, Words
from hushcount.responders.base import Responder

Counts = npt.NDArray[np.int64]


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
        """The probability that two different items fall in one cell, over the function drawn."""
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

    def support_counts(self, tally: Counts, items: UInt64Array, wanted: UInt64Array) -> Counts:
        """Return int64[len(wanted)]: how many reports of a tally made for `items` support each wanted item."""
        ...


def add_cells(tally: Counts, responder: Responder, reports: Reports, rows: npt.NDArray[Any] | None) -> None:
    """Count every supported cell of every report in the report's row: the tally of encoders with few functions."""
    starts = responder.run_starts(reports)
    width = np.uint64(responder.width)
    for offset in range(responder.run_length):
        cells = (starts + np.uint64(offset)) % width
        if rows is not None:
            cells = cells + rows.astype(np.uint64)[:, None] * width
        if cells.size * 8 < tally.size:
            np.add.at(tally.reshape(-1), cells.reshape(-1).astype(np.intp), 1)
        else:
            tally += np.bincount(cells.reshape(-1).astype(np.intp), minlength=tally.size).reshape(tally.shape)


def require_items(items: UInt64Array, domain: int) -> None:
    """Raise ValueError unless every item is in 0..domain-1."""
    if items.size and int(items.max()) >= domain:
        raise ValueError(f"item is {int(items.max())}, must be in 0..{domain - 1}")
