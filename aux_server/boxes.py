"""Boxes: which sealed reports fell in which bin, so that a copy of one counts once.

An honest client seals each report under a fresh ephemeral key, so that no two honest reports are equal. Equal ones are
copies, which a shuffler could make of one client's report until its value is common enough to be revealed. It cannot
make another box of the same content: it would have to open one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aux_server.bins import Bins
from hushcount.sealing import Octets

MARK_BYTES = 16
"""Length of a mark, what is remembered of a box: as many equal ones as 2**128 values give by chance, which is none."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """The distinct boxes of a set of reports, and their bins; 20 bytes a box and one pair a bin.

    Attributes:
        pairs: S[b], ascending and distinct.
        marks: S16[n], ascending and distinct, one for each box.
        owners: int32[n], which of the pairs each box holds.
        copies: how many further boxes were equal to one of these.
    """

    pairs: npt.NDArray[np.bytes_]
    marks: npt.NDArray[np.bytes_]
    owners: npt.NDArray[np.int32]
    copies: int

    @property
    def bins(self) -> Bins:
        """How many distinct boxes hold each pair."""
        return Bins(self.pairs, np.bincount(self.owners, minlength=len(self.pairs)).astype(np.int64), self.copies)


def mark(sealed: Octets) -> Octets:
    """Return uint8[n, MARK_BYTES]: the mark of every sealed report, equal where the reports are.

    BLAKE2b, so that nobody finds a box with the mark of another's.
    """
    marks = b"".join(hashlib.blake2b(row.tobytes(), digest_size=MARK_BYTES).digest() for row in sealed)
    return np.frombuffer(marks, dtype=np.uint8).reshape(len(sealed), MARK_BYTES)


def boxes_of(block: bytes, pair_bytes: int) -> Boxes:
    """Return the boxes of a block of records, each a mark and the pair that was in the box."""
    records = np.frombuffer(block, dtype=[("mark", f"S{MARK_BYTES}"), ("pair", f"S{pair_bytes}")])
    pairs, owners = np.unique(records["pair"], return_inverse=True)
    return _distinct(pairs, records["mark"], owners.reshape(-1), 0)


def unite(left: Boxes, right: Boxes) -> Boxes:
    """Return the boxes of both, those in both counted once."""
    pairs, place = np.unique(np.concatenate([left.pairs, right.pairs]), return_inverse=True)
    place = place.reshape(-1)
    owners = np.concatenate([place[: len(left.pairs)][left.owners], place[len(left.pairs) :][right.owners]])
    return _distinct(pairs, np.concatenate([left.marks, right.marks]), owners, left.copies + right.copies)


def _distinct(
    pairs: npt.NDArray[np.bytes_], marks: npt.NDArray[np.bytes_], owners: npt.NDArray[np.intp], copies: int
) -> Boxes:
    """Drop the copies: of equal boxes it makes no difference which one stays."""
    kept, first = np.unique(marks, return_index=True)
    return Boxes(pairs, kept, owners[first].astype(np.int32), copies + len(marks) - len(kept))
