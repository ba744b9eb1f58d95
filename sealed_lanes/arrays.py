"""Names of numpy array types."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
Octets = npt.NDArray[np.uint8]
UInt64Array = npt.NDArray[np.uint64]
