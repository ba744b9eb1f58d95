"""Open whole blocks of a campaign's boxes, and tell what became of each: the same for every party that opens."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

import numpy as np

from hushcount.reasons import Counted
from hushcount.wire.sealing import Octets
from keys.private import PrivateKey, open_many


class Outcome(IntEnum):
    """What became of a box."""

    ACCEPTED = 0
    NOT_OPENED = 1
    WRONG_CAMPAIGN = 2
    MALFORMED = 3


_COUNTED: dict[Outcome, Counted] = {
    Outcome.ACCEPTED: "accepted",
    Outcome.NOT_OPENED: "not_opened",
    Outcome.WRONG_CAMPAIGN: "wrong_campaign",
    Outcome.MALFORMED: "malformed",
}


def open_bound(keys: tuple[PrivateKey, ...], sealed: Octets, binding: bytes) -> tuple[Octets, Octets]:
    """Open every row of uint8[n, L], and look whether it begins with the campaign's binding.

    Returns:
        uint8[n, l], what follows the binding, without meaning where the outcome is not ACCEPTED; and the outcomes,
        uint8[n], none of them MALFORMED: what follows is for the caller to judge.
    """
    result = open_many(keys, sealed)
    bound = (result.plain[:, : len(binding)] == np.frombuffer(binding, dtype=np.uint8)).all(axis=1)
    outcomes = np.full(len(sealed), Outcome.ACCEPTED, dtype=np.uint8)
    outcomes[~bound] = Outcome.WRONG_CAMPAIGN
    outcomes[~result.opened] = Outcome.NOT_OPENED
    return result.plain[:, len(binding) :], outcomes


def outputs(outcomes: Octets, sealed: Octets) -> Iterator[tuple[str, tuple[Counted, int | bytes]]]:
    """Yield ("counts", (reason, number)) of every outcome that came, and ("dead", (reason, boxes)) of those refused.

    The accepted are counted even where there are none.
    """
    for outcome, number in zip(Outcome, np.bincount(outcomes, minlength=len(Outcome)).tolist(), strict=True):
        reason = _COUNTED[outcome]
        if number or outcome == Outcome.ACCEPTED:
            yield "counts", (reason, number)
        if number and outcome != Outcome.ACCEPTED:
            yield "dead", (reason, sealed[outcomes == outcome].tobytes())
