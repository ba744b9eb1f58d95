"""Reports as arithmetic progressions of residues: the input of every method that decodes affine reports."""

from __future__ import annotations

from dataclasses import dataclass

from hushcount.arrays import UInt64Array


@dataclass(frozen=True, eq=False)
class Progressions:
    """Progression i contains item x if and only if `a_i x` is one of `begin_i + j t mod P`, j = 0..length_i - 1.

    A window of s residues has `t = 1`, a bucket of `y mod B` has `t = B`. A report is one progression, or several
    progressions that share no residue.

    Attributes:
        prime: P, below 2**31, or 2**61-1.
        stride: t, 1..P-1.
        slopes: uint64[r], the a, 1..P-1.
        begins: uint64[r], below P.
        lengths: uint64[r]; `(length - 1) t` is below P, so a progression passes the end of the circle at most once.
    """

    prime: int
    stride: int
    slopes: UInt64Array
    begins: UInt64Array
    lengths: UInt64Array
