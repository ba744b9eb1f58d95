"""The transform that carries out the batches of orders.

Workers load this module, and a worker has the packages of only one party.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import apache_beam as beam
from apache_beam.pvalue import PCollection

from hushcount.errors import HushcountError
from pipelines.files.block_files import BlockFile, header_of
from pipelines.files.orders import OfOrder, apart, together
from pipelines.jobs.together import Steps, Where
from pipelines.outputs.counting import WriteCounts
from pipelines.streaming.order_book import Batch, OrderBook


class CarryOut(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """Takes the batches of a party's orders, each at the time of its number; does the batches with these steps."""

    def __init__(self, steps: Steps, book: OrderBook, places: int) -> None:
        super().__init__()
        self._steps, self._where = steps, Where(book, meets=together(), places=places)

    def expand(self, batches: PCollection) -> PCollection:
        steps, where = self._steps, self._where
        mine = batches | "its own" >> beam.Filter(_is_of, steps.digest) | "a window each" >> beam.WindowInto(apart())
        files = {name: mine | f"files of {name}" >> beam.FlatMap(_files, name) for name in steps.inputs}
        # A batch without a record must have counts too, so an empty count is added for each batch.
        none = mine | "its number" >> beam.ParDo(OfOrder()) | "nothing yet" >> beam.Map(_nothing)
        counts = (steps.add(files, where), where.written(none, "order")) | "all of it" >> beam.Flatten()
        return counts | "counts" >> WriteCounts(where.folder())


def _is_of(batch: Batch, steps: str) -> bool:
    return batch[0] == steps


def _nothing(element: tuple[int, Batch]) -> tuple[int, int]:
    return element[0], 0


def _files(batch: Batch, name: str) -> Iterator[BlockFile]:
    """Yield the files of an input, except unreadable files, for which the run refuses this batch and no other."""
    for path, blocks in batch[1].get(name, ()):
        with suppress(HushcountError, OSError):
            yield BlockFile(path, header_of(path), blocks)
