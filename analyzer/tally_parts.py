"""Parts of a tally as bytes: each holds a block of rows and how many reports were added up in it."""

from __future__ import annotations

import io
import struct
from typing import IO

import numpy as np

from analyzer.tally_reports import Sums
from hushcount.arrays import Counts
from hushcount.oracles.tally import narrowed, read_array

_REPORTS = struct.Struct("<q")


def part_bytes(sums: Sums) -> bytes:
    """Return a part: the number of reports, then the counts as a .npy file."""
    buffer = io.BytesIO()
    buffer.write(_REPORTS.pack(sums.reports))
    np.lib.format.write_array(buffer, narrowed(sums.counts), allow_pickle=False)
    return buffer.getvalue()


def read_part(stream: IO[bytes], cells: int) -> tuple[int, Counts]:
    """Return the number of reports and the counts, int64[rows, width], of a part.

    Args:
        stream: at the part's beginning.
        cells: how many counts there may be at most.

    Raises:
        FormatError: the array is larger, or of another kind.
    """
    reports = _REPORTS.unpack(stream.read(_REPORTS.size))[0]
    return reports, read_array(stream, "i", cells)
