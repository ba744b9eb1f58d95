"""Answer from a memory: the one answer of a campaign to each value, drawn the first time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hushcount.arrays import Octets, UInt64Array
from hushcount.campaigns.campaign import Campaign
from hushcount.errors import HushcountError, UsageError
from hushcount.memory import NAME_END, SALT_BYTES, Memory, item_name, place_key
from hushcount.randomness import SystemWords


def remembered(campaign: Campaign, items: UInt64Array, memory: Memory, draw: Callable[[UInt64Array], Octets]) -> Octets:
    """Return uint8[n, report_bytes]: the one answer to each item in this campaign; `draw` makes a new one."""
    distinct, place = np.unique(items, return_inverse=True)
    answers = np.zeros((len(distinct), campaign.require_frequency().report_bytes), dtype=np.uint8)
    for row, item in zip(answers, distinct, strict=True):
        answer = _answer(campaign, int(item), memory, draw)
        if len(answer) != len(row):
            raise UsageError(f"the memory holds an answer of {len(answer)} bytes, the campaign's have {len(row)}")
        row[:] = np.frombuffer(answer, dtype=np.uint8)
    return answers[place.reshape(-1)]


def _answer(campaign: Campaign, item: int, memory: Memory, draw: Callable[[UInt64Array], Octets]) -> bytes:
    """Return the one answer to an item, drawn if a place is free for it; else that of the last place.

    A place that cannot be kept is no place: to raise only for an item without an answer would tell.
    """
    last = b""
    for place in range(campaign.memory_values):
        key = place_key(campaign, place)
        found = memory.get(key)
        if found is None:
            salt = SystemWords().words(SALT_BYTES // 8).tobytes()
            drawn = draw(np.array([item], dtype=np.uint64)).tobytes()
            # Two threads that draw at the same time both take what was kept first.
            try:
                found = memory.keep(key, salt + item_name(item, salt) + drawn)
            except HushcountError:
                if not last:
                    raise
                break
        last = found
        if last[SALT_BYTES:NAME_END] == item_name(item, last[:SALT_BYTES]):
            break
    return last[NAME_END:]
