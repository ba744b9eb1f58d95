"""Names of numpy array types that many modules share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]
Octets = npt.NDArray[np.uint8]
Counts = npt.NDArray[np.int64]
"""A tally as int64[rows, width], or an array with one count for each item."""
Limbs = npt.NDArray[np.uint64]
"""uint64[limbs, n]: n integers, the least significant limb first; each limb is below 2**32 unless a function says
otherwise.
"""
Reports = npt.NDArray[Any]
"""A structured array: one element for each report, with the fields of the mechanism's encoder and responder."""
