"""Open blocks of a campaign's sealed reports and sort the reports by outcome, for every party that opens reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from itertools import chain
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from hushcount.arrays import Octets
from hushcount.reasons import Counted
from hushcount.threads import available_threads, in_chunks
from keys.opening_engines import LIBSODIUM, OpeningEngine, engine_for
from keys.private import PrivateKey

_Field = TypeVar("_Field", bound=np.generic)


class Outcome(IntEnum):
    """The result of opening a sealed report."""

    ACCEPTED = 0
    NOT_OPENED = 1
    WRONG_CAMPAIGN = 2
    MALFORMED = 3
    OTHER_WINDOW = 4


_COUNTED: dict[Outcome, Counted] = {
    Outcome.ACCEPTED: "accepted",
    Outcome.NOT_OPENED: "not_opened",
    Outcome.WRONG_CAMPAIGN: "wrong_campaign",
    Outcome.MALFORMED: "malformed",
    Outcome.OTHER_WINDOW: "other_window",
}


def open_bound(
    key: PrivateKey, sealed: Octets, binding: bytes, engine: OpeningEngine = LIBSODIUM
) -> tuple[Octets, Octets, int]:
    """Open every row of uint8[n, L] and check that its content begins with the campaign's binding.

    Returns:
        The content after the binding, uint8[n, l], meaningless unless the outcome is ACCEPTED; the outcomes, uint8[n];
        and how many rows libsodium opened after `engine` had failed to open them. The caller checks the content after
        the binding, so no outcome is MALFORMED or OTHER_WINDOW.
    """
    plain, opened, rescued = key.open_rows(sealed, engine)
    bound = (plain[:, : len(binding)] == np.frombuffer(binding, dtype=np.uint8)).all(axis=1)
    outcomes = np.full(len(sealed), Outcome.ACCEPTED, dtype=np.uint8)
    outcomes[~bound] = Outcome.WRONG_CAMPAIGN
    outcomes[~opened] = Outcome.NOT_OPENED
    return plain[:, len(binding) :], outcomes, rescued


class Opener:
    """Opens blocks of a campaign's sealed reports.

    Each step of a worker has its own opener, and calls it from one thread. The opener uses libsodium while both the
    job's planned boxes and the boxes opened so far are below `ENOUGH`. So a streaming job, which never ends, changes
    its opening engine at most once.

    Args:
        key: the private key, read in this process and never pickled.
        binding: 16 bytes at the start of each of the campaign's reports.
        sealed_bytes: length of a sealed report, with what is before its box.
        boxes: number of boxes that the whole job opens; 0 if unknown.
        before: number of bytes before each box.
    """

    def __init__(self, key: PrivateKey, binding: bytes, sealed_bytes: int, boxes: int, before: int = 0) -> None:
        self._key, self._binding, self._sealed_bytes, self._before = key, binding, sealed_bytes, before
        self._planned, self._opened = boxes, 0

    def open_block(
        self, block: bytes, judge: Callable[[Octets, Octets, Octets], npt.NDArray[_Field]]
    ) -> tuple[npt.NDArray[_Field], Iterator[tuple[str, tuple[str, int | bytes]]]]:
        """Open a block of concatenated sealed reports on all cores.

        Args:
            judge: takes sealed reports, the content of each report after the binding (meaningless unless ACCEPTED) and
                the outcomes, uint8[n]; marks malformed reports in the outcomes, and returns the accepted reports.

        Returns:
            The accepted reports, and tagged outputs: ("counts", (reason, number)) for each outcome, always for
            "accepted"; ("dead", (reason, sealed reports)) for each refusal; ("opening", (engine, number)); and
            ("opening", ("rescued", number)) if libsodium opened reports that another engine had not.
        """
        sealed = np.frombuffer(block, dtype=np.uint8).reshape(-1, self._sealed_bytes)
        self._opened += len(sealed)
        engine = engine_for(max(self._planned, self._opened))

        def open_chunk(chunk: Octets) -> tuple[npt.NDArray[_Field], Octets, int]:
            boxes = np.ascontiguousarray(chunk[:, self._before :])
            content, outcomes, rescued = open_bound(self._key, boxes, self._binding, engine)
            return judge(chunk, content, outcomes), outcomes, rescued

        accepted, outcomes, rescued = zip(*in_chunks(open_chunk, sealed, available_threads()), strict=True)
        opening = {engine.name: len(sealed), "rescued": sum(rescued)}
        return np.concatenate(accepted), chain(
            _outputs(np.concatenate(outcomes), sealed),
            (("opening", (name, number)) for name, number in opening.items() if number),
        )


def _outputs(outcomes: Octets, sealed: Octets) -> Iterator[tuple[str, tuple[Counted, int | bytes]]]:
    for outcome, number in zip(Outcome, np.bincount(outcomes, minlength=len(Outcome)).tolist(), strict=True):
        reason = _COUNTED[outcome]
        if number or outcome == Outcome.ACCEPTED:
            yield "counts", (reason, number)
        if number and outcome != Outcome.ACCEPTED:
            yield "dead", (reason, sealed[outcomes == outcome].tobytes())
