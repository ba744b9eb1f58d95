"""The orders of a party: `orders/PARTY/0000000001.json` and so on. A run puts orders, and a streaming job reads them.

Each number is used once, because an engine treats the time of an order as past once it reads the next order. So that
its number is not used again, the newest removed order leaves a file `0000000001.done`.
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
    # Workers load this module without the deployment's settings, so these are imported for types only.
    from pipelines.deployment.settings import Deployment, Party

MOST_NUMBER = 10**10 - 1
Batch: TypeAlias = "tuple[str, Mapping[str, Sequence[tuple[str, int]]]]"
"""A batch of an order: the digest of the steps to carry out, and the files of each input."""
_NUMBERED = re.compile(r"([0-9]{10})\.(json|done)")
_NAME = r"[^/\\:.\x00-\x1f][^/\\:\x00-\x1f]{0,254}"
_Below = Annotated[str, text_of(rf"^{_NAME}(/{_NAME}){{0,15}}$", "must be a path of names that begin with no dot")]
_Draw = Annotated[str, text_of(r"^([0-9a-f]{64})?$", "must be 64 hexadecimal digits, in lower case, or empty")]
_Input = Literal["reports", "discovery", "released reports", "released discovery"]
_Path = Annotated[str, Field(min_length=1, max_length=4096)]


class BatchPart(Part):
    """The order for one batch.

    Attributes:
        directory: the directory to write to, below `attempts/PARTY`, which no other order names.
        draw, reports: as in `Order`.
        files: the paths of each input's files, each with its number of whole blocks.
    """

    directory: _Below
    draw: _Draw = ""
    reports: Count = 0
    files: Mapping[_Input, tuple[tuple[_Path, Count], ...]]


class OrderFile(Part):
    """An order to a streaming job: batches of a campaign file that wait for the same hop.

    Attributes:
        stream: id of the streaming job that carries out this order. If two jobs carried out one order, each would write
            half of a batch.
        steps: digest of the steps to carry out.
    """

    format: Literal[1]
    stream: Hex8
    hop: Literal["shuffle", "release", "discover", "mix", "analyze"]
    campaign: Identifier
    fingerprint: Hex32
    steps: Hex32
    batches: tuple[BatchPart, ...] = Field(min_length=1, max_length=MOST_TOGETHER)


@dataclass(frozen=True)
class OrderBook:
    """The orders of one party. Calling the object with a batch's number returns the batch's `Order` for the graph.

    Attributes:
        folder: the folder of the orders.
        attempts: the folder to which the batches of the orders are written.
    """

    folder: str
    attempts: str

    @classmethod
    def of(cls, deployment: Deployment, party: Party) -> OrderBook:
        """Return the orders of a party of a deployment."""
        return cls(deployment.folder("orders", party), deployment.folder("attempts", party))

    @property
    def lease(self) -> str:
        """The lease of the streaming job that is at work."""
        return storage.join(self.folder, "stream.lease.json")

    def __call__(self, number: int) -> Order | None:
        order = _kept(self._path(number // MOST_TOGETHER))
        if order is None:
            return None
        batch = order.batches[number % MOST_TOGETHER]
        return Order(storage.join(self.attempts, batch.directory), bytes.fromhex(batch.draw), batch.reports)

    def read(self, number: int) -> OrderFile | None:
        """Return an order, or None if there is no such order; raises FormatError if it is damaged."""
        return _read(self._path(number))

    def put(self, make: Callable[[], OrderFile]) -> tuple[int, OrderFile] | None:
        """Put the order that `make` returns under a number that was never used; None: the order is too long to put."""
        while True:
            number, order = self._newest() + 1, make()
            if len(data := order.model_dump_json(exclude_defaults=True).encode()) > LISTING_BYTES:
                return None
            if storage.put_absent(self._path(number), data):
                if self._newest(number) < number:
                    return number, order
                # This process was slow: its number was used and removed meanwhile, so it tries another number.
                self.close(number)

    def close(self, number: int) -> None:
        """Remove an order, and mark its number so that it is not used again."""
        storage.put_absent(self._path(number, "done"), b"\n")
        storage.remove(self._path(number))
        for one, kind in self._numbers():
            if kind == "done" and one < number:
                storage.remove(self._path(one, kind))

    def clear(self) -> None:
        """Remove all orders, because they were for a streaming job that is no longer at work."""
        for number, kind in self._numbers():
            if kind == "json":
                self.close(number)

    def next_from(self, number: int) -> int:
        """Return the first number, from `number` on, of an existing order, or else the number of the next new order."""
        there = [one for one, kind in self._numbers() if kind == "json" and one >= number]
        return min(there, default=max(number, self._newest() + 1))

    def _newest(self, but: int = 0) -> int:
        """Return the newest number, ignoring the order with number `but`; 0 if there is no number."""
        return max((number for number, kind in self._numbers() if (number, kind) != (but, "json")), default=0)

    def _numbers(self) -> list[tuple[int, str]]:
        names = (storage.relative(path, self.folder) for path, _ in storage.list_tree(self.folder, "*"))
        return sorted((int(named[1]), named[2]) for named in map(_NUMBERED.fullmatch, names) if named)

    def _path(self, number: int, kind: str = "json") -> str:
        return storage.join(self.folder, f"{number:010d}.{kind}")


def _read(path: str) -> OrderFile | None:
    data = storage.read_if_there(path, LISTING_BYTES)
    return None if data is None else parse_model(OrderFile, data, path)


# An order in the cache is always valid, because no order is changed, and no removed order comes back.
_kept = lru_cache(maxsize=8)(_read)
