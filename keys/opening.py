"""Open blocks of a campaign's sealed reports and sort them by outcome, for every party that opens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from hushcount.arrays import Octets
from hushcount.reasons import Counted
from hushcount.threads import available_threads, in_chunks
from keys.private import PrivateKey

_Field = TypeVar("_Field", bound=np.generic)


class Outcome(IntEnum):
    """What became of a sealed report."""

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


def open_bound(key: PrivateKey, sealed: Octets, binding: bytes) -> tuple[Octets, Octets]:
    """Open every row of uint8[n, L] and check that its content begins with the campaign's binding.

    Returns:
        The content after the binding, uint8[n, l], meaningless unless ACCEPTED, and the outcomes, uint8[n]. No outcome
        is MALFORMED yet: the caller judges the content.
    """
    plain, opened = key.open_rows(sealed)
    bound = (plain[:, : len(binding)] == np.frombuffer(binding, dtype=np.uint8)).all(axis=1)
    outcomes = np.full(len(sealed), Outcome.ACCEPTED, dtype=np.uint8)
    outcomes[~bound] = Outcome.WRONG_CAMPAIGN
    outcomes[~opened] = Outcome.NOT_OPENED
    return plain[:, len(binding) :], outcomes


def open_block(
    block: bytes, sealed_bytes: int, open_chunk: Callable[[Octets], tuple[npt.NDArray[_Field], Octets]]
) -> tuple[npt.NDArray[_Field], Iterator[tuple[str, tuple[Counted, int | bytes]]]]:
    """Open a block of sealed reports on all cores.

    Args:
        block: sealed reports, one after another.
        sealed_bytes: length of a sealed report.
        open_chunk: opens uint8[n, sealed_bytes]: the accepted reports, and the outcome of every row.

    Returns:
        The accepted reports, and tagged outputs: ("counts", (reason, number)) for each outcome, always for
        "accepted", and ("dead", (reason, sealed reports)) for each refusal.
    """
    sealed = np.frombuffer(block, dtype=np.uint8).reshape(-1, sealed_bytes)
    accepted, outcomes = zip(*in_chunks(open_chunk, sealed, available_threads()), strict=True)
    return np.concatenate(accepted), _outputs(np.concatenate(outcomes), sealed)


def _outputs(outcomes: Octets, sealed: Octets) -> Iterator[tuple[str, tuple[Counted, int | bytes]]]:
    for outcome, number in zip(Outcome, np.bincount(outcomes, minlength=len(Outcome)).tolist(), strict=True):
        reason = _COUNTED[outcome]
        if number or outcome == Outcome.ACCEPTED:
            yield "counts", (reason, number)
        if number and outcome != Outcome.ACCEPTED:
            yield "dead", (reason, sealed[outcomes == outcome].tobytes())
