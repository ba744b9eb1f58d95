"""A value that a client keeps in a file: any damage shows, a failed change changes nothing, processes take turns."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hushcount.errors import FormatError, HushcountError, UsageError
from hushcount.formats.client_files import KeptValue
from hushcount.formats.models import Part


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
        with pytest.raises(FormatError, match=r"total file .* is damaged or of another version: count anew"):
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
    with pytest.raises(HushcountError, match=r"would have 1,0\d\d,\d\d\d bytes, must have at most 1,048,576"):
        value.change(lambda _: (Total(note="x" * (1 << 20)), None))
    assert value.read() == Total(number=1)


@pytest.mark.parametrize("durable", [False, True])
def test_threads_change_it_one_after_another(tmp_path: Path, durable: bool) -> None:
    value = kept(tmp_path / "total.json" if durable else None)
    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(lambda _: value.change(add_slowly), range(40))) == list(range(40))


PROCESS = """
    import os, sys
    from pathlib import Path
    from tests.hushcount.formats.test_client_files import add, kept

    value = kept(Path(sys.argv[1]))
    children = [child for _ in range(2) if (child := os.fork())]
    for _ in range(10):
        value.change(add)
    sys.exit(any(os.waitpid(child, 0)[1] for child in children) if len(children) == 2 else 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_processes_and_their_forks_take_turns(tmp_path: Path) -> None:
    """Two processes that fork twice are eight."""
    path = tmp_path / "total.json"
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(PROCESS), str(path)]
    running = [subprocess.Popen(command) for _ in range(2)]  # noqa: S603  # our script
    assert [process.wait(300) for process in running] == [0, 0]
    assert kept(path).read() == Total(number=80)


@pytest.mark.parametrize("path", ["", 3])
def test_a_path_must_be_one(path: object) -> None:
    with pytest.raises(UsageError, match=r"must name the file of the total, as in 'total\.json'"):
        kept(path)  # type: ignore[arg-type]
