"""What a responder is: how a cell becomes the private part of a report."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hushcount.fields import Field, Reports
from hushcount.randomness import UInt64Array, Words


class Responder(Protocol):
    """A local randomiser over `width` cells: a frozen value of public parameters.

    Every responder reports a set of cells that it *supports*, as `run_count` cyclic runs of `run_length` cells each.

    Attributes:
        width: m, the number of cells.
        keep: threshold out of 2**64 of the event that the report supports the client's own cell.
        run_length: cells in one run.
    """

    @property
    def width(self) -> int: ...
    @property
    def keep(self) -> int: ...
    @property
    def run_length(self) -> int: ...
    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields it adds to a report."""
        ...

    @property
    def support_size(self) -> int:
        """s, how many cells one report supports."""
        ...

    @property
    def epsilon(self) -> float:
        """The exact local loss of the rounded probabilities, in nats, rounded up to a float."""
        ...

    def respond(self, reports: Reports, cells: UInt64Array, words: Words) -> None:
        """Fill this responder's fields of `reports` for the clients' true `cells`. The only random method."""
        ...

    def log_prob(self, reports: Reports, cells: UInt64Array) -> npt.NDArray[np.float64]:
        """Return the natural logarithm of the probability of each response, given the true cell of each."""
        ...

    def run_starts(self, reports: Reports) -> UInt64Array:
        """Return uint64[n, run_count]: the first cell of every run that each report supports."""
        ...


def supports(responder: Responder, reports: Reports, cells: UInt64Array) -> npt.NDArray[np.bool_]:
    """Return bool[n]: whether each report supports the cell of the same row."""
    width = np.uint64(responder.width)
    offsets = (cells[:, None] + width - responder.run_starts(reports)) % width
    result: npt.NDArray[np.bool_] = (offsets < np.uint64(responder.run_length)).any(axis=1)
    return result


def check_choice(responder: Any, size: int) -> None:
    """Raise ValueError unless width, support size and keep threshold make a local randomiser with `p > q`."""
    if responder.width < 2:
        raise ValueError(f"width is {responder.width}, must be at least 2 cells")
    if not 1 <= size < responder.width:
        raise ValueError(f"s is {size}, must be in 1..{responder.width - 1} for {responder.width} cells")
    p, uninformed = responder.keep / 2**64, size / responder.width
    if not (uninformed < p and responder.keep < 1 << 64):
        raise ValueError(f"p is {p:.6g}, must be above {uninformed:.6g} (s/m, where a report says nothing) and below 1")
