"""An order says what a Beam graph does for one batch. The Beam window of an element is the number of its batch's order.

Because each batch has its own window, one graph can process many batches, and each batch keeps its own keys,
permutation, cap, counts and directory.
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
"""The most batches that are compared with each other; batches with equal number // MOST_TOGETHER are compared."""


@dataclass(frozen=True)
class Order:
    """What a graph does for one batch.

    Attributes:
        directory: where the job writes.
        draw: context of the random draw of a release; empty: the graph draws nothing.
        reports: number of reports that the hop before accepted, for the steps that need this number.
    """

    directory: str
    draw: bytes = b""
    reports: int = 0


Orders: TypeAlias = "Callable[[int], Order | None]"
"""A function that returns the order with a number; None: the result of that order is no longer needed."""
Folder: TypeAlias = "Callable[[int], str | None]"
"""A function that returns the folder to write to for the order with a number; None: write nothing."""


@dataclass(frozen=True)
class Listed:
    """Orders that are known when the graph is made, with numbers from 0."""

    orders: tuple[Order, ...]

    def __call__(self, number: int) -> Order:
        return self.orders[number]


@dataclass(frozen=True)
class FolderOf:
    """Returns, for each order, the folder `names` in the order's directory."""

    orders: Orders
    names: tuple[str, ...] = ()

    def __call__(self, number: int) -> str | None:
        order = self.orders(number)
        return None if order is None else storage.join(order.directory, *self.names)


@dataclass(frozen=True)
class OneFolder:
    """Returns one folder for the only order; this folder may lie outside the order's directory."""

    folder: str

    def __call__(self, number: int) -> str:
        return self.folder


def number_of(window: BoundedWindow) -> int:
    """Return the number of the order in a window; 0 in the global window, which has only one order."""
    return window.start.seconds() if isinstance(window, IntervalWindow) else 0


class OfOrder(beam.DoFn):
    """An element in, (number of the element's order, element) out."""

    def process(self, element: Any, window: BoundedWindow = beam.DoFn.WindowParam) -> Iterator[tuple[int, Any]]:
        yield number_of(window), element


@with_input_types(tuple[int, bytes])
@with_output_types(tuple[tuple[int, int], bytes])
class ShardOfOrder(beam.DoFn):
    """(shard, records) in, ((number of the records' order, shard), records) out."""

    def process(
        self, element: tuple[int, bytes], window: BoundedWindow = beam.DoFn.WindowParam
    ) -> Iterator[tuple[tuple[int, int], bytes]]:
        yield (number_of(window), element[0]), element[1]


class EachInItsWindow(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """(number of an order, element) in, the element in the window of this order out."""

    def expand(self, elements: PCollection) -> PCollection:
        return elements | "at its number" >> beam.Map(_at_number) | "a window each" >> beam.WindowInto(apart())


def _at_number(element: tuple[int, Any]) -> TimestampedValue:
    return TimestampedValue(element[1], element[0])


def apart() -> FixedWindows:
    """Return the windows that keep batches apart: one window for each number of an order."""
    return FixedWindows(1)


def together() -> FixedWindows:
    """Return the windows that bring batches together: one window for MOST_TOGETHER successive numbers of orders."""
    return FixedWindows(MOST_TOGETHER)
