"""Orders: what a Beam graph does for each batch. The Beam window of an element is the number of its batch's order.

So one graph can process many batches, and each batch keeps its own keys, permutation, cap, counts and directory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import apache_beam as beam
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import BoundedWindow, FixedWindows, IntervalWindow, TimestampedValue
from apache_beam.typehints import with_input_types, with_output_types

from pipelines.files import storage

MOST_TOGETHER = 128
"""The most batches that are compared with each other: those with equal number // MOST_TOGETHER."""


@dataclass(frozen=True)
class Order:
    """What a graph does for one batch.

    Attributes:
        directory: where the job writes.
        draw: context of the draw of a release; empty: nothing is drawn.
        reports: how many reports the hop before accepted, for the steps that need the number.
    """

    directory: str
    draw: bytes = b""
    reports: int = 0


Orders: TypeAlias = "Callable[[int], Order | None]"
"""Returns the order with a number; None: nobody waits for that order any more."""
Folder: TypeAlias = "Callable[[int], str | None]"
"""Returns the folder to write to for the order with a number; None: write nothing."""


@dataclass(frozen=True)
class Listed:
    """Orders that are known when the graph is made, with numbers from 0."""

    orders: tuple[Order, ...]

    def __call__(self, number: int) -> Order:
        return self.orders[number]


@dataclass(frozen=True)
class FolderOf:
    """A folder in the directory of each order."""

    orders: Orders
    names: tuple[str, ...] = ()

    def __call__(self, number: int) -> str | None:
        order = self.orders(number)
        return None if order is None else storage.join(order.directory, *self.names)


@dataclass(frozen=True)
class OneFolder:
    """A folder for the only order, which may lie outside the order's directory."""

    folder: str

    def __call__(self, number: int) -> str:
        return self.folder


def number_of(window: BoundedWindow) -> int:
    """Return the number of the order in a window; 0 in the global window, which has only one order."""
    return window.start.seconds() if isinstance(window, IntervalWindow) else 0


class OfOrder(beam.DoFn):
    """Elements in, (number of their order, element) out."""

    def process(self, element: Any, window: BoundedWindow = beam.DoFn.WindowParam) -> Iterator[tuple[int, Any]]:
        yield number_of(window), element


@with_input_types(tuple[int, bytes])
@with_output_types(tuple[tuple[int, int], bytes])
class ShardOfOrder(beam.DoFn):
    """(shard, records) in, ((number of their order, shard), records) out."""

    def process(
        self, element: tuple[int, bytes], window: BoundedWindow = beam.DoFn.WindowParam
    ) -> Iterator[tuple[tuple[int, int], bytes]]:
        yield (number_of(window), element[0]), element[1]


class EachInItsWindow(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """(number, element) in, the element in the window of its order out."""

    def expand(self, elements: PCollection) -> PCollection:
        return elements | "at its number" >> beam.Map(_at_number) | "a window each" >> beam.WindowInto(apart())


def _at_number(element: tuple[int, Any]) -> TimestampedValue:
    return TimestampedValue(element[1], element[0])


def apart() -> FixedWindows:
    """Return the windows that keep batches apart: one for each number."""
    return FixedWindows(1)


def together() -> FixedWindows:
    """Return the windows that bring batches together: one for each MOST_TOGETHER numbers."""
    return FixedWindows(MOST_TOGETHER)
