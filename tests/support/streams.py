"""A stream in a thread of this process: the graph of `hushcount job stream`, once an order, on the tests' engine."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from threading import Event, Thread
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import TimestampedValue

from hushcount.errors import HushcountError
from pipelines.deployment.settings import Deployment
from pipelines.engine.runner import Engine
from pipelines.files.leases import Patience, held
from pipelines.files.orders import MOST_TOGETHER
from pipelines.jobs.together import Steps
from pipelines.streaming.carrying import CarryOut
from pipelines.streaming.order_book import OrderBook, OrderFile
from pipelines.streaming.stream import carried_by

QUICK = Patience(raised=0.05, still=2.0, look=0.02)
PLACES = 3
WAIT = 60.0


def carry_out(book: OrderBook, steps: Mapping[str, Steps], number: int, order: OrderFile) -> None:
    """Carry out an order in a graph of its own."""
    places = enumerate(order.batches, number * MOST_TOGETHER)
    listed = [(place, (order.steps, batch.files)) for place, batch in places]
    with Engine().pipeline("stream") as pipeline:
        batches = pipeline | beam.Create(listed, reshuffle=False) | "at its number" >> beam.Map(_timed)
        for name, one in steps.items():
            _ = batches | name >> CarryOut(one, book, PLACES)


def _timed(element: tuple[int, Any]) -> TimestampedValue:
    return TimestampedValue(element[1], element[0])


@contextmanager
def streaming(
    deployment: Deployment, before: Callable[[OrderBook, OrderFile], None] = lambda *_: None
) -> Iterator[list[tuple[str, int]]]:
    """Carry out the orders of all parties while a block runs; yield the hop of each order and how many batches it had.

    `before` is called before an order is carried out.
    """
    carried, left = carried_by(deployment)
    assert left == []
    id, over, held_all, ran = secrets.token_hex(8), Event(), Event(), list[tuple[str, int]]()
    books = [(OrderBook.of(deployment, party), steps) for party, steps in carried.items()]
    failed: list[Exception] = []

    def look() -> None:
        numbers = [1] * len(books)
        while not over.wait(0.02):
            for place, (book, steps) in enumerate(books):
                if (order := book.read(numbers[place])) is None:
                    continue
                if order.stream == id:
                    before(book, order)
                    ran.append((order.hop, len(order.batches)))
                    carry_out(book, steps, numbers[place], order)
                numbers[place] += 1

    def work() -> None:
        try:
            with ExitStack() as leases:
                for book, steps in books:
                    digests = [one.digest for one in steps.values()]
                    leases.enter_context(held(book.lease, HushcountError, owner=id, carries=digests, patience=QUICK))
                held_all.set()
                look()
        except Exception as error:
            failed.append(error)

    thread = Thread(target=work)
    thread.start()
    try:
        assert held_all.wait(WAIT)
        yield ran
    finally:
        over.set()
        thread.join()
    if failed:
        raise failed[0]
