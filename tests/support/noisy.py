"""Campaigns with noise of the mixes, and results of them without any job: true counts, and dummies of both mixes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np

from hushcount.arrays import IntArray
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary, in_random_order
from hushcount.dummies import DummyForm, dummies_of
from hushcount.oracles.tally import Tally
from hushcount.questions.counted import Counted
from hushcount.wire.sealing import seal_rows
from keys.private import PrivateKey

KEYS = {role: PrivateKey(bytes([number]) * 32) for number, role in enumerate(("analyzer", "aux_server"), 1)}


def noisy_campaign(folder: Path, items: Sequence[str], **more: Any) -> Campaign:
    """Write a campaign of epsilon 1 and its dictionary, and read it; `more`: fields of the campaign file."""
    dictionary = Dictionary(in_random_order(items))
    (folder / "items.txt").write_text("".join(f"{item}\n" for item in dictionary.items), encoding="utf-8")
    begin = datetime.now(timezone.utc).replace(microsecond=0) - timedelta(days=1)
    days = {"not_before": begin.isoformat(), "not_after": (begin + timedelta(days=30)).isoformat()}
    data = {
        "id": "noisy",
        "noise": {"epsilon": 1.0, "delta": 1e-8, "seconds": 86_400},
        "keys": {role: [{"id": key.id, "key": key.public_key.hex(), **days}] for role, key in KEYS.items()},
        "shuffle": {"minimum_batch": 1},
        "dictionary": {"path": "items.txt", "items": len(dictionary.items), "digest": dictionary.digest},
        **more,
    }
    path = folder / "campaign.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return Campaign.read(path)


def noisy_tally(campaign: Campaign, held: IntArray, run: int) -> Tally:
    """Return the tally of clients that hold each cell, int64[d], and of both mixes' dummies, which `run` decides."""
    mechanism, cells = campaign.require_frequency(), np.arange(len(held), dtype=np.uint64)
    counts = mechanism.new_tally(cells)
    counts[0] += held
    for mix in range(2):
        secret = run.to_bytes(31, "big") + bytes([mix])
        rows = dummies_of(DummyForm(mechanism, ()), range(len(held)), secret, seal_rows)
        reports, valid = mechanism.unpack(rows)
        assert valid.all()
        mechanism.accumulate(counts, reports, cells)
    return Tally(counts, int(held.sum()), cells)


def noisy_result(campaign: Campaign, held: IntArray, run: int, window: str = "") -> Counted:
    """Return a result with the tally of `noisy_tally`."""
    result = Counted(campaign, noisy_tally(campaign, held, run), window)
    result.__dict__["dictionary"] = campaign.read_dictionary()
    return result


def placed(campaign: Campaign, held: Mapping[str, int]) -> IntArray:
    """Return int64[d], the clients of each cell: of the items by name, 0 of all others; the name "" is "other"."""
    dictionary = campaign.read_dictionary()
    assert dictionary is not None
    counts = np.zeros(len(dictionary.items) + 1, dtype=np.int64)
    for name, number in held.items():
        counts[dictionary.items.index(name) if name else -1] = number
    return counts
