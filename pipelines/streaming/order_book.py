"""The orders of a party: `orders/PARTY/0000000001.json` and so on. A run puts them, a stream reads them.

Each number is used once: to an engine the time of an order is over when the next one is read. So the newest order that
was removed leaves `0000000001.done` behind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field

from hushcount.campaigns.parts import Identifier
from hushcount.formats.models import Hex8, Hex32, Part, text_of
from hushcount.formats.reading import LISTING_BYTES, parse_model
from pipelines.files import storage
from pipelines.files.orders import MOST_TOGETHER, Order
from pipelines.outputs.counts import Count

if TYPE_CHECKING:
    # Workers load this module, and not what a deployment is.
    from pipelines.deployment.settings import Deployment, Party

MOST_NUMBER = 10**10 - 1
Batch: TypeAlias = "tuple[str, Mapping[str, Sequence[tuple[str, int]]]]"
"""Digest of what is to be done; and the files of each input."""
_NUMBERED = re.compile(r"([0-9]{10})\.(json|done)")
_NAME = r"[^/\\:.\x00-\x1f][^/\\:\x00-\x1f]{0,254}"
_Below = Annotated[str, text_of(rf"^{_NAME}(/{_NAME}){{0,15}}$", "must be a path of names that begin with no dot")]
_Draw = Annotated[str, text_of(r"^([0-9a-f]{64})?$", "must be 64 hexadecimal digits, in lower case, or empty")]
_Input = Literal["reports", "discovery", "released reports", "released discovery"]
_Path = Annotated[str, Field(min_length=1, max_length=4096)]


class BatchPart(Part):
    """What is to be done for one batch.

    Attributes:
        directory: to write to, below `attempts/PARTY`; no other order names it.
        draw, reports: as of `Order`.
        files: paths of each input, each with how many whole blocks it has.
    """

    directory: _Below
    draw: _Draw = ""
    reports: Count = 0
    files: Mapping[_Input, tuple[tuple[_Path, Count], ...]]


class OrderFile(Part):
    """Batches of a campaign file that wait for the same hop, as they are written.

    Attributes:
        stream: id of the one that is to carry it out: of two that do, each would write half of a batch.
        steps: digest of what is to be done.
    """

    format: Literal[1]
    stream: Hex8
    hop: Literal["shuffle", "release", "discover", "analyze"]
    campaign: Identifier
    fingerprint: Hex32
    steps: Hex32
    batches: tuple[BatchPart, ...] = Field(min_length=1, max_length=MOST_TOGETHER)


@dataclass(frozen=True)
class OrderBook:
    """The orders of one party; called with a number, what a graph is told of that batch.

    Attributes:
        folder: where they lie.
        attempts: where their batches are written.
    """

    folder: str
    attempts: str

    @classmethod
    def of(cls, deployment: Deployment, party: Party) -> OrderBook:
        """Return the orders of a party of a deployment."""
        return cls(deployment.folder("orders", party), deployment.folder("attempts", party))

    @property
    def lease(self) -> str:
        """The lease of the stream that is at work."""
        return storage.join(self.folder, "stream.lease.json")

    def __call__(self, number: int) -> Order | None:
        order = _kept(self._path(number // MOST_TOGETHER))
        if order is None:
            return None
        batch = order.batches[number % MOST_TOGETHER]
        return Order(storage.join(self.attempts, batch.directory), bytes.fromhex(batch.draw), batch.reports)

    def read(self, number: int) -> OrderFile | None:
        """Return an order; None: there is none. FormatError: it is damaged."""
        return _read(self._path(number))

    def put(self, make: Callable[[], OrderFile]) -> tuple[int, OrderFile] | None:
        """Put an order, which `make` makes, under a number that was never used; None: it is too long."""
        while True:
            number, order = self._newest() + 1, make()
            if len(data := order.model_dump_json(exclude_defaults=True).encode()) > LISTING_BYTES:
                return None
            if storage.put_absent(self._path(number), data):
                if self._newest(number) < number:
                    return number, order
                # Whoever was slow may have taken a number that was used and removed meanwhile.
                self.close(number)

    def close(self, number: int) -> None:
        """Remove an order; nobody takes its number again."""
        storage.put_absent(self._path(number, "done"), b"\n")
        storage.remove(self._path(number))
        for one, kind in self._numbers():
            if kind == "done" and one < number:
                storage.remove(self._path(one, kind))

    def clear(self) -> None:
        """Remove all orders: they were for a stream that is no longer at work."""
        for number, kind in self._numbers():
            if kind == "json":
                self.close(number)

    def next_from(self, number: int) -> int:
        """Return the first number from this one on that an order has, or the next one will have."""
        there = [one for one, kind in self._numbers() if kind == "json" and one >= number]
        return min(there, default=max(number, self._newest() + 1))

    def _newest(self, but: int = 0) -> int:
        """Return the newest number, not looking at one of the orders; 0: there is none."""
        return max((number for number, kind in self._numbers() if (number, kind) != (but, "json")), default=0)

    def _numbers(self) -> list[tuple[int, str]]:
        names = (storage.relative(path, self.folder) for path, _ in storage.list_tree(self.folder, "*"))
        return sorted((int(named[1]), named[2]) for named in map(_NUMBERED.fullmatch, names) if named)

    def _path(self, number: int, kind: str = "json") -> str:
        return storage.join(self.folder, f"{number:010d}.{kind}")


def _read(path: str) -> OrderFile | None:
    data = storage.read_if_there(path, LISTING_BYTES)
    return None if data is None else parse_model(OrderFile, data, path)


# What was read stays true: no order is changed, and none comes back.
_kept = lru_cache(maxsize=8)(_read)
