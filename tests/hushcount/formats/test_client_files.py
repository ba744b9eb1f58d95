"""A value that a client keeps in a file: any damage shows, a failed change changes nothing, processes take turns."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hushcount.errors import FormatError, HushcountError, UsageError
from hushcount.formats.client_files import KeptValue
from hushcount.formats.models import Part
from tests.hushcount.forked import forked


class Total(Part):
    number: int = 0
    note: str = ""


def kept(path: Path | None) -> KeptValue[Total]:
    return KeptValue(Total(), path, "total", "count anew")


def add(value: Total) -> tuple[Total, int]:
    return Total(number=value.number + 1), value.number


def add_slowly(value: Total) -> tuple[Total, int]:
    time.sleep(0.001)  # Another thread gets its turn.
    return add(value)


def test_every_flipped_bit_and_every_missing_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "total.json"
    assert [kept(path).change(add) for _ in range(3)] == [0, 1, 2]
    whole = path.read_bytes()
    damaged = [whole[:length] for length in range(len(whole))] + [whole + b"\n", whole * 2, b" " * (2 << 20)]
    damaged += [bytes(old ^ (place == at) << bit for at, old in enumerate(whole)) for place in range(len(whole))
                for bit in range(8)]  # fmt: skip
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"^total file .*total\.json.*count anew$"):
            kept(path).change(add)
        assert path.read_bytes() == content
    path.write_bytes(whole)
    assert kept(path).read() == Total(number=3)


@pytest.mark.parametrize("durable", [False, True])
def test_a_change_that_fails_changes_nothing(tmp_path: Path, durable: bool) -> None:
    value = kept(tmp_path / "total.json" if durable else None)
    value.change(add)

    def fails(_: Total) -> tuple[Total, int]:
        raise HushcountError("no")

    with pytest.raises(HushcountError, match="no"):
        value.change(fails)
    assert value.change(add) == 1


def test_a_value_that_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    value = kept(tmp_path / "total.json")
    value.change(add)
    with pytest.raises(HushcountError, match=r" 1,0\d\d,\d\d\d .* 1,048,576"):
        value.change(lambda _: (Total(note="x" * (1 << 20)), None))
    assert value.read() == Total(number=1)


@pytest.mark.parametrize("durable", [False, True])
def test_threads_change_it_one_after_another(tmp_path: Path, durable: bool) -> None:
    value = kept(tmp_path / "total.json" if durable else None)
    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(value.change, [add_slowly] * 40)) == list(range(40))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_processes_and_their_forks_take_turns(tmp_path: Path) -> None:
    """Two processes and three forks of each are eight."""
    path = tmp_path / "total.json"

    def process() -> list[list[int]]:
        value = kept(path)
        return forked(lambda: [value.change(add) for _ in range(10)], 3, here=True)

    seen = [number for process in forked(process, 2) for numbers in process for number in numbers]
    assert sorted(seen) == list(range(80))
    assert kept(path).read() == Total(number=80)


def test_a_path_must_be_one(subtests: pytest.Subtests) -> None:
    for path in ["", 3]:
        with (
            subtests.test(path=path),
            pytest.raises(UsageError, match=r"'total\.json'"),
        ):
            kept(path)  # type: ignore[arg-type]
