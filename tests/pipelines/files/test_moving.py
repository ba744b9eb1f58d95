"""What moves a finished attempt to where its readers look: on one disk, between two, and in stores."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pipelines.files import moving, storage
from pipelines.files.moving import move_directory, move_file
from tests.support.stub_store import StubStore

FILES = {"reports/a.blocks": b"reports", "dead_letter/b.blocks": b"refused", "summary.json": b"{}"}


@pytest.fixture(params=["one disk", "two disks", "a store", "from a store", "to a store"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    here, there, store = str(tmp_path / "attempts" / "1"), str(tmp_path / "shuffled" / "b" / "1"), "stub://bucket"
    StubStore.clear()
    with tempfile.TemporaryDirectory(dir=other_disk(tmp_path)) as elsewhere:
        yield {
            "one disk": (here, there),
            "two disks": (here, f"{elsewhere}/b/1"),
            "a store": (f"{store}/attempts/1", f"{store}/b/1"),
            "from a store": (f"{store}/attempts/1", there),
            "to a store": (here, f"{store}/b/1"),
        }[request.param]
    StubStore.clear()


def other_disk(path: Path) -> str:
    # The first is in memory wherever Linux runs, and CI may have its tests write there.
    for other in (Path("/dev/shm"), Path(tempfile.gettempdir())):  # noqa: S108
        if other.is_dir() and other.stat().st_dev != path.stat().st_dev:
            return str(other)
    pytest.skip("there is no second disk: moves between two were NOT tested")


def made(source: str) -> None:
    for name, data in FILES.items():
        storage.write_whole(storage.join(source, *name.split("/")), [data])


def held(directory: str) -> dict[str, bytes]:
    return {storage.relative(path, directory): storage.read_bytes(path) for path in storage.list_objects(directory)}


def test_all_files_move_and_nothing_is_left(places: tuple[str, str]) -> None:
    source, target = places
    made(source)
    move_directory(source, target, "summary.json")
    assert held(target) == FILES
    assert not storage.exists(source)
    # Whoever comes later finds nothing to do.
    move_directory(source, target, "summary.json")
    assert held(target) == FILES


def test_a_move_that_was_killed_goes_on_and_ends_with_the_last_file(
    places: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = places
    made(source)
    move = moving._move

    def killed(path: str, there: str) -> None:
        if path.endswith("a.blocks"):
            raise KeyboardInterrupt
        move(path, there)

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(moving, "_move", killed)
        move_directory(source, target, "summary.json")
    # On one disk there is one step, and nothing to be killed between.
    assert held(target) in (FILES, {"dead_letter/b.blocks": b"refused"})
    move_directory(source, target, "summary.json")
    assert held(target) == FILES
    assert not storage.exists(source)


def test_a_file_moves_in_the_place_of_an_older_one(places: tuple[str, str]) -> None:
    source, target = places
    for data in (b"old", b"new"):
        storage.write_whole(source, [data])
        for _ in range(2):
            # The second call finds nothing to do.
            move_file(source, target)
            assert (storage.read_bytes(target), storage.exists(source)) == (data, False)


@pytest.mark.parametrize("kill", [False, True])
def test_two_move_a_file_at_once_or_one_after_a_killed_one(
    places: tuple[str, str], monkeypatch: pytest.MonkeyPatch, kill: bool
) -> None:
    source, target = places
    steps = ((storage, "rename"), (storage, "copy"), (storage, "remove"), (moving.os, "rename"), (storage, "exists"))
    for number in range(100):
        storage.write_whole(source, [b"table"])
        seen: list[str] = []

        def watched(name: str, real: Callable[..., Any], number: int, seen: list[str]) -> Callable[..., Any]:
            def step(*given: object) -> Any:
                seen.append(name)
                if len(seen) == number + 1:
                    if kill:
                        raise KeyboardInterrupt
                    move_file(source, target)
                return real(*given)

            return step

        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            for module, name in steps:
                patch.setattr(module, name, watched(name, getattr(module, name), number, seen))
            move_file(source, target)
        if kill:
            move_file(source, target)
        assert (storage.read_bytes(target), storage.exists(source)) == (b"table", False), seen
        storage.remove(target)
        if len(seen) <= number:
            break
    assert number >= 1


def test_what_moves_gets_the_readers_of_where_it_goes(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=other_disk(tmp_path)) as elsewhere:
        for folder in (tmp_path / "shuffled", Path(elsewhere, "shuffled")):
            folder.mkdir()
            os.chmod(folder, 0o2750)  # noqa: S103  # as an operator shares it
            made(str(tmp_path / "attempts" / "1"))
            move_directory(str(tmp_path / "attempts" / "1"), str(folder / "b" / "1"), "summary.json")
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder / "b").rglob("*")}
            assert modes == {
                "1": 0o2750, "reports": 0o2750, "a.blocks": 0o640, "summary.json": 0o640,
                "dead_letter": 0o700, "b.blocks": 0o600,
            }  # fmt: skip
            storage.write_whole(str(tmp_path / "attempts" / "2"), [b"table"])
            move_file(str(tmp_path / "attempts" / "2"), str(folder / "c" / "table"))
            assert stat.S_IMODE((folder / "c" / "table").stat().st_mode) == 0o640
