"""Numbers that follow from results alone, which never change: a server that keeps them computes each once."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from hushcount.arrays import FloatArray


class Known:
    """The numbers of one panel by what they follow from; those that the next panel does not ask for are forgotten."""

    def __init__(self, before: Known | None = None) -> None:
        self._before = {} if before is None else before._now
        self._now: dict[Hashable, FloatArray] = {}

    def of(self, key: Hashable, make: Callable[[], FloatArray]) -> FloatArray:
        """Return the numbers of a key: those of the panel before, or what `make` returns."""
        found = self._before.get(key)
        self._now[key] = make() if found is None else found
        return self._now[key]

    @property
    def bytes(self) -> int:
        """The memory that the numbers take."""
        return sum(one.nbytes for one in self._now.values())
