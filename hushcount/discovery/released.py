"""What the auxiliary server releases of a bin: its pair, and in a campaign with counts the count that it shows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hushcount.arrays import Octets
from hushcount.discovery.pairs import DiscoveryFormat

COUNT_BYTES = 8


def released_bytes(form: DiscoveryFormat, counts: bool) -> int:
    """Return the length of a released record."""
    return form.pair_bytes + (COUNT_BYTES if counts else 0)


def join_released(pairs: Octets, shown: npt.NDArray[np.int64] | None) -> Octets:
    """Return uint8[n, L], the released records of uint8[n] pairs and, in a campaign with counts, int64[n] counts."""
    if shown is None:
        return pairs
    counts = np.ascontiguousarray(shown, dtype="<i8").view(np.uint8).reshape(len(shown), COUNT_BYTES)
    return np.concatenate([pairs, counts], axis=1)


def split_released(record: bytes, form: DiscoveryFormat, counts: bool) -> tuple[bytes, int | None]:
    """Return a record's pair and the count that the bin shows, None in a campaign without counts.

    Raises:
        ValueError: the record is not as long as one of this campaign.
    """
    if len(record) != released_bytes(form, counts):
        raise ValueError(f"the record has {len(record)} bytes, must have {released_bytes(form, counts)}")
    pair, shown = record[: form.pair_bytes], record[form.pair_bytes :]
    return pair, int.from_bytes(shown, "little", signed=True) if counts else None
