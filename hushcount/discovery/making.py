"""How a client makes discovery reports: the binding, the name, and the value sealed to the analyzer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hushcount.discovery.oblivious import MOST_EVALUATIONS, Ask, Evaluations, Unanswered, evaluations_of, joined
from hushcount.discovery.pairs import HASH_BYTES, DiscoveryFormat, Name, blank_name, keyed_name, name_of
from hushcount.wire.sealing import SEAL_BYTES, Octets, Sealer


@dataclass(frozen=True)
class Making:
    """Makes discovery reports: `inner` seals to the analyzer, `outer` to the auxiliary server."""

    form: DiscoveryFormat
    inner: Sealer
    outer: Sealer

    def reports(self, values: Sequence[str | None], names: Sequence[Name], threads: int = 1) -> Octets:
        """Return uint8[n, L]: a sealed report of each value under the name at the same index."""
        return self.outer.seal_many(self._pairs(values, names, threads), threads)

    def keyed(self, values: Sequence[str | None], threads: int) -> Octets:
        """Return uint8[n, L]: a sealed report of each value, named by the campaign's hash key."""
        wanted, rows = _each_once(values)
        names = [blank_name() if value is None else keyed_name(self.form, value) for value in wanted]
        return self.outer.seal_many(self._pairs(wanted, names, threads)[rows], threads)

    def asked(self, values: Sequence[str | None], ask: Ask, public_key: bytes, threads: int) -> Octets:
        """Return uint8[n, L]: a sealed report of each value; one evaluation gives the names of the values.

        If the evaluator does not answer, reports are blank. So the number of reports does not show whether the
        evaluator answered.
        """
        named: list[tuple[str | None, Name]] = []
        for start in range(0, len(values), MOST_EVALUATIONS):
            some = values[start : start + MOST_EVALUATIONS]
            evaluations = evaluations_of([_input(self.form, value) for value in some])
            try:
                outputs = evaluations.finish(ask(evaluations.blinded), public_key)
            except Unanswered:
                named += [(None, blank_name()) for _ in some]
                continue
            named += [
                (value, blank_name() if value is None else name_of(output))
                for value, output in zip(some, outputs, strict=True)
            ]
        return self.reports([value for value, _ in named], [name for _, name in named], threads)

    def pending(self, value: str | None, public_key: bytes) -> PendingDiscovery:
        """Return a report that still needs an evaluation."""
        blank = self.reports([None], [blank_name()]).tobytes()
        return PendingDiscovery(blank, evaluations_of([_input(self.form, value)]), self, value, public_key)

    def _pairs(self, values: Sequence[str | None], names: Sequence[Name], threads: int) -> Octets:
        """Return uint8[n, L]: the binding, hash and inner box of each value."""
        form = self.form
        heads = _rows((form.binding + name.hash for name in names), len(form.binding) + HASH_BYTES)
        inner = _rows((form.binding + form.pad(value) for value in values), form.sealed_value_bytes - SEAL_BYTES)
        return np.concatenate([heads, self.inner.seal_many_alike(inner, [name.box_key for name in names], threads)], 1)


@dataclass(frozen=True, eq=False)
class PendingDiscovery:
    """A discovery report that is already counted and charged, but still needs a name from the evaluator.

    Attributes:
        blank: a sealed report without a value, to send if the evaluator does not answer.
    """

    blank: bytes = field(repr=False)
    _evaluations: Evaluations = field(repr=False)
    _making: Making = field(repr=False)
    _value: str | None = field(repr=False)
    _public_key: bytes = field(repr=False)

    @property
    def evaluation(self) -> bytes:
        """The blinded element, 32 bytes, to send once."""
        return self._evaluations.blinded

    def _named(self, output: bytes) -> bytes:
        # A report without a value is also sealed anew, so neither the time nor the queue's file shows whether a report
        # has a value.
        name = blank_name() if self._value is None else name_of(output)
        return self._making.reports([self._value], [name]).tobytes()

    def finish(self, answer: bytes) -> bytes:
        """Return the sealed report, as long as `blank`, from the evaluator's answer to this evaluation alone.

        Raises:
            Unanswered: the answer has no valid proof; then send `blank`.
        """
        return finish_all([self], answer)[0]


def finish_all(pending: Sequence[PendingDiscovery], answer: bytes) -> list[bytes]:
    """Return the sealed report of each pending discovery, from one answer to all their evaluations in this order.

    All reports must be of one campaign file. Raises Unanswered as in `PendingDiscovery.finish`.
    """
    outputs = joined([one._evaluations for one in pending]).finish(answer, pending[0]._public_key)
    return [one._named(output) for one, output in zip(pending, outputs, strict=True)]


def _input(form: DiscoveryFormat, value: str | None) -> bytes | None:
    return None if value is None else form.input(value)


def _rows(parts: Iterable[bytes], length: int) -> Octets:
    return np.frombuffer(b"".join(parts), dtype=np.uint8).reshape(-1, length)


def _each_once(values: Sequence[str | None]) -> tuple[list[str | None], npt.NDArray[np.intp]]:
    """Return the distinct values, and for each row the index of its distinct value; every None counts as distinct."""
    places: dict[str, int] = {}
    wanted: list[str | None] = []
    rows = np.empty(len(values), dtype=np.intp)
    for row, value in enumerate(values):
        rows[row] = len(wanted) if value is None else places.setdefault(value, len(wanted))
        if rows[row] == len(wanted):
            wanted.append(value)
    return wanted, rows
