"""The source of a streaming job, which checks again and again for the next order.

The source's only state is the number of the next order.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import apache_beam as beam
from apache_beam.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
from apache_beam.transforms.core import RestrictionProvider
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Duration, Timestamp

from hushcount.clock import MACHINE
from hushcount.errors import FormatError
from pipelines.files.leases import owner_of
from pipelines.files.orders import MOST_TOGETHER
from pipelines.streaming.order_book import MOST_NUMBER, OrderBook

_LISTED_EVERY = 30
"""The number of checks after which a worker lists all orders, because the order that it waits for may be removed."""
_MOST_MISSED = 3
"""The job ends after this many listings without its lease, because no run orders anything from it then."""


class _Tracker(OffsetRestrictionTracker):  # type: ignore[misc]  # apache_beam ships no types
    """The remaining numbers of orders. The range of numbers moves to another worker as a whole, and is never split."""

    def try_split(self, fraction_of_remainder: float) -> tuple[OffsetRange, OffsetRange] | None:
        return None if fraction_of_remainder else super().try_split(0.0)

    def is_bounded(self) -> bool:
        return False


class _Numbers(RestrictionProvider):  # type: ignore[misc]
    def initial_restriction(self, book: OrderBook) -> OffsetRange:
        return OffsetRange(book.next_from(1), MOST_NUMBER + 1)

    def create_tracker(self, restriction: OffsetRange) -> _Tracker:
        return _Tracker(restriction)

    def restriction_size(self, book: OrderBook, restriction: OffsetRange) -> int:
        return 1


_NUMBERS = beam.DoFn.RestrictionParam(_Numbers())
_WATERMARK = beam.DoFn.WatermarkEstimatorParam(ManualWatermarkEstimator.default_provider())


class WatchOrders(beam.DoFn):
    """Takes the orders of a party, and yields the batches of each order, each at the time of the batch's number.

    After an order, the watermark passes the last number that a batch of the order can have.

    The source ends once the command that started the job is gone, because an engine may not notice that the command is
    gone.

    Args:
        stream: id of this job. Orders for other jobs and damaged orders are skipped.
        every: number of seconds between two checks for the next order.
    """

    def __init__(self, stream: str, every: float) -> None:
        self._stream, self._every = stream, every

    def setup(self) -> None:
        self._looks, self._missed, self._due = 0, 0, 0.0

    @beam.DoFn.unbounded_per_element()
    def process(
        self, book: OrderBook, tracker: _Tracker = _NUMBERS, watermark: ManualWatermarkEstimator = _WATERMARK
    ) -> Iterator[TimestampedValue]:
        # Flink calls this method long before the requested time, so the method itself waits.
        time.sleep(max(0.0, self._due - MACHINE.steady()))
        self._looks += 1
        number = tracker.current_restriction().start
        if not self._looks % _LISTED_EVERY:
            number = book.next_from(number)
            self._missed = 0 if owner_of(book.lease) == self._stream else self._missed + 1
            if self._missed == _MOST_MISSED:
                tracker.try_claim(MOST_NUMBER)
                return
        try:
            order = book.read(number)
            found = order is not None
        except FormatError:
            order, found = None, True
        if found and not tracker.try_claim(number):
            return
        if order is not None and order.stream == self._stream:
            for place, batch in enumerate(order.batches):
                yield TimestampedValue((order.steps, batch.files), number * MOST_TOGETHER + place)
        if found:
            watermark.set_watermark(Timestamp((number + 1) * MOST_TOGETHER))
        pause = 0.0 if found else self._every
        self._due = MACHINE.steady() + pause
        tracker.defer_remainder(Duration(pause))
