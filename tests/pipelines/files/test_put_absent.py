"""A file is put unless its name is taken, in one step, whoever else does the same; and listings tell when."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from hushcount.errors import HushcountError, UsageError
from hushcount.formats import whole_files
from pipelines.files import disks, storage, stores
from pipelines.files.s3_clients import boto3_client_of
from pipelines.files.storage_errors import StorageError
from tests.faults.store import BUCKET, store
from tests.support.stub_store import StubStore

WRITERS = 16


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A store that speaks S3, to which Beam's options point."""
    before = FileSystems._pipeline_options
    with store(tmp_path_factory.mktemp("moto")) as made:
        FileSystems.set_options(PipelineOptions(list(made.options)))
        try:
            yield f"s3://{BUCKET}"
        finally:
            FileSystems.set_options(before)


# Nothing here speaks the protocol of gs://: moto has no such service, the emulators that exist are no packages, and the
# client of Google is not installed for tests. So `put_to_gcs`, `open_in_gcs` and `date_of_gcs` RUN IN NO TEST. Before
# its first entry a log lets 16 writers race in the real store (tests/pipelines/log/test_probe.py).
@pytest.fixture(params=["disk", "s3", "stub"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "s3":
        yield f"{request.getfixturevalue('moto')}/{tmp_path.name}"
    elif request.param == "stub":
        StubStore.clear()
        yield "stub://b/log"
        StubStore.clear()
    else:
        yield str(tmp_path / "log")


def test_a_taken_name_is_refused_and_keeps_what_it_has(folder: str) -> None:
    path = storage.join(folder, "1.json")
    assert storage.read_if_there(path) is None
    assert storage.put_absent(path, b"first")
    assert not storage.put_absent(path, b"second")
    assert storage.read_if_there(path) == b"first"
    assert storage.put_absent(storage.join(folder, "2.json"), b"")
    assert storage.read_if_there(storage.join(folder, "2.json")) == b""
    with pytest.raises(UsageError, match="must have at most"):
        storage.read_if_there(path, 4)


def test_of_many_threads_exactly_one_puts(folder: str) -> None:
    for round_ in range(4):
        path, start = storage.join(folder, f"{round_}.json"), Barrier(WRITERS)

        def put(number: int, path: str = path, start: Barrier = start) -> bool:
            start.wait()
            return storage.put_absent(path, b"%d" % number * 1000)

        with ThreadPoolExecutor(WRITERS) as pool:
            won = list(pool.map(put, range(WRITERS)))
        assert won.count(True) == 1
        assert storage.read_if_there(path) == b"%d" % won.index(True) * 1000


RACE = """
import multiprocessing, sys
from pipelines.files import storage
context = multiprocessing.get_context("fork")
start, won = context.Barrier({0}), context.Array("b", {0})
def put(number):
    start.wait()
    won[number] = storage.put_absent(sys.argv[1], b"%d" % number)
processes = [context.Process(target=put, args=[number]) for number in range({0})]
for process in processes:
    process.start()
for process in processes:
    process.join()
print(*won, *(process.exitcode for process in processes))
"""


def test_of_many_processes_exactly_one_puts(tmp_path: Path) -> None:
    path = tmp_path / "log" / "1.json"
    program = [sys.executable, "-c", RACE.format(WRITERS), str(path)]
    said = subprocess.run(program, check=True, capture_output=True, text=True).stdout.split()  # noqa: S603  # our own
    won, codes = said[:WRITERS], said[WRITERS:]
    assert codes == ["0"] * WRITERS
    assert sorted(won) == ["0"] * (WRITERS - 1) + ["1"]
    assert path.read_bytes() == b"%d" % won.index("1")
    assert [one.name for one in path.parent.iterdir()] == ["1.json"]


KILLED = """
import os, signal, sys
from hushcount.formats import whole_files
from pipelines.files import disks, storage
def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
{}
storage.put_absent(sys.argv[1], b"first" * 10_000)
"""


@pytest.mark.parametrize(
    ("at", "is_there"),
    [
        ("whole_files.os.fsync = die", False),
        ("whole_files.os.link = die", False),
        ("whole_files.Path.unlink = die", True),
        ("disks.sync = die", True),
    ],
)
def test_a_kill_leaves_a_whole_file_or_none(tmp_path: Path, at: str, is_there: bool) -> None:
    path = tmp_path / "1.json"
    program = [sys.executable, "-c", KILLED.format(at), str(path)]
    assert subprocess.run(program, check=False).returncode == -9  # noqa: S603  # our own program
    assert storage.read_if_there(str(path)) == (b"first" * 10_000 if is_there else None)
    # What the killed one left under other names is in nobody's way.
    assert storage.put_absent(str(path), b"second") == (not is_there)
    assert storage.list_files(str(tmp_path), ".json") == [(str(path), 50_000 if is_there else 6)]


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_without_hard_links_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def link(source: Path, target: Path) -> None:
        raise OSError(number, os.strerror(number), str(source), None, str(target))

    monkeypatch.setattr(whole_files.os, "link", link)
    with pytest.raises(UsageError, match="without hard links"):
        storage.put_absent(str(tmp_path / "1.json"), b"first")
    assert list(tmp_path.iterdir()) == []


def test_a_refusal_that_is_not_of_links_is_not_taken_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(whole_files.os, "fchmod", refuse)
    with pytest.raises(PermissionError):
        storage.put_absent(str(tmp_path / "1.json"), b"first")


def test_what_returns_is_on_the_disk_also_for_who_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(disks, "sync", synced.append)
    folder = tmp_path / "log" / "words"
    assert storage.put_absent(str(folder / "1.json"), b"first")
    assert set(synced) == {folder, folder.parent, tmp_path}
    synced.clear()
    assert not storage.put_absent(str(folder / "1.json"), b"second")
    assert synced == [folder]


def _broken(answer: Exception, *, writes: bool) -> Callable[[str, bytes], bool]:
    """Return a store whose answer is lost, before or after it wrote."""

    def put(path: str, data: bytes) -> bool:
        if writes:
            StubStore.put_absent(path, data)
        raise answer

    return put


@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize(
    "answer",
    [RuntimeError("503 of a client"), ConnectionResetError(104, "reset"), TimeoutError("no answer"), KeyError("x")],
)
def test_whatever_a_client_raises_is_a_storage_error(
    monkeypatch: pytest.MonkeyPatch, answer: Exception, writes: bool
) -> None:
    StubStore.clear()
    monkeypatch.setitem(stores.PUTS, "stub", _broken(answer, writes=writes))
    with pytest.raises(StorageError, match=r"stub://b/1\.json"):
        storage.put_absent("stub://b/1.json", b"mine")
    assert storage.read_if_there("stub://b/1.json") == (b"mine" if writes else None)
    StubStore.clear()


def _answer(status: int, times: int) -> tuple[Callable[..., None], list[int]]:
    """Return what makes another answer of the store's next ones, after it did what it was asked, and what it took."""
    taken: list[int] = []

    def change(response_dict: dict[str, Any], **_: object) -> None:
        if len(taken) < times:
            taken.append(response_dict["status_code"])
            response_dict["status_code"] = status
            response_dict["body"] = b"<Error><Code>Changed</Code><Message>changed</Message></Error>"

    return change, taken


@pytest.mark.parametrize(
    ("status", "times", "expected"),
    [
        (503, 1, False),
        (500, 1, False),
        (412, 1, False),
        (409, 1, False),
        (409, 99, StorageError),
        (403, 1, StorageError),
        # It knows no such request.
        (501, 99, UsageError),
    ],
)
def test_an_answer_that_is_lost_after_the_write_hides_nothing(
    moto: str, tmp_path: Path, status: int, times: int, expected: bool | type[Exception]
) -> None:
    """The store wrote it each time: who asks for the file afterwards finds it."""
    path = f"{moto}/{tmp_path.name}/1.json"
    change, taken = _answer(status, times)
    events = boto3_client_of(FileSystems._pipeline_options).meta.events
    events.register("before-parse.s3.PutObject", change)
    try:
        if isinstance(expected, type):
            says = "cannot put an object unless its name is taken" if status == 501 else r"1\.json"
            with pytest.raises(expected, match=says):
                storage.put_absent(path, b"mine")
        else:
            assert storage.put_absent(path, b"mine") is expected
    finally:
        events.unregister("before-parse.s3.PutObject", change)
    assert taken[0] == 200
    assert storage.read_if_there(path) == b"mine"


def test_a_store_of_which_no_such_request_is_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(stores.PUTS, "stub")
    with pytest.raises(UsageError, match="must be gs:// or s3://"):
        storage.put_absent("stub://b/1.json", b"first")


def test_a_store_that_is_away_is_a_sentence() -> None:
    before = FileSystems._pipeline_options
    away = ["--s3_endpoint_url=http://127.0.0.1:9", "--s3_region_name=x", "--s3_access_key_id=x"]
    FileSystems.set_options(PipelineOptions([*away, "--s3_secret_access_key=x"]))
    try:
        for ask in (
            lambda: storage.put_absent("s3://b/1.json", b"x"),
            lambda: storage.read_if_there("s3://b/1.json"),
            lambda: storage.store_time("s3://b/1.json"),
        ):
            with pytest.raises((HushcountError, OSError), match=r"s3://b/1\.json"):
                ask()
    finally:
        FileSystems.set_options(before)


def test_a_listing_says_when_each_file_was_written(folder: str) -> None:
    began = time.time()
    for name in ("b/1.json", "a/2.json", "a/b/3.json", "a/4.txt"):
        storage.put_absent(storage.join(folder, name), name.encode())
    listed = storage.list_dated(folder, "*/*.json")
    assert [(path, size) for path, size, _ in listed] == [(f"{folder}/a/2.json", 8), (f"{folder}/b/1.json", 8)]
    assert all(abs(modified - began) < 60 for *_, modified in listed)
    assert storage.list_tree(folder, "*/*.json") == [(path, size) for path, size, _ in listed]


def test_a_listing_of_a_store_is_one_request(moto: str, tmp_path: Path) -> None:
    folder = f"{moto}/{tmp_path.name}"
    for number in range(3):
        storage.put_absent(f"{folder}/{number}.json", b"")
    asked: list[str] = []

    def note(model: Any, **_: object) -> None:
        asked.append(model.name)

    events = boto3_client_of(FileSystems._pipeline_options).meta.events
    events.register("before-call.s3", note)
    try:
        assert len(storage.list_dated(folder, "*.json")) == 3
        assert asked == ["ListObjectsV2"]
        asked.clear()
        assert storage.read_if_there(f"{folder}/0.json") == b""
        assert storage.read_if_there(f"{folder}/9.json") is None
        assert asked == ["GetObject", "GetObject"]
    finally:
        events.unregister("before-call.s3", note)


def test_the_times_of_files_are_those_of_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"1")
    os.utime(path, (5, 1_000_000_000.25))
    assert storage.list_dated(str(tmp_path), "*.json") == [(str(path), 1, 1_000_000_000.25)]


def test_a_store_tells_the_time_and_a_disk_does_not(moto: str, tmp_path: Path) -> None:
    told = storage.store_time(f"{moto}/log/words")
    assert told is not None
    assert abs(told.timestamp() - time.time()) < 60
    # A refusal is an answer, with a date.
    assert storage.store_time("s3://no-such-bucket/log") is not None
    assert storage.store_time(str(tmp_path)) is None
