"""Answers from a memory: each value has one answer in a campaign's epoch, drawn when the value first occurs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hushcount.arrays import Octets, UInt64Array
from hushcount.campaigns.campaign import Campaign
from hushcount.errors import HushcountError, UsageError
from hushcount.memory import NAME_END, SALT_BYTES, Memory, item_name, place_key
from hushcount.randomness import SystemWords


def remembered(campaign: Campaign, items: UInt64Array, memory: Memory, draw: Callable[[UInt64Array], Octets]) -> Octets:
    """Return uint8[n, report_bytes]: the remembered answer to each item; `draw` makes the answers that are missing."""
    distinct, place = np.unique(items, return_inverse=True)
    answers = np.zeros((len(distinct), campaign.require_frequency().report_bytes), dtype=np.uint8)
    for row, item in zip(answers, distinct, strict=True):
        answer = _answer(campaign, int(item), memory, draw)
        if len(answer) != len(row):
            raise UsageError(f"an answer in the memory has {len(answer)} bytes, must have the campaign's {len(row)}")
        row[:] = np.frombuffer(answer, dtype=np.uint8)
    return answers[place.reshape(-1)]


def _answer(campaign: Campaign, item: int, memory: Memory, draw: Callable[[UInt64Array], Octets]) -> bytes:
    """Return the answer to an item: the remembered one, a new one if a place is free, else the last place's answer.

    If a new answer cannot be stored, the last answer is used, because an error would reveal that the item is new.
    """
    last = b""
    for place in range(campaign.memory_values):
        key = place_key(campaign, place)
        found = memory.get(key)
        if found is None:
            salt = SystemWords().words(SALT_BYTES // 8).tobytes()
            drawn = draw(np.array([item], dtype=np.uint64)).tobytes()
            # If two threads draw at the same time, both use the answer that was stored first.
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
