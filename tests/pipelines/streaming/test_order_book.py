"""Orders: what may stand in one, and that no number is used twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hushcount.errors import FormatError
from pipelines.files import storage
from pipelines.files.orders import MOST_TOGETHER, Order
from pipelines.streaming import order_book
from pipelines.streaming.order_book import OrderBook, OrderFile

FILE = "words/000001-19edf9fe5fe738d4/20261121T000000Z/reports/one-000000.blocks"


@pytest.fixture
def book(tmp_path: Path) -> OrderBook:
    return OrderBook(str(tmp_path / "orders"), str(tmp_path / "attempts"))


def data(**changed: object) -> dict[str, Any]:
    batch = {"directory": "words/BATCH.shuffle/4f0c62d1a7b3e895", "files": {"reports": [[FILE, 3]]}}
    order = {"format": 1, "stream": "f" * 16, "hop": "shuffle", "campaign": "words", "fingerprint": "0" * 64}
    return {**order, "steps": "1" * 64, "batches": [batch], **changed}


def order() -> OrderFile:
    return OrderFile.model_validate(data())


def write(book: OrderBook, number: int, content: object) -> None:
    path = Path(book.folder) / f"{number:010d}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def names(book: OrderBook) -> list[str]:
    return sorted(path.name for path in Path(book.folder).iterdir())


def test_an_order_is_read_as_it_was_put(book: OrderBook) -> None:
    draw = {"directory": "a/b", "draw": "ab" * 32, "reports": 7, "files": {}}
    made = OrderFile.model_validate(data(hop="discover", batches=[*data()["batches"], draw]))
    assert book.put(lambda: made) == (1, made)
    assert book.read(1) == made
    assert book(MOST_TOGETHER) == Order(f"{book.attempts}/words/BATCH.shuffle/4f0c62d1a7b3e895")
    assert book(MOST_TOGETHER + 1) == Order(f"{book.attempts}/a/b", b"\xab" * 32, 7)
    assert book(2 * MOST_TOGETHER) is None


def batch(**changed: object) -> dict[str, Any]:
    return data(batches=[{**data()["batches"][0], **changed}])


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "{", "[" * 10_000, data(format=2), data(stream="F" * 16), data(hop="publish"), data(campaign="../x"),
        data(steps="0"), data(batches=[]), data(batches=data()["batches"] * (MOST_TOGETHER + 1)), data(more=1),
        batch(directory="../log"), batch(directory="/etc"), batch(directory="a//b"), batch(directory=".a"),
        batch(directory="a/.."), batch(directory="s3://bucket"), batch(directory="a\\b"), batch(directory=""),
        batch(draw="ab"), batch(reports=-1), batch(files={"keys": []}),
        batch(files={"reports": [["", 1]]}), batch(files={"reports": [[FILE, -1]]}),
        batch(files={"reports": [[FILE, 1e300]]}), batch(files={"reports": [["a" * 5000, 1]]}),
        batch(directory="a/" * 20 + "a"),
    ],
)  # fmt: skip
def test_what_is_no_order_is_refused_in_our_words(book: OrderBook, content: object) -> None:
    write(book, 1, content)
    with pytest.raises(FormatError, match=r"0000000001\.json"):
        book.read(1)


def test_a_number_is_used_once(book: OrderBook) -> None:
    assert [book.put(order), book.put(order)] == [(1, order()), (2, order())]
    book.close(1)
    assert names(book) == ["0000000001.done", "0000000002.json"]
    book.close(2)
    assert names(book) == ["0000000002.done"]
    assert book.put(order) == (3, order())
    # What a killed run left is nobody's.
    assert book.put(order) == (4, order())
    book.clear()
    assert names(book) == ["0000000004.done"]
    assert book.next_from(1) == 5
    assert book.put(order) == (5, order())


def test_a_slow_run_takes_no_number_that_was_used_meanwhile(book: OrderBook) -> None:
    """Between its look and its put others put two orders, and remove both."""
    made: list[OrderFile] = []

    def slow() -> OrderFile:
        if not made:
            for number in (1, 2):
                assert book.put(order) == (number, order())
                book.close(number)
        made.append(order())
        return made[-1]

    assert book.put(slow) == (3, order())
    assert len(made) == 2
    book.close(3)
    assert names(book) == ["0000000003.done"]


def test_who_finds_a_number_taken_takes_the_next(book: OrderBook, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[[str, bytes], bool] = storage.put_absent

    def second(path: str, data: bytes) -> bool:
        real(path, data)
        monkeypatch.setattr("pipelines.files.storage.put_absent", real)
        return False

    monkeypatch.setattr("pipelines.files.storage.put_absent", second)
    assert book.put(order) == (2, order())


def test_an_order_that_is_too_long_is_not_put(book: OrderBook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_book, "LISTING_BYTES", 100)
    assert book.put(order) is None
    assert not Path(book.folder).exists()


def test_the_source_begins_with_the_oldest_order_and_passes_over_removed_ones(book: OrderBook) -> None:
    assert book.next_from(1) == 1
    for _ in range(4):
        book.put(order)
    for number in (1, 2):
        book.close(number)
    assert [book.next_from(number) for number in (1, 3, 4, 5, 9)] == [3, 3, 4, 5, 9]
    for number in (3, 4):
        book.close(number)
    assert [book.next_from(number) for number in (1, 4, 5)] == [5, 5, 5]
